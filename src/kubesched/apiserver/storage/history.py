"""The kept changes of one resource and those who wait for more.

Positions count all changes ever published for the resource, so a reader's position stays right when old changes are
dropped. ``memory.py`` publishes and drops.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence

from kubesched.apiserver.storage.store import CompactedError, StoredChange


class ResourceHistory:
    """The published changes of one resource."""

    def __init__(self, floor: int) -> None:
        self._changes: list[StoredChange] = []
        self._first = 0  # position of self._changes[0]
        self._floor = floor  # everything up to this revision may be missing
        self._waiters: set[asyncio.Future[None]] = set()

    def publish(self, changes: Sequence[StoredChange]) -> None:
        self._changes.extend(changes)
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()

    def drop_through(self, revision: int) -> None:
        """Forget all changes up to and including the revision."""
        n = bisect_right(self._changes, revision, key=lambda change: change.revision)
        del self._changes[:n]
        self._first += n
        self._floor = max(self._floor, revision)

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
        if position < self._first + len(self._changes):
            return True
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await asyncio.wait((waiter,), timeout=timeout_s)
            return waiter.done()
        finally:
            self._waiters.discard(waiter)
