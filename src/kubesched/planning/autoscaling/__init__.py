"""Karpenter and Cluster Autoscaler in virtual time: which machines they would launch and remove in the course of a run.

`autoscaler` watches the simulated cluster and acts on it, `scale_up` finds machines for pods that wait, `scale_down`
finds nodes that can go, by the policies of `kubesched.planning.consolidate`. Both ask on a copy of the cluster as it is
at that moment (`snapshot`), with the scheduler's own places.
"""
