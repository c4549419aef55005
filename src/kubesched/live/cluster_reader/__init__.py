"""A live cluster, read once and never written to: for explaining, for simulating, and for a file to do so later.

`reader` asks the server; `saved_form` says what of an object goes into a file; `pending` judges all pods that wait.
"""
