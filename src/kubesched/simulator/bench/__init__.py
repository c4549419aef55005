"""Benchmarks: workloads as lists of operations, run against the loop in virtual time, measured in real time.

    workload files ──read──▶ operations ──run──▶ world around the loop ──▶ report

Files are in the format of kube-scheduler's own benchmark, scheduler_perf; our own are in `workloads/`.

Next: `workload_file` for what is read, `runner` for how it is run, `run` for what is measured.
"""
