"""Many timers for the price of one: what is due within the same tick is called together.

Thousands of pods and nodes wait for something; the event loop has one timer for all of them.
"""

from __future__ import annotations

import asyncio
import heapq
import math
from collections.abc import Callable

TICK_S = 0.02

Call = Callable[[], None]


class TimerWheel:
    """Never early, and late by a tick at most. Times are those of the event loop."""

    def __init__(self, tick_s: float = TICK_S) -> None:
        self._tick_s = tick_s
        self._slots: dict[int, list[Call]] = {}
        self._order: list[int] = []
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False

    def after(self, for_s: float, call: Call) -> None:
        if self._is_closed:
            return
        events = asyncio.get_running_loop()
        slot = math.ceil((events.time() + max(0.0, for_s)) / self._tick_s)
        calls = self._slots.get(slot)
        if calls is not None:
            calls.append(call)
            return
        self._slots[slot] = [call]
        heapq.heappush(self._order, slot)
        if self._order[0] == slot:
            self._set_timer(events)

    def close(self) -> None:
        """Nothing is called any more."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._slots.clear()
        self._order.clear()

    def _set_timer(self, events: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = events.call_at(self._order[0] * self._tick_s, self._turn)

    def _turn(self) -> None:
        events = asyncio.get_running_loop()
        self._timer = None
        now = events.time() + self._tick_s / 2
        while self._order and self._order[0] * self._tick_s <= now:
            for call in self._slots.pop(heapq.heappop(self._order)):
                call()
        if self._order and self._timer is None:
            self._set_timer(events)
