"""Metrics of older schedulers: their names, labels and buckets, filled while one of them is emulated.

Read in this order: `definitions` (all metrics, version by version), `summary` (a kind that is no longer used), `shown`
(today's metrics under the names of then), `measured` (what is counted).
"""
