"""How fast and how large the embedded API server is: `python -m harness.apiserver_load`.

The server is a process of its own, so are the watchers; the third one sends requests. Begin with `run.py`.
"""
