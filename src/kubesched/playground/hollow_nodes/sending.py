"""Writes and timers of many kubelets for the price of one.

Writes go out some at a time, in order of their coming, tried again when the server does not answer. What the server
refuses because the object is gone or another one by now is let go.

Thousands of pods and nodes wait for something; the event loop has one timer for all of them, and what is due within the
same tick is called together.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import math
from collections import deque
from collections.abc import Awaitable, Callable

from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable
from kubesched.k8s.client.work_queue import end_all

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


AT_ONCE = 32
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0

Write = Callable[[], Awaitable[None]]
_log = logging.getLogger("kubesched.kubelets")


class Sender:
    def __init__(self, wheel: TimerWheel, at_once: int = AT_ONCE) -> None:
        self._wheel = wheel
        self._at_once = at_once
        self._waiting: deque[tuple[str, Write, int]] = deque()
        self._filled = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._work(), name=f"kubelet writes {n}") for n in range(self._at_once)]

    async def stop(self) -> None:
        await end_all(self._tasks)

    def send(self, what: str, write: Write, n_failures: int = 0) -> None:
        self._waiting.append((what, write, n_failures))
        self._filled.set()

    async def _work(self) -> None:
        while True:
            while not self._waiting:
                self._filled.clear()
                await self._filled.wait()
            what, write, n_failures = self._waiting.popleft()
            try:
                await write()
            except ApiError as error:
                if error.status in (404, 409):
                    continue
                self._again(what, write, n_failures, error)
            except (Unreachable, AnswerLost) as failure:
                self._again(what, write, n_failures, failure)

    def _again(self, what: str, write: Write, n_failures: int, failure: Exception) -> None:
        wait_s = min(FIRST_WAIT_S * 2.0 ** min(n_failures, 20), LONGEST_WAIT_S)
        fields = {"object": what, "err": str(failure), "again_in_s": wait_s}
        _log.warning("A kubelet could not write", extra={"fields": fields})
        self._wheel.after(wait_s, lambda: self.send(what, write, n_failures + 1))
