"""Pods that wait out their backoff: 1 s after the first failure, doubling to 10 s.

The end of a backoff is rounded down to whole seconds, and so is the time it is compared with: within such a window of
a second, pods stand in the order of the active queue, so that one popped early is the most important of those about to
be due. Pods that failed by an error wait apart and are never popped early: the wait is there to spare the API server.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import floor, inf

from kubesched.scheduler.queue.heap import PodHeap
from kubesched.scheduler.queue.profile import QueueSettings
from kubesched.scheduler.queue.queued_pod import Order, QueuedPodInfo

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

    def expiry_s(self, queued: QueuedPodInfo) -> float:
        """When the pod's backoff ends, given its failures and when it came back; -inf if it has none."""
        failures = queued.consecutive_errors or queued.unschedulable_count
        if self._max_s == 0 or failures == 0:
            return -inf
        wait_s = min(self._initial_s * 2 ** min(failures - 1, _MOST_DOUBLINGS), self._max_s)
        return self._window(queued.queued_at_s + wait_s)

    def is_backing_off(self, queued: QueuedPodInfo, now_s: float) -> bool:
        """A backoff that ends in the current window is not over yet."""
        return queued.backoff_until_s >= self._window(now_s)

    def push(self, queued: QueuedPodInfo, sort_key: tuple[float, ...]) -> None:
        heap = self._after_rejection if queued.is_rejected else self._after_error
        heap.push(queued, self._order(heap, queued, sort_key))

    def reorder(self, queued: QueuedPodInfo, sort_key: tuple[float, ...]) -> None:
        heap = queued.heap
        assert heap is not None
        heap.reorder(queued, self._order(heap, queued, sort_key))

    def pop_early(self) -> QueuedPodInfo | None:
        """The first of those that were rejected, due or not."""
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
