"""What controllers ask about a pod: does it count, does it run, is it ready?"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from kubesched.k8s.model.core import Pod, PodCondition
from kubesched.k8s.model.reported_pods import ReportedCondition
from kubesched.k8s.model.times import InstantError, parse_instant

POD_SUCCEEDED = "Succeeded"
POD_FAILED = "Failed"
POD_RUNNING = "Running"
POD_PENDING = "Pending"

READY = "Ready"


def is_active(pod: Pod) -> bool:
    """Neither finished nor on its way out: the pod counts for its controller."""
    return not pod.is_terminal and not pod.is_terminating


def condition_of(pod: Pod, kind: str) -> PodCondition | None:
    return next((known for known in pod.status.conditions or () if known.type == kind), None)


def is_ready(pod: Pod) -> bool:
    """A pod that runs and says nothing about it, as in files written by hand, is ready."""
    condition = condition_of(pod, READY)
    return pod.status.phase == POD_RUNNING if condition is None else condition.status == "True"


def is_healthy(pod: Pod) -> bool:
    """Runs, is ready, and is to stay."""
    return is_active(pod) and is_ready(pod)


def ready_since_s(pod: Pod) -> float:
    """Since when its condition says so; where nobody reported that, since ever."""
    condition = condition_of(pod, READY)
    text = condition.last_transition_time if isinstance(condition, ReportedCondition) else None
    try:
        return parse_instant(text) if text else 0.0
    except InstantError:
        return 0.0


def is_available(pod: Pod, min_ready_s: int, now_s: float) -> bool:
    """Ready, and long enough so."""
    return is_healthy(pod) and (min_ready_s == 0 or ready_since_s(pod) + min_ready_s <= now_s)


def available_next_s(pods: Iterable[Pod], min_ready_s: int, now_s: float) -> float | None:
    """When the next of those that are ready will have been so long enough."""
    if min_ready_s == 0:
        return None
    times = (ready_since_s(pod) + min_ready_s for pod in pods if is_healthy(pod))
    return min((at_s for at_s in times if at_s > now_s), default=None)


def with_condition(pod: Pod, condition: PodCondition) -> Pod:
    return replace(pod, status=replace(pod.status, conditions=merge_condition(pod.status.conditions, condition)))


def merge_condition(known: tuple[PodCondition, ...] | None, condition: PodCondition) -> tuple[PodCondition, ...]:
    """As a strategic merge does: in the place of the one of its type, or at the end."""
    if not known:
        return (condition,)
    if not any(other.type == condition.type for other in known):
        return (*known, condition)
    return tuple(condition if other.type == condition.type else other for other in known)
