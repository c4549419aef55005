"""What controllers ask about a pod: does it count, does it run, is it ready?"""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.model.core import Pod, PodCondition

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


def with_condition(pod: Pod, condition: PodCondition) -> Pod:
    others = (known for known in pod.status.conditions or () if known.type != condition.type)
    return replace(pod, status=replace(pod.status, conditions=(*others, condition)))
