"""SchedulingGates: a pod with scheduling gates stays out of the queue until the last of them is gone.

Next: `kubesched.framework.extension_points`, where preEnqueue stands in a pod's path.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from kubesched.framework import OK, ActionType, ClusterEvent, EventResource, Handle, Hint, PodInfo, Status
from kubesched.framework.events import RegisteredEvent
from kubesched.k8s.model.core import Pod


class SchedulingGates:
    name: ClassVar[str] = "SchedulingGates"

    def __init__(self, _args: object, _handle: Handle) -> None:
        """Has no arguments, and looks at nothing but the pod."""

    def pre_enqueue(self, pod: PodInfo) -> Status:
        gates = pod.pod.spec.scheduling_gates
        if not gates:
            return OK
        return Status.unresolvable(f"waiting for scheduling gates: [{' '.join(gate.name for gate in gates)}]")

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        gates_gone = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
        return (RegisteredEvent(gates_gone, _hint_after_gates_gone),)


def _hint_after_gates_gone(pod: PodInfo, _old: object | None, new: object | None) -> Hint:
    """Only the pod's own gates hold it back."""
    is_other_pod = isinstance(new, Pod) and (new.metadata.uid or new.pod_key) != pod.uid
    return Hint.SKIP if is_other_pod else Hint.QUEUE
