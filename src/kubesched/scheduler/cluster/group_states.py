"""Which pods belong to which group, and which of them have a node: kept up to date as facts about pods arrive.

A group is known here by the pods that name it, whether there is a PodGroup object or not. A pod without a node counts
if one of our profiles schedules it; one with a node, assumed or bound, counts whoever scheduled it.

Implements `framework.PodGroupStates`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.scheduling import group_key_of


class PodGroupState:
    """The pods of one group, in the order in which they came to where they are."""

    __slots__ = ("scheduled", "unscheduled")

    def __init__(self) -> None:
        self.unscheduled: dict[PodKey, PodInfo] = {}
        self.scheduled: dict[PodKey, PodInfo] = {}
        """With their node: assumed, or bound."""

    @property
    def n_pods(self) -> int:
        return len(self.unscheduled) + len(self.scheduled)

    @property
    def n_scheduled(self) -> int:
        return len(self.scheduled)

    def unscheduled_pods(self) -> Collection[PodInfo]:
        return self.unscheduled.values()

    def scheduled_pods(self) -> Collection[PodInfo]:
        return self.scheduled.values()


class PodGroupStates:
    """By `namespace/name` of the group."""

    def __init__(self, scheduler_names: Collection[str]) -> None:
        self._scheduler_names = scheduler_names
        self._by_group: dict[str, PodGroupState] = {}

    def get(self, key: str) -> PodGroupState | None:
        """None if no pod names the group."""
        return self._by_group.get(key)

    def names(self) -> Iterable[str]:
        return self._by_group.keys()

    def recounted(self, pending: Iterable[PodInfo], placed: Iterable[PodInfo]) -> PodGroupStates:
        """What follows from these pods alone. Of one that is both, it counts that it is placed."""
        found = PodGroupStates(self._scheduler_names)
        for info in pending:
            found.is_pending(info)
        for info in placed:
            found.is_placed(info)
        return found

    def is_pending(self, info: PodInfo) -> None:
        """The pod has no node, or none any more."""
        group = group_key_of(info.pod)
        if not group:
            return
        if info.spec.scheduler_name not in self._scheduler_names:
            self.is_gone(info)
            return
        state = self._by_group.setdefault(group, PodGroupState())
        state.scheduled.pop(info.key, None)
        state.unscheduled[info.key] = info

    def is_placed(self, info: PodInfo) -> None:
        """The pod has a node."""
        group = group_key_of(info.pod)
        if group:
            state = self._by_group.setdefault(group, PodGroupState())
            state.unscheduled.pop(info.key, None)
            state.scheduled[info.key] = info

    def is_gone(self, info: PodInfo) -> None:
        group = group_key_of(info.pod)
        state = self._by_group.get(group)
        if state is not None:
            state.unscheduled.pop(info.key, None)
            state.scheduled.pop(info.key, None)
            if not state.n_pods:
                del self._by_group[group]
