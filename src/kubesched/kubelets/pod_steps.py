"""What a kubelet does next with a pod, and when: pure rules.

bound ──start──▶ Running ──end──▶ Succeeded or Failed        deleted ──stop──▶ gone
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from kubesched.expansion.pod_runs import AnnotationError, duration_s
from kubesched.expansion.pod_states import POD_RUNNING, is_ready
from kubesched.model.core import Pod
from kubesched.model.times import InstantError, parse_instant

DEFAULT_GRACE_S = 30


class PodStep(Enum):
    START = "start"
    READY = "ready"
    END = "end"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Delays:
    """How long containers take to start, and to stop when they are asked to."""

    start_s: float = 1.0
    stop_s: float = 1.0


def next_step(pod: Pod, delays: Delays, now_s: float) -> tuple[PodStep, float] | None:
    """And in how many seconds; None when there is nothing to do. `now_s` is since the epoch."""
    if pod.is_terminating:
        grace = pod.spec.termination_grace_period_seconds
        return PodStep.STOP, min(delays.stop_s, DEFAULT_GRACE_S if grace is None else grace)
    if pod.is_terminal:
        return None
    if pod.status.phase != POD_RUNNING:
        return PodStep.START, delays.start_s
    if not is_ready(pod):
        return PodStep.READY, 0.0
    for_s = _duration_s(pod)
    if for_s is None:
        return None
    return PodStep.END, max(0.0, _started_s(pod, now_s) + for_s - now_s)


def _duration_s(pod: Pod) -> float | None:
    """A duration that cannot be read counts as none: the pod runs on."""
    try:
        return duration_s(pod.metadata)
    except AnnotationError:
        return None


def _started_s(pod: Pod, now_s: float) -> float:
    try:
        return parse_instant(pod.status.start_time) if pod.status.start_time else now_s
    except InstantError:
        return now_s
