"""Real processes that are stopped for a while and go on: SIGSTOP and SIGCONT, as a suspended machine does it.

Read `scene` (what is played, and what must hold), `players` (the processes), `__main__` (`make pauses`).
"""
