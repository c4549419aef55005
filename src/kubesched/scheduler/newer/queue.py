"""The scheduling queue of v1.37: a pod group is one entry, and fewer events are asked about.

All pods of a group wait together, wherever that is, ordered by the priority of the PodGroup; where groups have parents,
all pods below the topmost one. Where one of them is held back, all are. The entry comes back from an attempt as a
whole: after a rejection or an error once its backoff is over, whose limit grows with the root of the number of pods; at
once after a success, with the pods that were left.

Two places are beside the sub-queues: pods of whose groups one is not known are `incomplete`, and pods that come, or
come back, while their group is tried are `pending`: they join what comes back of it.

Next: `groups`, which takes entries out and brings them back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import sqrt
from typing import ClassVar

from msgspec.structs import replace

from kubesched.framework.events import UNSCHEDULED_POD_ADD, UNSCHEDULED_POD_UPDATE, ClusterEvent
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Status
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.scheduling import AnyGroup, group_key_of
from kubesched.scheduler.cluster.group_forest import GroupForest
from kubesched.scheduler.newer.queued_group import GroupSubQueues, Members, QueuedGroup
from kubesched.scheduler.queue import QueuedPodInfo, QueueProfile, QueueSettings, SchedulingQueue
from kubesched.scheduler.queue.hints import ClusterChange, HintFailure, HintTable, Judge, MeasuredHint, Requeue
from kubesched.scheduler.queue.scheduling_queue import SCHEDULE_ATTEMPT_FAILURE, QueueContents
from kubesched.scheduler.queue.sub_queues import ACTIVE, BACKOFF, GATED, UNSCHEDULABLE, Held, Moved, SubQueues

INCOMPLETE = "incomplete"
PENDING = "pending"
_ADDED = UNSCHEDULED_POD_ADD.label
_URGENCY = (Requeue.SKIP, Requeue.AFTER_BACKOFF, Requeue.IMMEDIATELY)


class NewerHints(HintTable):
    """A group is moved for whatever would move one of its pods."""

    adds_node_taints: ClassVar[bool] = False

    def judge_all(self, change: ClusterChange) -> Judge:
        judge = super().judge_all(change)
        return lambda queued: _most_urgent(queued, judge)

    def judge(self, queued: QueuedPodInfo, change: ClusterChange) -> Requeue:
        plain = super().judge
        return _most_urgent(queued, lambda pod: plain(pod, change))


def _most_urgent(queued: QueuedPodInfo, judge: Judge) -> Requeue:
    if not isinstance(queued, QueuedGroup):
        return judge(queued)
    return max((judge(member) for member in queued.members.values()), key=_URGENCY.index, default=Requeue.SKIP)


class NewerQueue(SchedulingQueue):
    hints_type: ClassVar[type[HintTable]] = NewerHints


class GroupQueue(NewerQueue):
    sub_queues_type: ClassVar[type[SubQueues]] = GroupSubQueues
    _pods: GroupSubQueues

    def __init__(
        self,
        settings: QueueSettings,
        profiles: Mapping[str, QueueProfile],
        measured_hint: MeasuredHint | None,
        forest: GroupForest,
    ) -> None:
        super().__init__(settings, profiles, measured_hint)
        self._forest = forest
        self._entries: dict[str, QueuedGroup] = {}
        """By topmost group, those in a sub-queue."""
        self._homes: dict[PodKey, QueuedGroup] = {}
        """By pod, the entry that it is in."""
        self._under_way: dict[str, QueuedGroup] = {}
        """By topmost group, those that were popped, and whose attempt is not over."""
        self._beside: dict[str, dict[str, Members]] = {INCOMPLETE: {}, PENDING: {}}
        """By place and PodGroup, the pods that are in no entry."""
        self.contents = GroupContents(self)

    def listen(self, moved: Moved | None, held: Held | None, hint_failed: Callable[[HintFailure], None] | None) -> None:
        super().listen(_of_each(moved), _of_each(held), hint_failed)

    # -- pods of groups ------------------------------------------------------------------------------------------------

    def add(self, info: PodInfo, now_s: float) -> None:
        if not group_key_of(info.pod):
            super().add(info, now_s)
            return
        profile = self._profiles.get(info.spec.scheduler_name)
        if profile is None:
            return
        known = self.member(info.key)
        if info.uid in self._in_flight.by_uid or (known is not None and known.uid == info.uid):
            self.update(None, info, now_s)
            return
        if known is not None:  # of the same name, and gone: there can be only one
            self.delete(known.info)
        self._add_member(QueuedPodInfo(info, profile, now_s), _ADDED, now_s)

    def update(self, old: Pod | None, info: PodInfo, now_s: float) -> None:
        group = group_key_of(info.pod)
        if not group or info.spec.scheduler_name not in self._profiles:
            super().update(old, info, now_s)
            return
        if self.update_in_flight(old, info):
            return
        member = self.member(info.key)
        if member is None:
            self._add_member(QueuedPodInfo(info, self._profiles[info.spec.scheduler_name], now_s), _ADDED, now_s)
            return
        before = old or member.info.pod
        member.info, member.uid = info, info.uid
        entry = self._homes.get(info.key)
        if entry is None or entry.heap is not None:
            return
        entry.hold = member.hold = None
        self._pods.unschedulable.call(entry.key)
        self._reconsider(entry, before, info.pod, now_s)

    def delete(self, info: PodInfo) -> None:
        group = group_key_of(info.pod)
        if not group:
            super().delete(info)
            return
        for members in self._beside.values():
            if members.get(group, {}).pop(info.key, None) is not None and not members[group]:
                del members[group]
        entry = self._homes.pop(info.key, None)
        if entry is None:
            return
        del entry.members[info.key]
        if entry.members:
            self._pods.again(entry, _ADDED)
        else:
            self._take_out(entry)

    def member(self, key: PodKey) -> QueuedPodInfo | None:
        """A pod of a group that waits, in an entry or beside."""
        if key in self._homes:
            return self._homes[key].members[key]
        return next((found for place in self._beside.values() for of in place.values() if (found := of.get(key))), None)

    def place_of_member(self, key: PodKey) -> QueuedGroup | str:
        """Its entry, or the place beside."""
        places = (place for place, groups in self._beside.items() if any(key in members for members in groups.values()))
        return self._homes[key] if key in self._homes else next(places, "")

    def _add_member(self, queued: QueuedPodInfo, event: str, now_s: float) -> None:
        group = group_key_of(queued.info.pod)
        root = self._root(group)
        if root is None:
            self._beside[INCOMPLETE].setdefault(group, {})[queued.key] = queued
            self._tell(queued, INCOMPLETE, event)
        elif (entry := self._entries.get(root.group_key)) is not None:
            entry.members[queued.key] = queued
            self._homes[queued.key] = entry
            self._pods.joined(entry, queued, event)
        elif root.group_key in self._under_way:
            self._beside[PENDING].setdefault(group, {})[queued.key] = queued
            self._tell(queued, PENDING, event)
        else:
            self._enter(_entry_of(root, {queued.key: queued}), Requeue.IMMEDIATELY, event, now_s)

    def _root(self, group: str) -> AnyGroup | None:
        """None if a group on the way to it is not there."""
        key = self._forest.root_of(group)
        return self._forest.get(key) if key else None

    def _tell(self, queued: QueuedPodInfo, place: str, event: str) -> None:
        if self._pods.moved is not None:
            self._pods.moved(queued, place, event)

    def _enter(self, entry: QueuedGroup, how: Requeue, event: str, now_s: float) -> None:
        self._entries[entry.group] = entry
        self._homes.update(dict.fromkeys(entry.members, entry))
        self._pods.requeue(entry, how, event, now_s)

    def _take_out(self, entry: QueuedGroup) -> None:
        self._pods.remove(entry.key)
        self._left(entry)

    def _left(self, entry: QueuedGroup) -> None:
        del self._entries[entry.group]
        for key in entry.members:
            del self._homes[key]

    # -- attempts ------------------------------------------------------------------------------------------------------

    def pop(self, now_s: float) -> QueuedPodInfo | None:
        queued = super().pop(now_s)
        if isinstance(queued, QueuedGroup):
            self._in_flight.end(queued.uid)
            self._left(queued)
            self._under_way[queued.group] = queued
            for member in queued.members.values():
                member.attempts += 1
                self._in_flight.start(member)
        return queued

    def add_failed_member(self, queued: QueuedPodInfo, *, is_error: bool, pops_early: bool, now_s: float) -> None:
        """It comes back with its group."""
        if self.member(queued.key) is not None:  # another pod of that name
            self._in_flight.end(queued.uid)
        elif self._attempt_failed(queued, is_error, now_s):
            self._in_flight.end(queued.uid)
            self._add_member(queued, SCHEDULE_ATTEMPT_FAILURE, now_s)

    def group_attempted(self, group: str, status: Status, now_s: float) -> None:
        """The attempt of a topmost group is over, and came to this: what is left of it comes back."""
        before = self._under_way.pop(group, None)
        left: Members = {}
        for leaf in self._forest.leaves(group):
            left |= self._beside[PENDING].pop(leaf, {})
        if before is None or not left:
            return
        root = self._forest.get(group)
        if root is None:
            for queued in left.values():
                self._add_member(queued, SCHEDULE_ATTEMPT_FAILURE, now_s)
            return
        entry = _entry_of(root, left)
        entry.queued_at_s, entry.initial_attempt_at_s = before.queued_at_s, before.initial_attempt_at_s
        entry.attempts = before.attempts
        if status.is_success:
            if not any(key in before.members for key in left):
                entry.queued_at_s = now_s
            how = Requeue.IMMEDIATELY
        else:
            entry.unschedulable_count = before.unschedulable_count + status.is_rejected
            entry.consecutive_errors = 0 if status.is_rejected else before.consecutive_errors + 1
            entry.queued_at_s = now_s
            entry.backoff_until_s = self._pods.backoff.expiry_s(entry, sqrt(len(left)))
            how = Requeue.AFTER_BACKOFF
        self._enter(entry, how, SCHEDULE_ATTEMPT_FAILURE, now_s)

    # -- changes of groups ---------------------------------------------------------------------------------------------

    def call_group(self, group: str, keys: Iterable[PodKey], event: ClusterEvent, now_s: float) -> None:
        """Pods of which no group is missing any more enter, too."""
        root = self._root(group)
        if root is None:
            return
        incomplete = self._beside[INCOMPLETE]
        came: Members = {}
        for leaf in list(self._forest.leaves(root.group_key)) if incomplete else ():
            came |= incomplete.pop(leaf, {})
        if came and root.group_key not in self._entries and root.group_key not in self._under_way:
            self._enter(_entry_of(root, came), Requeue.IMMEDIATELY, event.label, now_s)
        else:
            for queued in came.values():
                self._add_member(queued, event.label, now_s)
        entry = self._entries.get(root.group_key)
        if entry is not None:
            super().reconsider_held((entry.key,), event, now_s)

    def reconsider_held(self, keys: Iterable[PodKey], event: ClusterEvent, now_s: float) -> None:
        super().reconsider_held(self._entries_of(keys), event, now_s)

    def group_gone(self, group: AnyGroup, now_s: float) -> None:
        """Its pods, and those of all groups below, have to wait for it."""
        parent = self._forest.parent_of(group)
        leaves = set(self._forest.leaves(group.group_key))
        for leaf in leaves:
            if left := self._beside[PENDING].pop(leaf, {}):
                self._beside[INCOMPLETE].setdefault(leaf, {}).update(left)
        entry = self._entries.get(self._forest.root_of(parent) if parent else group.group_key)
        if entry is None:
            return
        stay = {key: queued for key, queued in entry.members.items() if group_key_of(queued.info.pod) not in leaves}
        gone = {key: queued for key, queued in entry.members.items() if key not in stay}
        if not stay:
            self._take_out(entry)
        else:
            for key in gone:
                del self._homes[key], entry.members[key]
            self._pods.again(entry, UNSCHEDULED_POD_UPDATE.label)
            super().reconsider_held((entry.key,), UNSCHEDULED_POD_UPDATE, now_s)  # perhaps by a pod that is apart now
        for key, queued in gone.items():
            self._beside[INCOMPLETE].setdefault(group_key_of(queued.info.pod), {})[key] = queued

    def activate(self, keys: Iterable[PodKey], now_s: float) -> None:
        super().activate(self._entries_of(keys), now_s)

    def reconsider_gated(self, keys: Iterable[PodKey], now_s: float) -> None:
        super().reconsider_gated(self._entries_of(keys), now_s)

    def hold_may_be_over(self, keys: Iterable[PodKey]) -> None:
        super().hold_may_be_over(self._entries_of(keys))

    def is_held_with(self, key: PodKey, together: str) -> bool:
        entry = self._homes.get(key)
        if entry is None:
            return super().is_held_with(key, together)
        hold = entry.hold
        return hold is not None and hold.together in (together, entry.group) and hold.lasts()

    def _entries_of(self, keys: Iterable[PodKey]) -> list[PodKey]:
        """The keys of the entries that these pods are in; of others, their own."""
        homes = self._homes
        return list(dict.fromkeys(homes[key].key if key in homes else key for key in keys))

    def take_profiles(self, profiles: Mapping[str, QueueProfile], now_s: float) -> None:
        for queued in self.members():
            queued.profile = profiles[queued.info.spec.scheduler_name]
            queued.hold = None
        super().take_profiles(profiles, now_s)

    def members(self) -> Iterator[QueuedPodInfo]:
        """All pods of groups that wait."""
        for entry in self._entries.values():
            yield from entry.members.values()
        for place in self._beside.values():
            for members in place.values():
                yield from members.values()

    def beside(self, place: str) -> list[QueuedPodInfo]:
        return [queued for members in self._beside[place].values() for queued in members.values()]


def _entry_of(root: AnyGroup, members: Members) -> QueuedGroup:
    """Of the group's priority, whatever its pods have."""
    first = next(iter(members.values()))
    pod = first.info.pod
    stand_in = PodInfo(replace(pod, spec=replace(pod.spec, priority=root.priority)), first.info.signature)
    entry = QueuedGroup(root.group_key, first, stand_in)
    entry.members.update(members)
    return entry


