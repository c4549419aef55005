"""Claims for devices, slices of them, device classes and taint rules: what is wrong with them, and how they are served.

Read ``kinds.py`` for the kinds, then ``requests.py`` and ``slices.py`` for what they consist of.
"""
