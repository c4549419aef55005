"""The pod: defaults, admission, validation, what may change, and its table. Begin with ``rules.py``."""
