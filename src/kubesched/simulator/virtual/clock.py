"""Virtual time: what is to happen, in the order of its time, and of its coming where times are equal."""

from __future__ import annotations

import heapq
from collections.abc import Callable

from kubesched.k8s.model.times import print_instant

Happening = Callable[[], None]

_TO_THE_MICROSECOND = 6


class VirtualClock:
    """Stands still until it is told to go on. Times are seconds since the epoch."""

    def __init__(self, start_s: float) -> None:
        self.start_s = start_s
        self.now_s = start_s
        self.elapsed_s = 0.0
        """Since the start, to the microsecond."""
        self._text = ""
        self._heap: list[tuple[float, int, Happening]] = []
        self._n_planned = 0

    def __len__(self) -> int:
        """How much is still to happen."""
        return len(self._heap)

    @property
    def now(self) -> str:
        """The time as an API server writes it."""
        if not self._text:
            self._text = print_instant(self.now_s)
        return self._text

    def at(self, at_s: float, happening: Happening) -> None:
        """What was due in the past happens now."""
        heapq.heappush(self._heap, (max(at_s, self.now_s), self._n_planned, happening))
        self._n_planned += 1

    def after(self, for_s: float, happening: Happening) -> None:
        self.at(self.now_s + for_s, happening)

    def next_s(self) -> float | None:
        return self._heap[0][0] if self._heap else None

    def go_to(self, at_s: float) -> None:
        if at_s > self.now_s:
            self.now_s = at_s
            self.elapsed_s = round(at_s - self.start_s, _TO_THE_MICROSECOND)
            self._text = ""

    def run_due(self) -> bool:
        """Lets everything happen that is due by now, and was so when this began; False if there was nothing."""
        due = []
        while self._heap and self._heap[0][0] <= self.now_s:
            due.append(heapq.heappop(self._heap)[2])
        for happening in due:
            happening()
        return bool(due)
