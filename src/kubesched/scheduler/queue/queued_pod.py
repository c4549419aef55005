"""A pod in the queue with what is remembered of it between attempts, and the heap that such pods wait in.

The heap pops the least pod first, and of equals the one that was added first; any other pod can be removed, too. Most
pods are added in the order in which they will be popped (same priority, later and later). Those stand in a line, which
costs nothing to keep in order; only those that must overtake others go into a heap beside it. A pod that is removed is
only marked; its entry stays until it comes first, or until such entries are in the majority.

Next: `sub_queues`, where a pod can be.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from math import inf

from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Hold
from kubesched.k8s.model.meta import PodKey
from kubesched.scheduler.queue.profile import QueueProfile

Order = tuple[object, ...]
"""What pods are compared by: a key of `sort_key`, or one that contains it."""

NO_PLUGINS: frozenset[str] = frozenset()


class QueuedPodInfo:
    """Lives from the pod's arrival until it is bound or deleted; the same object whenever it is popped.

    The loop sets `info`, `unschedulable_plugins` and `pending_plugins` while the pod is in flight; the rest is the
    queue's to write.
    """

    __slots__ = (
        "arrival",
        "attempts",
        "backoff_until_s",
        "consecutive_errors",
        "flight_start",
        "flushed_at_s",
        "gating_plugin",
        "heap",
        "hold",
        "info",
        "initial_attempt_at_s",
        "key",
        "order",
        "pending_plugins",
        "pops_early",
        "profile",
        "queued_at_s",
        "uid",
        "unschedulable_count",
        "unschedulable_plugins",
        "was_flushed",
    )

    def __init__(self, info: PodInfo, profile: QueueProfile, now_s: float) -> None:
        self.info = info
        self.profile = profile
        self.key: PodKey = info.key
        self.uid = info.uid
        self.queued_at_s = now_s
        """When it came, or came back from its last attempt. Moving between sub-queues does not change it."""
        self.initial_attempt_at_s: float | None = None
        """When it could be attempted for the first time."""
        self.attempts = 0
        self.unschedulable_count = 0
        """Attempts that ended in a rejection."""
        self.consecutive_errors = 0
        """Attempts that broke, since the last that did not."""
        self.unschedulable_plugins = NO_PLUGINS
        self.pending_plugins = NO_PLUGINS
        """Who rejected it last, and of those with Pending: such a pod skips its backoff."""
        self.gating_plugin = ""
        """The plugin that gates it at PreEnqueue; empty if none does."""
        self.hold: Hold | None = None
        """How that was said, if it can be asked whether it lasts."""
        self.backoff_until_s = -inf
        self.pops_early = True
        """Whether it may be tried before its backoff is over, if plugins rejected it."""
        self.flushed_at_s = -inf
        self.was_flushed = False
        """Whether it is being attempted only because it was unschedulable for too long."""
        self.heap: PodHeap | None = None
        self.order: Order = ()
        self.arrival = 0
        """Where it stands, if in a heap; these three are written by `PodHeap` alone."""
        self.flight_start = 0
        """From where on the log of changes concerns it; for `InFlightPods` alone."""

    @property
    def is_gated(self) -> bool:
        return self.gating_plugin != ""

    @property
    def is_still_gated(self) -> bool:
        """Whether the plugin that held the pod back would do so again."""
        gate = self.profile.gates.get(self.gating_plugin) if self.gating_plugin else None
        return gate is not None and not gate(self.info).is_success

    @property
    def is_rejected(self) -> bool:
        """Whether plugins rejected it; one without rejections failed with an error, or is new."""
        return bool(self.unschedulable_plugins or self.pending_plugins)

    @property
    def rejectors(self) -> frozenset[str]:
        """All plugins that rejected it, with Pending or otherwise."""
        pending = self.pending_plugins
        return self.unschedulable_plugins | pending if pending else self.unschedulable_plugins

    @property
    def parked_since_s(self) -> float:
        """Since when it could have been waiting for a change."""
        return max(self.queued_at_s, self.flushed_at_s)

    def __repr__(self) -> str:
        return f"QueuedPodInfo({self.key})"


_Entry = tuple[Order, int, QueuedPodInfo]
"""Arrivals are numbered, so that a comparison never gets to the pod."""

_FEW = 64


class PodHeap:
    """A pod is in one heap at a time, and knows in which."""

    __slots__ = ("_arrivals", "_line", "_overtaking", "_size")

    def __init__(self) -> None:
        self._line: deque[_Entry] = deque()
        self._overtaking: list[_Entry] = []
        self._arrivals = 0
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        """In the order in which they would be popped."""
        return (entry[2] for entry in sorted((*self._line, *self._overtaking)) if self._is_live(entry))

    def push(self, queued: QueuedPodInfo, order: Order) -> None:
        arrival = self._arrivals = self._arrivals + 1
        queued.order = order
        queued.arrival = arrival
        queued.heap = self
        self._size += 1
        line = self._line
        if not line or order >= line[-1][0]:
            line.append((order, arrival, queued))
        else:
            heappush(self._overtaking, (order, arrival, queued))

    def pop(self) -> QueuedPodInfo | None:
        while (entry := self._take_first()) is not None:
            queued = entry[2]
            if queued.arrival == entry[1] and queued.heap is self:
                queued.heap = None
                self._size -= 1
                return queued
        return None

    def peek(self) -> QueuedPodInfo | None:
        while (entry := self._first()) is not None:
            if self._is_live(entry):
                return entry[2]
            self._take_first()
        return None

    def remove(self, queued: QueuedPodInfo) -> None:
        queued.heap = None
        self._size -= 1
        if len(self._line) + len(self._overtaking) > 2 * self._size + _FEW:
            self._line = deque(entry for entry in self._line if self._is_live(entry))
            self._overtaking = [entry for entry in self._overtaking if self._is_live(entry)]
            heapify(self._overtaking)

    def reorder(self, queued: QueuedPodInfo, order: Order) -> None:
        """After the pod changed. Where its order is what it was, it keeps its place among equals."""
        if order != queued.order:
            self.remove(queued)
            self.push(queued, order)

    def _is_live(self, entry: _Entry) -> bool:
        return entry[2].arrival == entry[1] and entry[2].heap is self

    def _first(self) -> _Entry | None:
        if self._overtaking and (not self._line or self._overtaking[0] < self._line[0]):
            return self._overtaking[0]
        return self._line[0] if self._line else None

    def _take_first(self) -> _Entry | None:
        overtaking, line = self._overtaking, self._line
        if overtaking and (not line or overtaking[0] < line[0]):
            return heappop(overtaking)
        return line.popleft() if line else None
