"""Preemption of old as a plugin of the profile, for cycles in which extenders take part.

Victims went before a cycle was over, then. Here they are asked to go, and the pod waits for that, as today.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.events import RegisteredEvent
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import NodeStatuses, PostFilterResult
from kubesched.framework.status import Status
from kubesched.scheduler.config import DefaultPreemptionArgs
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.plugins.default_preemption import DefaultPreemption

Attempt = Callable[[CycleState, PodInfo, NodeStatuses], PostFilterResult]


class PreemptionOfThen:
    name: ClassVar[str] = DefaultPreemption.name

    def __init__(self, attempt: Attempt, handle: EngineHandle) -> None:
        self._attempt = attempt
        self._today = DefaultPreemption(DefaultPreemptionArgs(), handle)

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return self._today.pre_enqueue(pod)

    def post_filter(self, cycle: CycleState, pod: PodInfo, statuses: NodeStatuses) -> PostFilterResult:
        return self._attempt(cycle, pod, statuses)

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        return self._today.events_to_register()
