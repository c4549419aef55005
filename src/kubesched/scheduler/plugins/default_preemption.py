"""DefaultPreemption: when no node fits, evict pods of lower priority from the node where it hurts least.

How victims are found is the engine's business (`kubesched.scheduler.engine.preemption`), which the handle offers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.events import ActionType, ClusterEvent, EventResource, Hint, RegisteredEvent
from kubesched.framework.groups import GroupCycle, TrySchedule
from kubesched.framework.handle import Handle, PreemptionLimits
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import NodeStatuses, PostFilterResult
from kubesched.framework.status import OK, Code, Hold, Status
from kubesched.k8s.model.scheduling import AnyGroup, group_key_of

_STILL_PREEMPTING = "waiting for the preemption for this pod to be finished"
_GROUP_STILL_PREEMPTING = "waiting for the preemption for this pod group to be finished"


class DefaultPreemption:
    name: ClassVar[str] = "DefaultPreemption"

    def __init__(self, args: PreemptionLimits, handle: Handle) -> None:
        self._args = args
        self._handle = handle

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """A pod whose victims, or those of its group, are still being asked to go stays outside, so that it does not
        preempt twice."""
        is_preempting, uid, reason = self._handle.is_preempting, pod.uid, _STILL_PREEMPTING
        if pod.pod.spec.scheduling_group is not None and self._handle.group_features.preemption:
            group = self._handle.group(self._handle.root_group(group_key_of(pod.pod)))
            if group is None:
                return OK
            uid, reason = group.metadata.uid or group.group_key, _GROUP_STILL_PREEMPTING
        if not is_preempting(uid):
            return OK
        lasts = partial(is_preempting, uid)
        return Hold(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (reason,), lasts=lasts, ends_by_call=True)

    def pod_group_post_filter(
        self, cycle: CycleState, group: GroupCycle, pod_group: AnyGroup, try_schedule: TrySchedule
    ) -> Status:
        return self._handle.preempt_for_group(cycle, group, pod_group, try_schedule)

    def _ineligible(self, pod: PodInfo) -> str:
        """Why a pod of a group does not preempt by itself; empty if it may."""
        features = self._handle.group_features
        if features.topology:
            group = self._handle.objects.pod_groups.get(group_key_of(pod.pod))
            if group is None:
                return "preemption: pod group for pod not found"
            if group.spec.scheduling_constraints is not None:
                return "preemption: not eligible due to placement-based pod group scheduling limitation"
        return "preemption: not eligible due to workload aware preemption enabled" if features.preemption else ""

    def post_filter(self, cycle: CycleState, pod: PodInfo, statuses: NodeStatuses) -> PostFilterResult:
        if pod.spec.scheduling_group is not None and (reason := self._ineligible(pod)):
            return PostFilterResult(Status.unschedulable(reason))
        result = self._handle.preempt(cycle, pod, statuses, self._args)
        if not result.status.message:
            return result
        status = Status(result.status.code, (f"preemption: {result.status.message}",))
        return PostFilterResult(status, result.mode, result.node_name, result.lasts)

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        """Pods held back here wait for their own victims to go; the plugin that rejected them decides on the rest."""
        return (RegisteredEvent(ClusterEvent(EventResource.POD, ActionType.DELETE), _never, by_signature=True),)


def _never(pod: PodInfo, old: object | None, new: object | None) -> Hint:  # noqa: ARG001
    return Hint.SKIP
