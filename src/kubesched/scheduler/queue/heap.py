"""A heap of pods: the least goes first, and of equals whoever came first. Pods in the middle can leave, too.

Most pods come in the order in which they will go (same priority, later and later). Those stand in a line, which costs
nothing to keep in order; only those that must overtake somebody go into a heap beside it.

A pod that leaves is only marked; its entry stays until it comes first, or until such entries are in the majority.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from kubesched.scheduler.queue.queued_pod import Order, QueuedPodInfo

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
