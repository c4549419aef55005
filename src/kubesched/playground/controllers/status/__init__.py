"""What controllers write into the status of workloads: pure functions from what there is to the status as JSON has it.

`kubectl rollout status` and `kubectl wait` read these. Begin with `pod_counts`.
"""
