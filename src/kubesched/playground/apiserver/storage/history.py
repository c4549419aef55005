"""The kept changes of one resource and those who wait for more.

Positions count all changes ever published for the resource, so a reader's position stays right when old changes are
dropped. Who waits is told at once after a quiet moment, and otherwise a few milliseconds later together with all
others: one large write for each watcher costs much less than many small ones. ``memory.py`` publishes and drops.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence

from kubesched.playground.apiserver.storage.store import CompactedError, StoredChange

TOLD_EVERY_S = 0.005
_KEEP_LINES_OF = 2_000
"""So many newest changes keep their encodings for watchers that are a little behind; older ones are encoded again."""


class ResourceHistory:
    """The published changes of one resource."""

    def __init__(self, floor: int) -> None:
        self._changes: list[StoredChange] = []
        self._first = 0  # position of self._changes[0]
        self._floor = floor  # everything up to this revision may be missing
        self._waiters: set[asyncio.Future[bool]] = set()
        self._told_at_s = 0.0
        self._telling: asyncio.TimerHandle | None = None
        self.shared: dict[tuple[object, ...], bytes] = {}

    def publish(self, changes: Sequence[StoredChange]) -> None:
        self._changes.extend(changes)
        self.shared.clear()
        for change in self._changes[-_KEEP_LINES_OF - len(changes) : -_KEEP_LINES_OF]:
            change.lines.clear()
        if not self._waiters or self._telling is not None:
            return
        loop = asyncio.get_running_loop()
        due_s = self._told_at_s + TOLD_EVERY_S
        if loop.time() >= due_s:
            self.tell()
        else:
            self._telling = loop.call_at(due_s, self.tell)

    def tell(self) -> None:
        """Wakes everybody who waits."""
        if self._telling is not None:
            self._telling.cancel()
            self._telling = None
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(True)
        if self._waiters:
            self._told_at_s = asyncio.get_running_loop().time()
            self._waiters.clear()

    def drop_through(self, revision: int) -> None:
        """Forget all changes up to and including the revision."""
        n = bisect_right(self._changes, revision, key=lambda change: change.revision)
        del self._changes[:n]
        self._first += n
        self._floor = max(self._floor, revision)
        self.shared.clear()

    def position_after(self, revision: int) -> int:
        if revision < self._floor:
            raise CompactedError(self._floor)
        return self._first + bisect_right(self._changes, revision, key=lambda change: change.revision)

    def read(self, position: int) -> Sequence[StoredChange]:
        if position < self._first:
            raise CompactedError(self._floor)
        return self._changes[position - self._first :]

    def newer_than(self, revision: int) -> Sequence[StoredChange]:
        return self._changes[self.position_after(revision) - self._first :]

    async def wait_beyond(self, position: int, timeout_s: float) -> bool:
        if position < self._first + len(self._changes) and self._telling is None:
            return True
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._waiters.add(waiter)
        timer = loop.call_later(timeout_s, _give_up, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiters.discard(waiter)
        return position < self._first + len(self._changes)


def _give_up(waiter: asyncio.Future[bool]) -> None:
    if not waiter.done():
        waiter.set_result(False)
