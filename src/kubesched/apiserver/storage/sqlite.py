"""The durable store: the memory store with a log in SQLite, written in groups.

Every write is one row of the log. All writes of a few milliseconds share one transaction, and only after its fsync
are they acknowledged and shown to watches. Opening reads the log back: the newest row of each object is its state,
older rows are the history that watches resume from. Compaction removes rows that are neither. Built on ``memory.py``.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from kubesched.apiserver.kinds.kind import metadata_fields
from kubesched.apiserver.storage.memory import HistoryLimits, MemoryStore
from kubesched.apiserver.storage.store import ChangeType, FieldsOf, ObjectKey, Stored, StoredChange, StoreFailedError

_SCHEMA = """
CREATE TABLE IF NOT EXISTS log (
  revision INTEGER PRIMARY KEY,
  resource TEXT NOT NULL,
  namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  value BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS log_by_object ON log (resource, namespace, name, revision);
CREATE TABLE IF NOT EXISTS numbers (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""
_INSERT = "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)"
_FORGET_SUPERSEDED = """
DELETE FROM log WHERE revision <= :floor AND (
  type = 'DELETED' OR EXISTS (
    SELECT 1 FROM log AS later WHERE later.resource = log.resource AND later.namespace = log.namespace
    AND later.name = log.name AND later.revision > log.revision AND later.revision <= :floor))
"""
_SET_NUMBER = "INSERT INTO numbers VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"


class SqliteStore(MemoryStore):
    """Objects and history that survive."""

    def __init__(self, connection: sqlite3.Connection, limits: HistoryLimits | None = None) -> None:
        super().__init__(limits)
        self._connection = connection
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store-writer")
        self._waiting: list[StoredChange] = []
        self._floor_to_write: int | None = None
        self._written: asyncio.Future[None] | None = None  # of the group that is being written
        self._following: asyncio.Future[None] | None = None  # of the group that collects
        self._failure: str = ""

    @classmethod
    async def open(cls, path: Path, fields: Mapping[str, FieldsOf], limits: HistoryLimits | None = None) -> SqliteStore:
        """Opens or makes the database and reads it back; ``fields`` has the selectable fields of each resource."""
        connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        path.chmod(0o600)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(_SCHEMA)
        store = cls(connection, limits)
        store._load(fields)
        return store

    async def settle(self) -> None:
        """Waits for the group in which the newest write so far is."""
        if self._failure:
            raise StoreFailedError(self._failure)
        group = self._following if self._following is not None else self._written
        if group is not None:
            await asyncio.shield(group)

    async def close(self) -> None:
        if not self._failure:
            await self.settle()
        self._thread.shutdown(wait=True)
        self._connection.close()

    def compact(self, revision: int) -> None:
        super().compact(revision)
        self._floor_to_write = self._compacted
        self._collect()

    def _record(self, change: StoredChange) -> None:
        if self._failure:
            raise StoreFailedError(self._failure)
        self._waiting.append(change)
        self._collect()

    def _collect(self) -> None:
        """Makes sure that what waits is written: at once, or when the group before it is done."""
        loop = asyncio.get_running_loop()
        if self._following is None:
            self._following = loop.create_future()
            self._following.add_done_callback(_forget_failure)
            loop.call_soon(self._write_group)

    def _write_group(self) -> None:
        """Hands all that waits to the writer thread, unless that is still busy."""
        if self._written is not None or self._following is None:
            return
        changes, self._waiting = self._waiting, []
        floor, self._floor_to_write = self._floor_to_write, None
        self._written, self._following = self._following, None
        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self._thread, self._commit, changes, floor)
        done.add_done_callback(lambda result: self._group_done(changes, result))

    def _group_done(self, changes: list[StoredChange], result: asyncio.Future[None]) -> None:
        written, self._written = self._written, None
        assert written is not None
        error = result.exception()
        if error is not None:
            self._fail(error, written)
            return
        if changes:
            self._publish(changes)
        written.set_result(None)
        self._write_group()

    def _fail(self, error: BaseException, written: asyncio.Future[None]) -> None:
        """The disk refused: nobody waiting gets an acknowledgement, and nothing is answered any more."""
        self._failure = f"the store cannot write: {error}"
        following, self._following = self._following, None
        for group in (written, following):
            if group is not None:
                group.set_exception(StoreFailedError(self._failure))

    def _commit(self, changes: list[StoredChange], floor: int | None) -> None:
        """Runs in the writer thread."""
        rows = [(c.revision, c.resource, c.now.key.namespace, c.now.key.name, c.type, c.now.raw) for c in changes]
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            self._connection.executemany(_INSERT, rows)
            if floor is not None:
                self._connection.execute(_FORGET_SUPERSEDED, {"floor": floor})
                self._connection.execute(_SET_NUMBER, ("compacted", floor))
                self._connection.execute(_SET_NUMBER, ("revision", changes[-1].revision if changes else floor))
            self._connection.execute("COMMIT")
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise

    def _load(self, fields: Mapping[str, FieldsOf]) -> None:
        """Rebuilds objects and history from the log."""
        numbers = dict(self._connection.execute("SELECT name, value FROM numbers"))
        self._compacted = numbers.get("compacted", self._compacted)
        self._revision = max(self._revision, numbers.get("revision", 0), self._compacted)
        newer: list[StoredChange] = []
        for row in self._connection.execute("SELECT * FROM log ORDER BY revision"):
            change = self._replay(row, fields)
            if change.revision > self._compacted:
                newer.append(change)
        if newer:
            self._publish(newer)
        self._published = self._revision

    def _replay(
        self, row: tuple[int, str, str, str, ChangeType, bytes], fields: Mapping[str, FieldsOf]
    ) -> StoredChange:
        revision, resource, namespace, name, type_, raw = row
        obj: dict[str, Any] = msgspec.json.decode(raw)
        key = ObjectKey(namespace, name)
        labels = obj["metadata"].get("labels") or {}
        stored = Stored(key, revision, raw, labels, fields.get(resource, metadata_fields)(obj))
        before = self.get(resource, key)
        table = self._table(resource)
        if type_ != "DELETED":
            table.set(stored)
        elif before is not None:
            table.remove(key)
        self._revision = max(self._revision, revision)
        return StoredChange(type_, resource, revision, stored, before)


def _forget_failure(group: asyncio.Future[None]) -> None:
    """A group that nobody waited for may fail without a complaint of asyncio's."""
    if not group.cancelled():
        group.exception()
