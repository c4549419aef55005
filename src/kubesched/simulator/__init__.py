"""The same decisions offline, in virtual time.

`library` has the way in; `run` lets a whole cluster live; `sequence` places given pods one after another, each seeing
the earlier ones.
"""
