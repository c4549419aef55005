"""Pretend kubelets: thousands of nodes in one process, for any API server.

    registration ──▶ nodes and leases        lease_renewals ──▶ signs of life, spread over time
    informers ──▶ fleet ──▶ timer_wheel ──▶ pod_steps (what is next for this pod?) ──▶ status patches, deletions

Begin with `fleet`. Nothing runs anywhere: pods are said to run.
"""
