"""DefaultBinder: asks for the pod to be bound to its node through the API server.

Next: `kubesched.framework.effects` for what a binding cycle can ask for.
"""

from __future__ import annotations

from typing import ClassVar

from kubesched.framework import OK, CycleState, Handle, PodInfo, Status
from kubesched.framework.effects import BindPod, Failed
from kubesched.framework.extension_points import Steps


class DefaultBinder:
    name: ClassVar[str] = "DefaultBinder"

    def __init__(self, _args: object, _handle: Handle) -> None:
        """Has no arguments, and looks at nothing but the pod."""

    def bind(self, _cycle: CycleState, pod: PodInfo, node_name: str) -> Steps:
        outcome = yield BindPod(pod.key, pod.pod.metadata.uid, node_name)
        return Status.error(outcome.message) if isinstance(outcome, Failed) else OK
