"""The sub-queues, and how a pod gets from one to another: active, backoff, unschedulable; and the pods in flight.

A pod is in one of them only. On its way to active or backoff it must pass PreEnqueue; one that does not goes to the
unschedulable pods, as gated.

Backoff is 1 s after the first failure, doubling to 10 s. Its end is rounded down to whole seconds, and so is the time
it is compared with: within such a window of a second, pods stand in the order of the active queue, so that one popped
early is the most important of those about to be due. Pods that failed with an error wait apart and are never popped
early: the wait is there to spare the API server. So do members of pod groups, of which one would bring all others.

Unschedulable pods are filed under each plugin that rejected them, so that an event costs what it may move, not what
there is; where many wait, also by what the hints of some plugins look for (`subjects`). Those with a hold that ends by
a call are not filed before that.

Pods in flight are popped and not done yet. When an attempt fails, the events since it began are replayed for the pod:
it was in no queue from which they could have moved it, and would miss them otherwise.

Next: `scheduling_queue` decides when a pod moves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import floor, inf

from kubesched.framework.status import OK, Hold, Status
from kubesched.k8s.model.meta import PodKey
from kubesched.scheduler.queue.hints import ClusterChange, Requeue
from kubesched.scheduler.queue.profile import QueueSettings
from kubesched.scheduler.queue.queued_pod import Order, PodHeap, QueuedPodInfo
from kubesched.scheduler.queue.subjects import PodsBySubject, concerned_by_subject

_MOST_DOUBLINGS = 62


class BackoffQueue:
    """Two heaps as one queue."""

    __slots__ = ("_after_error", "_after_rejection", "_initial_s", "_max_s", "_windows")

    def __init__(self, settings: QueueSettings) -> None:
        self._after_rejection = PodHeap()
        self._after_error = PodHeap()
        self._initial_s = settings.initial_backoff_s
        self._max_s = settings.max_backoff_s
        self._windows = settings.pop_from_backoff

    def __len__(self) -> int:
        return len(self._after_rejection) + len(self._after_error)

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        yield from self._after_rejection
        yield from self._after_error

    def expiry_s(self, queued: QueuedPodInfo, most: float = 1.0) -> float:
        """When the pod's backoff ends, given its failures and when it came back; -inf if it has none. It grows up to
        `most` times the usual limit."""
        failures = queued.consecutive_errors or queued.unschedulable_count
        if self._max_s == 0 or failures == 0:
            return -inf
        wait_s = min(self._initial_s * 2 ** min(failures - 1, _MOST_DOUBLINGS), self._max_s * most)
        return self._window(queued.queued_at_s + wait_s)

    def is_backing_off(self, queued: QueuedPodInfo, now_s: float) -> bool:
        """A backoff that ends in the current window is not over yet."""
        return queued.backoff_until_s >= self._window(now_s)

    def push(self, queued: QueuedPodInfo, sort_key: tuple[float, ...]) -> None:
        heap = self._after_rejection if queued.is_rejected and queued.pops_early else self._after_error
        heap.push(queued, self._order(heap, queued, sort_key))

    def reorder(self, queued: QueuedPodInfo, sort_key: tuple[float, ...]) -> None:
        heap = queued.heap
        assert heap is not None
        heap.reorder(queued, self._order(heap, queued, sort_key))

    def pop_early(self, now_s: float) -> QueuedPodInfo | None:
        """The first of those that were rejected, due or not. A member of a pod group that came back this instant has to
        wait for the next one: it would bring its whole group back forever where time does not pass meanwhile."""
        first = self._after_rejection.peek()
        if first is not None and first.queued_at_s >= now_s and first.info.pod.spec.scheduling_group is not None:
            return None
        return self._after_rejection.pop()

    def pop_completed(self, now_s: float) -> list[QueuedPodInfo]:
        """All whose backoff was over when the current second began."""
        second = floor(now_s)
        completed = []
        for heap in (self._after_rejection, self._after_error):
            while (first := heap.peek()) is not None and first.backoff_until_s < second:
                heap.pop()
                completed.append(first)
        return completed

    def next_deadline_s(self) -> float | None:
        """When `pop_completed` has something to give."""
        heads = [first for heap in (self._after_rejection, self._after_error) if (first := heap.peek()) is not None]
        return min((floor(first.backoff_until_s) + 1.0 for first in heads), default=None)

    def _order(self, heap: PodHeap, queued: QueuedPodInfo, sort_key: tuple[float, ...]) -> Order:
        if self._windows and heap is self._after_rejection:
            return (queued.backoff_until_s, sort_key)
        return (queued.backoff_until_s,)

    def _window(self, moment_s: float) -> float:
        return floor(moment_s) if self._windows else moment_s


class UnschedulablePods:
    """In the order in which they came here."""

    __slots__ = ("_by_subject", "_filed_under", "by_key", "by_plugin", "oldest_s")

    def __init__(self) -> None:
        self.by_key: dict[PodKey, QueuedPodInfo] = {}
        """To look at; mostly empty, which is asked for every change."""
        self.by_plugin: dict[str, dict[PodKey, QueuedPodInfo]] = {}
        """To look at: those that changes concern, by who rejected them. Who is held until it is called is none of
        them."""
        self._filed_under: dict[PodKey, frozenset[str]] = {}
        self._by_subject: dict[str, PodsBySubject] = {}
        """Of some plugins, where many pods wait: the same once more, by what their hints look for."""
        self.oldest_s = inf
        """No pod has waited since earlier than this."""

    def __len__(self) -> int:
        return len(self.by_key)

    def __contains__(self, key: PodKey) -> bool:
        return key in self.by_key

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return iter(self.by_key.values())

    def put(self, queued: QueuedPodInfo) -> bool:
        """Files it under the plugins that reject it now. Whether it was not here before."""
        key = queued.key
        is_new = key not in self.by_key
        if not is_new:
            self._unfile(key)
        self.by_key[key] = queued
        if queued.hold is None or not queued.hold.ends_by_call:
            self._file(queued)
        self.oldest_s = min(self.oldest_s, queued.parked_since_s)
        return is_new

    def remove(self, key: PodKey) -> None:
        if self.by_key.pop(key, None) is not None:
            self._unfile(key)
            if not self.by_key:
                self.oldest_s = inf

    def call(self, key: PodKey) -> None:
        """The pod is held back no more, perhaps: changes concern it again."""
        queued = self.by_key.get(key)
        if queued is not None and key not in self._filed_under:
            self._file(queued)

    def changed(self, queued: QueuedPodInfo) -> None:
        """The pod, which goes on waiting, may ask for something else."""
        if self._by_subject:
            for plugin in self._filed_under.get(queued.key, ()):
                if plugin in self._by_subject:
                    self._by_subject[plugin].changed(queued)

    def concerned(self, change: ClusterChange) -> list[QueuedPodInfo]:
        """Those to which the change may mean something, each once, in the order in which they were filed: of those that
        a plugin rejected which registered for it."""
        by_plugin = self.by_plugin
        if not by_plugin:
            return []
        match = change.match
        groups = [group for plugin in match.plugins if (group := by_plugin.get(plugin))]
        if not groups:
            return []
        if match.subjects and not by_plugin.keys().isdisjoint(match.subjects):
            found = concerned_by_subject(change, by_plugin, self._by_subject)
            if found is not None:
                return found
        if len(groups) == 1:
            return list(groups[0].values())
        merged: dict[PodKey, QueuedPodInfo] = {}
        for group in groups:
            merged.update(group)
        return list(merged.values())

    def waiting_longer_than(self, limit_s: float, now_s: float) -> list[QueuedPodInfo]:
        """Also finds out anew since when the oldest has waited."""
        self.oldest_s = min((queued.parked_since_s for queued in self.by_key.values()), default=inf)
        if now_s - self.oldest_s <= limit_s:
            return []
        return [queued for queued in self.by_key.values() if now_s - queued.parked_since_s > limit_s]

    def _file(self, queued: QueuedPodInfo) -> None:
        plugins = self._filed_under[queued.key] = queued.rejectors
        for plugin in plugins:
            self.by_plugin.setdefault(plugin, {})[queued.key] = queued
        if self._by_subject:
            for plugin in plugins:
                if plugin in self._by_subject:
                    self._by_subject[plugin].add(queued)

    def _unfile(self, key: PodKey) -> None:
        for plugin in self._filed_under.pop(key, ()):
            group = self.by_plugin[plugin]
            del group[key]
            if not group:
                del self.by_plugin[plugin]
            if plugin in self._by_subject:
                if group:
                    self._by_subject[plugin].discard(key)
                else:
                    del self._by_subject[plugin]


ACTIVE = "active"
BACKOFF = "backoff"
UNSCHEDULABLE = "unschedulable"
GATED = "gated"


Moved = Callable[[QueuedPodInfo, str, str], None]
"""(pod, sub-queue, event) -> None: the pod came there."""

Held = Callable[[QueuedPodInfo, Status], None]
"""(pod, what a PreEnqueue plugin says) -> None: the pod is gated."""


class SubQueues:
    """`event` is why a pod moves: kube-scheduler's label for it."""

    def __init__(self, settings: QueueSettings) -> None:
        self._gates_before_backoff = settings.pop_from_backoff
        self.by_key: dict[PodKey, QueuedPodInfo] = {}
        self.active = PodHeap()
        self.backoff = BackoffQueue(settings)
        self.unschedulable = UnschedulablePods()
        self.incoming: dict[str, Counter[str]] = {queue: Counter() for queue in (ACTIVE, BACKOFF, UNSCHEDULABLE)}
        """How many pods came into which sub-queue, by event."""
        self.moved: Moved | None = None
        self.held: Held | None = None

    # -- ways in -------------------------------------------------------------------------------------------------------

    def requeue(self, queued: QueuedPodInfo, how: Requeue, event: str, now_s: float) -> None:
        if how is Requeue.SKIP:
            self._park(queued, event)
        elif how is Requeue.AFTER_BACKOFF and self.backoff.is_backing_off(queued, now_s):
            self._to_backoff(queued, event)
        else:
            self.to_active(queued, event, now_s)

    def to_active(self, queued: QueuedPodInfo, event: str, now_s: float, *, from_backoff: bool = False) -> None:
        has_passed = from_backoff and self._gates_before_backoff
        if not has_passed and not self._passes_gates(queued, event):
            return
        if queued.initial_attempt_at_s is None:
            queued.initial_attempt_at_s = now_s
        if queued.key in self.by_key:
            self._leave(queued)
        self.active.push(queued, queued.profile.sort_key(queued))
        self.by_key[queued.key] = queued
        self.incoming[ACTIVE][event] += 1
        if self.moved is not None:
            self.moved(queued, ACTIVE, event)

    def backoff_completed(self, event: str, now_s: float) -> None:
        """Moves those whose backoff is over."""
        for queued in self.backoff.pop_completed(now_s):
            self.to_active(queued, event, now_s, from_backoff=True)

    def _to_backoff(self, queued: QueuedPodInfo, event: str) -> None:
        if self._gates_before_backoff and not self._passes_gates(queued, event):
            return
        if queued.key in self.by_key:
            self._leave(queued)
        self.backoff.push(queued, queued.profile.sort_key(queued))
        self.by_key[queued.key] = queued
        self.incoming[BACKOFF][event] += 1
        if self.moved is not None:
            self.moved(queued, BACKOFF, event)

    def _park(self, queued: QueuedPodInfo, event: str) -> None:
        if queued.heap is not None:
            queued.heap.remove(queued)
        self.by_key[queued.key] = queued
        if self.unschedulable.put(queued):
            self.incoming[UNSCHEDULABLE][event] += 1
        if self.moved is not None:
            self.moved(queued, UNSCHEDULABLE, event)

    def _passes_gates(self, queued: QueuedPodInfo, event: str) -> bool:
        status = self._asked_to_enter(queued)
        if status is OK:
            return True
        queued.was_flushed = False
        if self.held is not None:
            self.held(queued, status)
        self._park(queued, event)
        return False

    def _asked_to_enter(self, queued: QueuedPodInfo) -> Status:
        """OK, or what holds the pod back, which it remembers; who held it back before is asked first."""
        profile = queued.profile
        gate = profile.gates.get(queued.gating_plugin) if queued.gating_plugin else None
        status = OK if gate is None else gate(queued.info)
        if status is OK or status.is_success:
            status = profile.pre_enqueue(queued.info)
            if status is OK or status.is_success:
                queued.gating_plugin = ""
                queued.hold = None
                return OK
        queued.gating_plugin = status.plugin or queued.gating_plugin
        queued.hold = status if isinstance(status, Hold) else None
        queued.unschedulable_plugins |= {queued.gating_plugin}
        return status

    # -- in place, and ways out ----------------------------------------------------------------------------------------

    def reorder(self, queued: QueuedPodInfo) -> None:
        """The pod, which is active or backing off, changed."""
        sort_key = queued.profile.sort_key(queued)
        if queued.heap is self.active:
            self.active.reorder(queued, sort_key)
        else:
            self.backoff.reorder(queued, sort_key)

    def pop(self) -> QueuedPodInfo | None:
        queued = self.active.pop()
        if queued is not None:
            del self.by_key[queued.key]
        return queued

    def pop_early(self, event: str, now_s: float) -> QueuedPodInfo | None:
        """From those that still back off."""
        queued = self.backoff.pop_early(now_s)
        if queued is not None:
            del self.by_key[queued.key]
            self.incoming[ACTIVE][event] += 1
        return queued

    def remove(self, key: PodKey) -> None:
        queued = self.by_key.pop(key, None)
        if queued is not None:
            self._leave(queued)

    def _leave(self, queued: QueuedPodInfo) -> None:
        if queued.heap is not None:
            queued.heap.remove(queued)
        else:
            self.unschedulable.remove(queued.key)


