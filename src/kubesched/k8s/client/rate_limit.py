"""The client-side rate limit: `qps` requests a second in the long run, `burst` at once, first come first served.

It keeps one number, the time at which the bucket would be empty again (a "virtual schedule"), so a request costs one
comparison and no queue: whoever comes later gets a later time. `qps <= 0` means no limit.

Next: `rest`, which waits here before each attempt.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[object]]


class RateLimiter:
    """`await limiter.wait()` returns when the request may go out."""

    def __init__(self, qps: float, burst: int, *, clock: Clock = time.monotonic, sleep: Sleep = asyncio.sleep) -> None:
        self._gap_s = 1.0 / qps if qps > 0 else 0.0
        self._ahead_s = self._gap_s * max(burst - 1, 0)
        self._clock = clock
        self._sleep = sleep
        self._next_s = float("-inf")

    async def wait(self) -> None:
        if not self._gap_s:
            return
        now_s = self._clock()
        at_s = max(self._next_s, now_s)
        self._next_s = at_s + self._gap_s
        delay_s = at_s - self._ahead_s - now_s
        if delay_s <= 0:
            return
        try:
            await self._sleep(delay_s)
        except BaseException:
            self._next_s -= self._gap_s  # who gave up waiting leaves the place to those who come after
            raise
