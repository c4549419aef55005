"""Writes of many kubelets: some at a time, in order of their coming, tried again when the server does not answer.

What the server refuses because the object is gone or another one by now is let go.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable

from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable
from kubesched.k8s.client.work_queue import end_all
from kubesched.playground.hollow_nodes.timer_wheel import TimerWheel

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
