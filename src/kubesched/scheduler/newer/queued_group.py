"""A pod group of v1.37 as one entry of the queue, and the sub-queues that hold such entries beside pods.

Next: `queue`, which makes them of the pods that come.
"""

from __future__ import annotations

from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Status
from kubesched.k8s.model.meta import PodKey
from kubesched.scheduler.queue.queued_pod import QueuedPodInfo
from kubesched.scheduler.queue.sub_queues import SubQueues

Members = dict[PodKey, QueuedPodInfo]


class QueuedGroup(QueuedPodInfo):
    """A topmost group in the queue, with those of its pods that wait there."""

    __slots__ = ("group", "members")

    def __init__(self, group: str, first: QueuedPodInfo, info: PodInfo) -> None:
        super().__init__(info, first.profile, first.queued_at_s)
        self.group = group
        """Its `group_key`."""
        self.key = entry_key(group)
        self.uid = self.key
        self.initial_attempt_at_s = first.initial_attempt_at_s
        self.pops_early = False
        self.members: Members = {}

    @property
    def is_still_gated(self) -> bool:
        return any(member.is_still_gated for member in self.members.values())

    @property
    def rejectors(self) -> frozenset[str]:
        return frozenset[str]().union(*(member.rejectors for member in self.members.values()))


def entry_key(group: str) -> PodKey:
    """No pod has such a key."""
    return PodKey(f"podgroup/{group}")


class GroupSubQueues(SubQueues):
    def _asked_to_enter(self, queued: QueuedPodInfo) -> Status:
        """One pod that is held back holds back its group."""
        if not isinstance(queued, QueuedGroup):
            return super()._asked_to_enter(queued)
        found = OK
        for member in queued.members.values():
            status = super()._asked_to_enter(member)
            if status is not OK:
                found, queued.gating_plugin, queued.hold = status, member.gating_plugin, member.hold
                if member.hold is not None and member.hold.together:
                    break  # what holds all of them
        if found is OK:
            queued.gating_plugin, queued.hold = "", None
        return found

    def again(self, queued: QueuedGroup, event: str) -> None:
        """Its pods changed: it stays where it is, unless it is held back now."""
        if queued.heap is None:
            self.unschedulable.put(queued)
        else:
            self._passes_gates(queued, event)

    def joined(self, queued: QueuedGroup, member: QueuedPodInfo, event: str) -> None:
        """The same for a group that was let in with all its other pods."""
        if queued.heap is None:
            self.unschedulable.put(queued)
        elif self._asked_to_enter(member) is not OK:
            self._passes_gates(queued, event)
