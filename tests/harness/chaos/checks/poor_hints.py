"""Pods that wait longer than they need to, in kube-scheduler as here: changes help them of which hints say they do not.

They are tried again when they have waited for five minutes. Each case was found by a run, and checked against
kube-scheduler's hints.
"""

from __future__ import annotations

from kubesched.framework.pod_info import AffinityTerm, PodInfo
from kubesched.k8s.model.core import Pod
from kubesched.scheduler.cluster import Cluster


def has_poor_hints(cluster: Cluster, info: PodInfo) -> bool:
    """A pod that wants to be near pods like itself is not called when the last of these goes, though it may go anywhere
    then. A pod that others keep off their nodes is not called when a node comes."""
    if any(_speaks_of(term, info) for term in info.affinity.required):
        return True
    others = cluster.placed.values()
    return any(_speaks_of(term, info) for other in others for term in other.affinity.required_anti)


def minds_others(pod: Pod) -> bool:
    return pod.spec.affinity is not None or bool(pod.spec.topology_spread_constraints)


def _speaks_of(term: AffinityTerm, info: PodInfo) -> bool:
    return term.matches(info.namespace, info.labels, {})
