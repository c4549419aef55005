"""Metrics of older schedulers: their names, labels and buckets, filled while one of them is emulated.

Read `definitions` first (all metrics, version by version), then `measured` (what is counted).
"""