def _of_each(tell: Callable[..., None] | None) -> Callable[..., None] | None:
    """What happens to a group happens to each of its pods."""
    if tell is None:
        return None

    def tell_of_each(queued: QueuedPodInfo, *what: object) -> None:
        for one in queued.members.values() if isinstance(queued, QueuedGroup) else (queued,):
            tell(one, *what)

    return tell_of_each


class GroupContents(QueueContents):
    """Shows pods, those of groups among them, wherever they wait."""

    def __init__(self, queue: GroupQueue) -> None:
        super().__init__(queue._pods, queue._in_flight, queue._hints)
        self._queue = queue

    @property
    def active(self) -> list[QueuedPodInfo]:
        return _pods_of(super().active)

    @property
    def backoff(self) -> list[QueuedPodInfo]:
        return _pods_of(super().backoff)

    @property
    def unschedulable(self) -> list[QueuedPodInfo]:
        return _pods_of(super().unschedulable)

    @property
    def gated(self) -> list[QueuedPodInfo]:
        """Pods without a PodGroup, and those that wait for the attempt of their group to end, among them."""
        return [*_pods_of(super().gated), *self._queue.beside(INCOMPLETE), *self._queue.beside(PENDING)]

    def find(self, key: PodKey) -> QueuedPodInfo | None:
        return super().find(key) or self._queue.member(key)

    def place_of(self, queued: QueuedPodInfo) -> str:
        place = self._queue.place_of_member(queued.key)
        if isinstance(place, QueuedGroup):
            return super().place_of(place)
        return place or super().place_of(queued)

    def __len__(self) -> int:
        return sum(map(len, (self.active, self.backoff, self.unschedulable, self.gated)))

    def lengths(self) -> tuple[int, int, int]:
        return len(self.active), len(self.backoff), len(self.unschedulable) + len(self.gated)

    def unschedulable_pods(self) -> Counter[tuple[str, str]]:
        waiting = (*self.active, *self.backoff, *self.unschedulable, *self.gated)
        return Counter((plugin, queued.info.spec.scheduler_name) for queued in waiting for plugin in queued.rejectors)

    def pending_pods(self) -> dict[str, int]:
        pods = (self.active, self.backoff, self.unschedulable, _pods_of(super().gated))
        counts = dict(zip((ACTIVE, BACKOFF, UNSCHEDULABLE, GATED), map(len, pods), strict=True))
        return counts | {place: len(self._queue.beside(place)) for place in (INCOMPLETE, PENDING)}


def _pods_of(entries: Iterable[QueuedPodInfo]) -> list[QueuedPodInfo]:
    """Those of groups in the place of their entries."""
    found: list[QueuedPodInfo] = []
    for queued in entries:
        found.extend(queued.members.values() if isinstance(queued, QueuedGroup) else (queued,))
    return found
