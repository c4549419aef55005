"""What is told about a run: tables, records for machines, text for people.

`report` has it all; `tables` gathers it, `text` prints it.
"""
