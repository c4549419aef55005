"""What is to be looked at: each key once, however often it was asked for; later again, and later still after failures.

A key that is added while it is worked on is handed out again afterwards, never to two workers at a time. Waiting is
done by timers of the event loop.

`end_all` ends background tasks for sure. A cancellation can get lost where it meets the end of what a task waits for
(`asyncio.wait_for` before Python 3.12 takes the answer and forgets the cancellation). Who then waits for the task waits
forever: so it is cancelled again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

AGAIN_S = 1.0


async def end_all(tasks: Iterable[asyncio.Task[Any]], again_s: float = AGAIN_S) -> None:
    """Returns when all have ended, however they did."""
    ending = list(tasks)
    pending = {task for task in ending if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=again_s)
    await asyncio.gather(*ending, return_exceptions=True)


FIRST_BACKOFF_S = 0.005
LONGEST_BACKOFF_S = 60.0


class WorkQueue:
    """Keys are `namespace/name` or bare names. One event loop, no threads."""

    def __init__(self, first_backoff_s: float = FIRST_BACKOFF_S, longest_backoff_s: float = LONGEST_BACKOFF_S) -> None:
        self._first_s = first_backoff_s
        self._longest_s = longest_backoff_s
        self._waiting: dict[str, None] = {}
        self._working: set[str] = set()
        self._again: set[str] = set()
        self._n_failures: dict[str, int] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._filled = asyncio.Event()
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def is_idle(self) -> bool:
        """Nothing waits and no worker is busy; timers may be set."""
        return not self._waiting and not self._working

    def add(self, key: str) -> None:
        if self._is_closed:
            return
        if key in self._working:
            self._again.add(key)
            return
        self._waiting[key] = None
        self._filled.set()

    def add_after(self, key: str, for_s: float) -> None:
        """The soonest of several such wishes counts."""
        if for_s <= 0:
            self.add(key)
            return
        if self._is_closed:
            return
        events = asyncio.get_running_loop()
        known = self._timers.get(key)
        if known is not None and known.when() <= events.time() + for_s:
            return
        if known is not None:
            known.cancel()
        self._timers[key] = events.call_later(for_s, self._due, key)

    async def take(self) -> str:
        """The next key; call `done` with it."""
        while not self._waiting:
            self._filled.clear()
            await self._filled.wait()
        key = next(iter(self._waiting))
        del self._waiting[key]
        self._working.add(key)
        return key

    def done(self, key: str) -> None:
        self._working.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def failed(self, key: str) -> float:
        """Try again later; how much later is returned."""
        n = self._n_failures.get(key, 0)
        self._n_failures[key] = n + 1
        wait_s = min(self._first_s * 2.0 ** min(n, 40), self._longest_s)
        self.add_after(key, wait_s)
        return wait_s

    def succeeded(self, key: str) -> None:
        self._n_failures.pop(key, None)

    def close(self) -> None:
        """Nothing is handed out later any more."""
        self._is_closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._waiting.clear()

    def _due(self, key: str) -> None:
        self._timers.pop(key, None)
        self.add(key)
