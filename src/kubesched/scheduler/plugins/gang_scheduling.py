"""GangScheduling: holds the pods of a gang back until enough of them exist, and binds them when enough have a node.

Enough is `minCount` of the PodGroup. In the group's cycle the question is asked for each pod that was placed for trial:
as soon as one is told to go, the group fits. Once it is decided, pods wait at Permit for the one that makes the gang
complete; others of the gang that come later pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.events import ActionType, ClusterEvent, EventResource, Hint, RegisteredEvent
from kubesched.framework.extension_points import PermitResult
from kubesched.framework.groups import GroupCycle
from kubesched.framework.handle import Handle
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Code, Hold, Status
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.scheduling import PodGroup, group_key_of

_HELD = Status.unresolvable("waiting for minCount pods from a gang to appear in scheduling queue")
_WAITING = "waiting for minCount pods from a gang to be scheduled"
LONGEST_WAIT_S = 300.0
_MOST_HOLDS = 4096
_GO = PermitResult(OK)
_WAIT = PermitResult(Status(Code.WAIT, (_WAITING,)), LONGEST_WAIT_S)


class GangScheduling:
    name: ClassVar[str] = "GangScheduling"

    def __init__(self, _args: object, handle: Handle) -> None:
        self._handle = handle
        self._waiting: dict[str, list[str]] = {}
        """By group, the uids of pods that were asked to wait for the others."""
        self._holds: dict[str, Hold] = {}
        """By group, what its pods are held back with."""

    def pre_enqueue(self, pod: PodInfo) -> Status:
        if pod.spec.scheduling_group is None or not (key := group_key_of(pod.pod)):
            return OK
        status = self._gate(key)
        if status is OK:
            if self._holds:
                self._holds.pop(key, None)
            return OK
        hold, whole = self._holds.get(key), self._whole(key)
        if hold is None or hold.reasons != status.reasons or hold.together != whole:
            lasts = partial(self._is_gated, key)
            hold = Hold(status.code, status.reasons, self.name, lasts=lasts, ends_by_call=True, together=whole)
            if len(self._holds) >= _MOST_HOLDS:
                self._holds.clear()  # of groups, perhaps, that are gone
            self._holds[key] = hold
        return hold

    def _whole(self, key: str) -> str:
        """All that is held back with a group."""
        return key

    def _is_gated(self, key: str) -> bool:
        return self._gate(key) is not OK

    def _gate(self, key: str) -> Status:
        group = self._handle.objects.pod_groups.get(key)
        if group is None:
            name = key.partition("/")[2]
            return Status.unresolvable(f'waiting for pods\'s pod group "{name}" to appear in scheduling queue')
        needed = group.min_count
        if not needed:
            return OK
        members = self._handle.group_members(key)
        return OK if members is not None and members.n_pods >= needed else _HELD

    def permit(self, cycle: CycleState, pod: PodInfo, node_name: str) -> PermitResult:
        key = group_key_of(pod.pod)
        if not key:
            return _GO
        group = self._handle.objects.pod_groups.get(key)
        if group is None:
            name = key.partition("/")[2]
            missing = f'podgroup.scheduling.k8s.io "{name}" not found'
            return PermitResult(Status.error(f"failed to get podGroup {key}: {missing}"))
        needed = group.min_count
        if not needed:
            return _GO
        members = self._handle.group_members(key)
        assert members is not None  # this pod is one
        is_complete = members.n_scheduled >= needed
        is_trial = cycle.find(GroupCycle) is not None
        if is_trial and not self._handle.group_features.alpha:  # v1.36 acts on a trial as if all were decided
            return _GO if is_complete else _WAIT
        if not is_complete:
            if not is_trial:
                self._waiting.setdefault(key, []).append(pod.uid)
            self._handle.activate_group(key)
            return _WAIT
        for uid in self._waiting.pop(key, ()):
            self._handle.allow(uid, self.name)
        return _GO

    def is_complete(self, key: str, n_scheduled: int) -> bool:
        """Whether so many pods with a node are enough for the group; a missing one is never complete."""
        group = self._handle.objects.pod_groups.get(key)
        return group is not None and n_scheduled >= group.min_count

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        return (
            RegisteredEvent(ClusterEvent(EventResource.POD, ActionType.ADD), _is_mate),
            RegisteredEvent(ClusterEvent(EventResource.POD_GROUP, ActionType.ADD), _is_its_group),
        )


def _is_mate(pod: PodInfo, old: object | None, new: object | None) -> Hint:  # noqa: ARG001
    key = group_key_of(pod.pod)
    return Hint.QUEUE if key and isinstance(new, Pod) and group_key_of(new) == key else Hint.SKIP


def _is_its_group(pod: PodInfo, old: object | None, new: object | None) -> Hint:  # noqa: ARG001
    return Hint.QUEUE if isinstance(new, PodGroup) and new.key == group_key_of(pod.pod) else Hint.SKIP
