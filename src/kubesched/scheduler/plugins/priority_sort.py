"""PrioritySort: higher priority first, and among equals the pod that has waited longer."""

from __future__ import annotations

from typing import ClassVar

from kubesched.framework import Handle
from kubesched.framework.extension_points import QueuedPod


class PrioritySort:
    name: ClassVar[str] = "PrioritySort"

    def __init__(self, _args: object, _handle: Handle) -> None:
        """Has no arguments, and looks at nothing but the queued pod."""

    def sort_key(self, queued: QueuedPod) -> tuple[float, ...]:
        return (-queued.info.priority, queued.queued_at_s)
