"""GangScheduling as v1.37 has it: what is complete is asked of all groups below the topmost one.

A group of groups is complete with `minGroupCount` children that are, a PodGroup with `minCount` pods; one of policy
basic with one of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.events import ActionType, ClusterEvent, EventResource, Hint, RegisteredEvent
from kubesched.framework.extension_points import PermitResult
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Code, Status
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.scheduling import AnyGroup, CompositePodGroup, PodGroup, group_key_of
from kubesched.scheduler.plugins.gang_scheduling import LONGEST_WAIT_S, GangScheduling


class NewerGangScheduling(GangScheduling):
    def _whole(self, key: str) -> str:
        return self._handle.root_group(key)

    def _gate(self, key: str) -> Status:
        root = self._handle.group(self._handle.root_group(key))
        if not isinstance(root, CompositePodGroup):
            return super()._gate(key)
        return OK if self._is_ready(root, is_scheduled=False) else Status.unresolvable(_unready(root))

    def permit(self, cycle: CycleState, pod: PodInfo, node_name: str) -> PermitResult:
        root = self._handle.group(self._handle.root_group(group_key_of(pod.pod)))
        if not isinstance(root, CompositePodGroup):
            return super().permit(cycle, pod, node_name)
        key = root.group_key
        if not self._is_ready(root, is_scheduled=True):
            self._waiting.setdefault(key, []).append(pod.uid)
            self._handle.activate_group(key)
            return PermitResult(Status(Code.WAIT, (_unready(root),)), LONGEST_WAIT_S)
        for uid in self._waiting.pop(key, ()):
            self._handle.allow(uid, self.name)
        return PermitResult(OK)

    def _is_ready(self, group: AnyGroup, *, is_scheduled: bool) -> bool:
        """Whether enough pods are there, or have a node."""
        needed = group.min_count or 1
        if isinstance(group, CompositePodGroup):
            children = self._handle.child_groups(group.group_key)
            return sum(self._is_ready(child, is_scheduled=is_scheduled) for child in children) >= needed
        members = self._handle.group_members(group.group_key)
        return members is not None and (members.n_scheduled if is_scheduled else members.n_pods) >= needed

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        return (
            RegisteredEvent(ClusterEvent(EventResource.POD, ActionType.ADD), self._after_change),
            RegisteredEvent(ClusterEvent(EventResource.POD_GROUP, ActionType.ADD), self._after_change),
            RegisteredEvent(ClusterEvent(EventResource.POD_GROUP, ActionType.UPDATE), self._after_group_update),
            RegisteredEvent(ClusterEvent(EventResource.COMPOSITE_POD_GROUP, ActionType.ADD), self._after_change),
        )

    def _after_change(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        """What came belongs to the same topmost group."""
        changed = new if new is not None else old
        if isinstance(changed, Pod):
            key = group_key_of(changed)
        else:
            key = changed.group_key if isinstance(changed, PodGroup | CompositePodGroup) else ""
        own = group_key_of(pod.pod)
        if not own or not key:
            return Hint.SKIP
        root = self._handle.root_group(own)
        return Hint.QUEUE if root and root == self._handle.root_group(key) else Hint.SKIP

    def _after_group_update(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        """A gang needs fewer pods than before."""
        if not isinstance(old, PodGroup) or not isinstance(new, PodGroup):
            return Hint.SKIP
        if not old.min_count or not 0 < new.min_count < old.min_count:
            return Hint.SKIP
        return self._after_change(pod, old, new)


def _unready(root: CompositePodGroup) -> str:
    return f'waiting for composite pod group "{root.name}" tree to meet quorum'
