"""kill -9 at any moment loses nothing that the embedded API server acknowledged: `python -m
harness.apiserver_kills`.

Begin with `rounds.py`.
"""
