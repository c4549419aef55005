"""Metrics and traces, as data: what the loop counts and measures. Nothing here is sent anywhere.

`definitions` says which metrics there are, under kube-scheduler's names; `loop_metrics` is what the loop tells, with
what can be read off its state; `timing` measures; `exposition` writes it all as text for Prometheus.
Durations are measured only if the loop is given a clock.
"""
