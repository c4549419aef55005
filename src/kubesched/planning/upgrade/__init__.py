"""`kubesched upgrade`: whether a rolling upgrade of nodes finishes, what blocks it, what it costs in moves and time.

Read `upgrading` first, which plays upgrades and compares them; `rolling` for the upgrade itself on the simulated
cluster, `strategies` for surges, timeouts and the presets; `report` and `report_text` for the answer.
"""