POD_POPPED = "PodPopped"
_FEW = 64


class InFlightPods:
    """By uid: a pod may be in flight while another of the same name waits already.

    The log is cut where no pod needs its beginning any more; not at every return, but when it has doubled.
    """

    __slots__ = ("_cut_at", "_first", "_log", "by_uid")

    def __init__(self) -> None:
        self.by_uid: dict[str, QueuedPodInfo] = {}
        """To look at."""
        self._log: list[ClusterChange] = []
        self._first = 0
        self._cut_at = _FEW

    def __len__(self) -> int:
        return len(self.by_uid)

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return iter(self.by_uid.values())

    def named(self, key: PodKey) -> list[QueuedPodInfo]:
        """More than one if a pod was deleted during its attempt, and its successor is being tried already."""
        return [queued for queued in self.by_uid.values() if queued.key == key]

    def start(self, queued: QueuedPodInfo) -> None:
        queued.flight_start = self._first + len(self._log)
        self.by_uid[queued.uid] = queued

    def end(self, uid: str) -> None:
        if self.by_uid.pop(uid, None) is None or not self._log:
            return
        if not self.by_uid:
            self._first += len(self._log)
            self._log.clear()
            self._cut_at = _FEW
        elif len(self._log) >= self._cut_at:
            # Pods start in the order in which they stand here, so the first needs the longest part of the log.
            oldest = next(iter(self.by_uid.values())).flight_start
            del self._log[: oldest - self._first]
            self._first = oldest
            self._cut_at = max(_FEW, 2 * len(self._log))

    def record(self, change: ClusterChange) -> None:
        if self.by_uid:
            self._log.append(change)

    def changes_since_start(self, uid: str) -> Sequence[ClusterChange] | None:
        """None if the pod is not in flight."""
        queued = self.by_uid.get(uid)
        return None if queued is None else self._log[queued.flight_start - self._first :]

    def event_counts(self) -> Counter[str]:
        """What is kept in the log, by the label of the event; and the pods."""
        counts = Counter(change.match.label for change in self._log)
        counts[POD_POPPED] = len(self.by_uid)
        return counts
