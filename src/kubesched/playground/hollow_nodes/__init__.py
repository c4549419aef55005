"""Hollow nodes: thousands of kubelets in one process, for any API server.

    registration ──▶ nodes and leases        lease_renewals ──▶ signs of life, spread over time
    informers ──▶ fleet ──▶ pod_plays ──▶ pod_play (what is this pod now?) ──▶ status patches, deletions

Begin with `fleet`. Nothing runs anywhere: pods are said to run.
"""
