"""The store in memory: the current objects, the history of changes with those who wait for more, and the revisions.

Guarantees what ``store.py`` says, durable only as long as the process lives. History is bounded by count and bytes;
what falls out moves ``compacted`` forward. ``sqlite.py`` builds the durable store on this one.

Positions count all changes ever published for a resource, so a reader's position stays right when old changes are
dropped. Who waits is called at once after a quiet moment, and otherwise a few milliseconds later together with all
others: one large write for each watcher costs much less than many small ones.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from kubesched.playground.apiserver.storage.store import (
    CompactedError,
    FieldsOf,
    ObjectKey,
    ObjectTooLargeError,
    RevisionConflictError,
    Stored,
    StoredChange,
)

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


FIRST_REVISION = 100
"""The counter begins here, so that no small made-up version ever names an existing state."""

MOST_OBJECT_BYTES = 3 * 512 * 1024
"""As etcd, which takes requests of 1.5 MiB; here it is the object as JSON."""

_FORGOTTEN_AT_ONCE = 16
"""When there is too much history, one part in so many goes: little enough that nobody notices the pause."""

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """How much of the past is kept for watches and exact lists."""

    changes: int = 50_000
    total_bytes: int = 192 * 1024 * 1024


class _Table:
    """The current objects of one resource, with their sorted keys when somebody lists."""

    def __init__(self) -> None:
        self.objects: dict[ObjectKey, Stored] = {}
        self._sorted: list[ObjectKey] | None = None

    def set(self, stored: Stored) -> None:
        if stored.key not in self.objects:
            self._sorted = None
        self.objects[stored.key] = stored

    def remove(self, key: ObjectKey) -> None:
        del self.objects[key]
        self._sorted = None

    def in_order(self) -> list[Stored]:
        if self._sorted is None:
            self._sorted = sorted(self.objects)
        return [self.objects[key] for key in self._sorted]


class MemoryStore:
    """Objects, revisions and history of one process."""

    def __init__(self, limits: HistoryLimits | None = None) -> None:
        self._limits = limits or HistoryLimits()
        self._tables: dict[str, _Table] = {}
        self._histories: dict[str, ResourceHistory] = {}
        self._kept: deque[StoredChange] = deque()
        self._kept_bytes = 0
        self._revision = FIRST_REVISION
        self._compacted = FIRST_REVISION
        self._oldest_list = FIRST_REVISION
        self._published = FIRST_REVISION

    @property
    def revision(self) -> int:
        return self._revision

    @property
    def compacted(self) -> int:
        return self._compacted

    @property
    def published(self) -> int:
        return self._published

    @property
    def failure(self) -> str:
        return ""

    def get(self, resource: str, key: ObjectKey) -> Stored | None:
        table = self._tables.get(resource)
        return table.objects.get(key) if table else None

    def list(self, resource: str, namespace: str = "") -> Sequence[Stored]:
        table = self._tables.get(resource)
        if table is None:
            return []
        if not namespace:
            return table.in_order()
        return [stored for stored in table.in_order() if stored.key.namespace == namespace]

    def list_at(self, resource: str, namespace: str, revision: int) -> Sequence[Stored]:
        oldest = max(self._compacted, self._oldest_list)
        if revision < oldest:
            raise CompactedError(oldest)
        objects = {stored.key: stored for stored in self.list(resource, namespace)}
        for change in reversed(self.history(resource).newer_than(revision)):
            if namespace and change.now.key.namespace != namespace:
                continue
            if change.before is None:
                objects.pop(change.now.key, None)
            else:
                objects[change.now.key] = change.before
        return [objects[key] for key in sorted(objects)]

    def put(
        self, resource: str, key: ObjectKey, obj: dict[str, Any], fields: FieldsOf, expected: int | None = None
    ) -> Stored:
        self._check_writable()
        before = self.get(resource, key)
        if expected is not None and expected != (before.revision if before else 0):
            raise RevisionConflictError(f"{resource} {key} is not at revision {expected}")
        stored = self._next_state(key, obj, fields)
        if len(stored.raw) > MOST_OBJECT_BYTES:
            raise ObjectTooLargeError("etcdserver: request is too large")
        self._table(resource).set(stored)
        self._record(StoredChange("MODIFIED" if before else "ADDED", resource, stored.revision, stored, before))
        return stored

    def delete(self, resource: str, key: ObjectKey, obj: dict[str, Any], fields: FieldsOf) -> Stored:
        self._check_writable()
        before = self._tables[resource].objects[key]
        stored = self._next_state(key, obj, fields)
        self._tables[resource].remove(key)
        self._record(StoredChange("DELETED", resource, stored.revision, stored, before))
        return stored

    def history(self, resource: str) -> ResourceHistory:
        history = self._histories.get(resource)
        if history is None:
            history = self._histories[resource] = ResourceHistory(self._compacted)
        return history

    def wake(self) -> None:
        for history in self._histories.values():
            history.tell()

    def compact(self, revision: int) -> None:
        """Forget the history up to the revision."""
        while self._kept and self._kept[0].revision <= revision:
            change = self._kept.popleft()
            self._kept_bytes -= len(change.now.raw)
            self._forget(change)
        self._compacted = max(self._compacted, revision)
        for history in self._histories.values():
            history.drop_through(self._compacted)

    def expire_lists(self, revision: int) -> None:
        self._oldest_list = max(self._oldest_list, revision)

    async def settle(self) -> None:
        return

    async def close(self) -> None:
        return

    def _table(self, resource: str) -> _Table:
        return self._tables.setdefault(resource, _Table())

    def _next_state(self, key: ObjectKey, obj: dict[str, Any], fields: FieldsOf) -> Stored:
        self._revision += 1
        metadata = obj["metadata"]
        metadata["resourceVersion"] = str(self._revision)
        return Stored(key, self._revision, _encode(obj), metadata.get("labels") or {}, fields(obj))

    def _check_writable(self) -> None:
        """Raises StoreFailedError while nothing can be written; memory always can."""

    def _record(self, change: StoredChange) -> None:
        """A write happened; here it is durable at once."""
        self._publish((change,))

    def _forget(self, change: StoredChange) -> None:
        """A change leaves the history; what it replaced is of no use any more."""

    def _publish(self, changes: Sequence[StoredChange]) -> None:
        by_resource: dict[str, list[StoredChange]] = {}
        for change in changes:
            by_resource.setdefault(change.resource, []).append(change)
            self._kept_bytes += len(change.now.raw)
        self._kept.extend(changes)
        self._published = max(self._published, changes[-1].revision)
        for resource, own in by_resource.items():
            self.history(resource).publish(own)
        if len(self._kept) > self._limits.changes or self._kept_bytes > self._limits.total_bytes:
            self.compact(self._kept[len(self._kept) // _FORGOTTEN_AT_ONCE].revision)
