"""`kubesched compare`: variants over one scenario, with the same seeds, and what differs.

`variants` says what a variant changes, `metrics` what is measured of a run, `comparing` runs them, `parting` says where
two runs part and why, `report` is what comes of it.
"""
