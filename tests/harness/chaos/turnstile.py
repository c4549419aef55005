"""Turnstile: a permit plugin that does what a label of the pod says: let it wait for so many seconds, or turn it down.

Pods that wait go on when somebody allows them (`allow` in a trace); pods without the label pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.events import ActionType, ClusterEvent, EventResource, RegisteredEvent
from kubesched.framework.extension_points import PermitResult
from kubesched.framework.handle import Handle
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Status

PERMIT_LABEL = "chaos.example.com/permit"
DENY = "deny"


class Turnstile:
    name: ClassVar[str] = "Turnstile"

    def __init__(self, _args: object, _handle: Handle) -> None:
        """Has no arguments, and looks at nothing but the pod."""

    def permit(self, cycle: CycleState, pod: PodInfo, node_name: str) -> PermitResult:
        wish = pod.labels.get(PERMIT_LABEL, "")
        if not wish:
            return PermitResult(OK)
        if wish == DENY:
            return PermitResult(Status.unschedulable("turned down at the turnstile"))
        return PermitResult(Status.wait("waits at the turnstile"), timeout_s=float(wish))

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        """A new label is all that helps."""
        return (RegisteredEvent(ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_LABEL)),)
