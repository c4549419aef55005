"""`kubesched upgrade`: whether a rolling upgrade of nodes finishes, what blocks it, what it costs in moves and time.

Read `upgrading` first, which plays upgrades and compares them; `rolling` for the upgrade itself on the simulated
cluster, with surges, timeouts and the presets; `report` for the answer.
"""
