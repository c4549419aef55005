"""When a kubelet takes a pod up, and when a deleted one has stopped: pure rules.

bound ──start──▶ played (see `pod_play`) ──▶ over        deleted ──hooks, grace──▶ stopped ──▶ gone
"""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.k8s.workloads.pod_states import POD_RUNNING
from kubesched.playground.hollow_nodes.container_runs import pre_stop_s
from kubesched.playground.hollow_nodes.hollow_pods import HollowPod

DEFAULT_GRACE_S = 30
TERMINATED = 143
"""The exit code of a container that was asked to stop, and did."""
KILLED = 137
"""Of one that had to be killed when its grace was over."""


@dataclass(frozen=True, slots=True)
class Delays:
    """How long containers take to start, and to stop when they are asked to."""

    start_s: float = 1.0
    stop_s: float = 1.0


def has_begun(pod: HollowPod) -> bool:
    """Its kubelet has taken it up before."""
    return pod.status.phase == POD_RUNNING or bool(pod.status.start_time)


def stops_in_s(pod: HollowPod, delays: Delays) -> tuple[float, int]:
    """How long a deleted pod takes, and the exit code of its containers: hooks run first, and grace ends all."""
    grace = pod.metadata.deletion_grace_period_seconds
    if grace is None:
        grace = pod.spec.termination_grace_period_seconds
    if grace is None:
        grace = DEFAULT_GRACE_S
    if pod.is_terminal or not has_begun(pod):
        return min(delays.stop_s, grace), TERMINATED
    hooks_s = pre_stop_s(pod)
    if hooks_s is None or hooks_s + delays.stop_s > grace:
        return float(grace), KILLED
    return hooks_s + delays.stop_s, TERMINATED
