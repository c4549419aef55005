"""What is told about a run: tables, records for machines, text for people.

`report` has it all; `tables` and `pending` gather it, `text` prints it.
"""
