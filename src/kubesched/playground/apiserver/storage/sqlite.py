"""The durable store: the memory store with a log in SQLite, written in groups; and the directory in which it lies.

Every write is one row of the log. All writes of a few milliseconds share one transaction, and only after its fsync
are they acknowledged and shown to watches. Opening reads the log back: the newest row of each object is its state,
older rows are the history that watches resume from. Compaction removes rows that are neither. Built on ``memory.py``,
which knows which rows these are.

When the disk refuses, the writes of that group are taken back in memory too: what can be read is what lies on the disk.
Reads go on; writes are refused until a trial shows that the disk takes them again.

The directory is made if missing, serves one server at a time, and is only of a form we know; what is wrong with it is a
`DataDirectoryError` that names it.
"""

from __future__ import annotations

import asyncio
import fcntl
import gc
import logging
import secrets
import sqlite3
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import msgspec

from kubesched.playground.apiserver.storage.memory import HistoryLimits, MemoryStore
from kubesched.playground.apiserver.storage.store import (
    ChangeType,
    FieldsOf,
    ObjectKey,
    Stored,
    StoredChange,
    StoreFailedError,
    metadata_fields,
)

_SCHEMA = """
CREATE TABLE IF NOT EXISTS log (
  revision INTEGER PRIMARY KEY,
  resource TEXT NOT NULL,
  namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  value BLOB NOT NULL
);
DROP INDEX IF EXISTS log_by_object;
CREATE TABLE IF NOT EXISTS numbers (name TEXT PRIMARY KEY, value INTEGER NOT NULL);
"""
_PAGE_BYTES = 8192
_GROUPS_OF_ROWS = (64, 16, 4, 1)
"""Rows are inserted so many at a time: each statement hands Python's lock over once, however many rows it has."""
_INSERTS = {n: "INSERT INTO log VALUES " + ", ".join(["(?, ?, ?, ?, ?, ?)"] * n) for n in _GROUPS_OF_ROWS}
_DELETE = "DELETE FROM log WHERE revision IN (SELECT value FROM json_each(?))"
_SET_NUMBER = "INSERT INTO numbers VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"

_GATHER_S = 0.003
"""After a group of several writes the next one begins so much later: who writes all the time shares more fsyncs, and
who writes alone never waits.
"""
_TRY_AGAIN_EVERY_S = 1.0
_DELETE_BEYOND = "DELETE FROM log WHERE revision > ?"
_CLUSTER = "cluster"
_READ_LOG = "SELECT revision, resource, namespace, name, type, value FROM log ORDER BY revision"
_Waiters = list[asyncio.Future[None]]

_log = logging.getLogger("kubesched.playground.apiserver.storage")


class BrokenRowError(ValueError):
    """A row that holds no object: says which."""


class ForeignDatabaseError(ValueError):
    """The file is a database, but not of this cluster."""


class SqliteStore(MemoryStore):
    """Objects and history that survive."""

    def __init__(self, connection: sqlite3.Connection, limits: HistoryLimits | None = None) -> None:
        super().__init__(limits)
        self._connection = connection
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store-writer")
        self._waiting: list[StoredChange] = []
        self._superseded: list[int] = []  # rows that are neither state nor history
        self._floor_to_write: int | None = None
        self._written: _Waiters | None = None  # for the group that is being written
        self._following: _Waiters | None = None  # for the group that collects
        self._gathering = False
        self._failure: str = ""
        self._trying: asyncio.TimerHandle | None = None
        self.cluster = 0
        """A number by which the cluster in this database is known."""
        self.on_taken_back: Callable[[], None] = lambda: None
        """Called when writes that others may have seen are taken back."""

    @classmethod
    async def open(
        cls,
        path: Path,
        fields: Mapping[str, FieldsOf],
        limits: HistoryLimits | None = None,
        cluster: int | None = None,
    ) -> SqliteStore:
        """Opens or makes the database and reads it back; ``fields`` has the selectable fields of each resource.

        With ``cluster``, it must be that one's. Raises sqlite3.DatabaseError, ForeignDatabaseError, BrokenRowError.
        """
        connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        _check_whose(connection, cluster)
        path.chmod(0o600)
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.executescript(_SCHEMA)
        store = cls(connection, limits)
        was_collecting = gc.isenabled()
        gc.disable()  # reading back makes no garbage with cycles, and the collector would take most of the time
        try:
            store._load(fields)
        finally:
            if was_collecting:
                gc.enable()
        return store

    async def settle(self) -> None:
        """Waits for the group in which the newest write so far is."""
        group = self._following if self._following is not None else self._written
        if group is not None:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            group.append(waiter)
            await waiter

    @property
    def failure(self) -> str:
        return self._failure

    async def close(self) -> None:
        if self._trying is not None:
            self._trying.cancel()
        if not self._failure:
            await self.settle()
        self._thread.shutdown(wait=True)
        self._connection.close()

    def compact(self, revision: int) -> None:
        super().compact(revision)
        self._floor_to_write = self._compacted
        self._collect()

    def _forget(self, change: StoredChange) -> None:
        if change.before is not None:
            self._superseded.append(change.before.revision)
        if change.type == "DELETED":
            self._superseded.append(change.revision)

    def _check_writable(self) -> None:
        if self._failure:
            raise StoreFailedError(self._failure)

    def _record(self, change: StoredChange) -> None:
        self._waiting.append(change)
        self._collect()

    def _collect(self) -> None:
        """Makes sure that what waits is written: at once, or when the group before it is done."""
        if self._following is None and not self._failure:
            self._following = []
            asyncio.get_running_loop().call_soon(self._write_group)

    def _write_group(self) -> None:
        """Hands all that waits to the writer thread, unless that is still busy, or in vain."""
        if self._failure or self._written is not None or self._following is None or self._gathering:
            return
        changes, self._waiting = self._waiting, []
        superseded, self._superseded = self._superseded, []
        floor, self._floor_to_write = self._floor_to_write, None
        self._written, self._following = self._following, None
        loop = asyncio.get_running_loop()
        done = loop.run_in_executor(self._thread, self._commit, changes, superseded, floor)
        done.add_done_callback(lambda result: self._group_done(changes, superseded, floor, result))

    def _group_done(
        self, changes: list[StoredChange], superseded: list[int], floor: int | None, result: asyncio.Future[None]
    ) -> None:
        written, self._written = self._written, None
        assert written is not None
        error = result.exception()
        if error is not None:
            self._superseded = superseded + self._superseded
            self._floor_to_write = floor if self._floor_to_write is None else self._floor_to_write
            self._fail(error, changes, written)
            return
        if len(changes) > 1:
            self._gathering = True
            asyncio.get_running_loop().call_later(_GATHER_S, self._end_gathering)
        else:
            self._write_group()  # before anybody goes on, so that the writer works meanwhile
        if changes:
            self._publish(changes)
        for waiter in written:
            if not waiter.done():
                waiter.set_result(None)

    def _end_gathering(self) -> None:
        self._gathering = False
        self._write_group()

    def _fail(self, error: BaseException, changes: list[StoredChange], written: _Waiters) -> None:
        """The disk refused: nobody waiting gets an acknowledgement, and what they wrote is taken back."""
        self._failure = f"the store cannot write: {error}"
        _log.error("The store cannot write; reads go on, and writes when it can again: %s", error)
        later, self._waiting = self._waiting, []
        for change in reversed(changes + later):
            table = self._table(change.resource)
            if change.before is not None:
                table.set(change.before)
            else:
                table.remove(change.now.key)
        self._revision = self._published
        self.on_taken_back()
        following, self._following = self._following, None
        for waiter in (*written, *(following or ())):
            if not waiter.done():
                waiter.set_exception(StoreFailedError(self._failure))
        self._try_later()

    def _try_later(self) -> None:
        self._trying = asyncio.get_running_loop().call_later(_TRY_AGAIN_EVERY_S, self._try_again)

    def _try_again(self) -> None:
        tried = asyncio.get_running_loop().run_in_executor(self._thread, self._try, self._published)
        tried.add_done_callback(self._tried)

    def _try(self, durable: int) -> None:
        """Runs in the writer thread. What a failed group may have left goes, too: nobody was notified."""
        self._in_transaction(
            lambda execute: (execute(_DELETE_BEYOND, (durable,)), execute(_SET_NUMBER, ("tried", durable)))
        )

    def _tried(self, result: asyncio.Future[None]) -> None:
        if result.exception() is not None:
            self._try_later()
            return
        self._failure = ""
        _log.warning("The store can write again")
        if self._floor_to_write is not None:
            self._collect()

    def _commit(self, changes: list[StoredChange], superseded: list[int], floor: int | None) -> None:
        """Runs in the writer thread."""

        def write(execute: Callable[..., object]) -> None:
            self._insert(changes)
            if floor is not None:
                execute(_DELETE, (msgspec.json.encode(superseded).decode(),))
                execute(_SET_NUMBER, ("compacted", floor))
                execute(_SET_NUMBER, ("revision", changes[-1].revision if changes else floor))

        self._in_transaction(write)

    def _in_transaction(self, write: Callable[[Callable[..., object]], object]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            write(self._connection.execute)
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:  # SQLite itself gives up some, when the disk is full
                self._connection.execute("ROLLBACK")
            raise

    def _insert(self, changes: list[StoredChange]) -> None:
        at = 0
        for n in _GROUPS_OF_ROWS:
            while len(changes) - at >= n:
                values: list[Any] = []
                for c in changes[at : at + n]:
                    values += (c.revision, c.resource, c.now.key.namespace, c.now.key.name, c.type, c.now.raw)
                self._connection.execute(_INSERTS[n], values)
                at += n

    def _load(self, fields: Mapping[str, FieldsOf]) -> None:
        """Rebuilds objects and history from the log."""
        numbers = dict(self._connection.execute("SELECT name, value FROM numbers"))
        self.cluster = numbers.get(_CLUSTER, 0)
        if not self.cluster:
            self.cluster = 1 + secrets.randbelow(2**62)
            self._connection.execute(_SET_NUMBER, (_CLUSTER, self.cluster))
        self._compacted = numbers.get("compacted", self._compacted)
        self._revision = max(self._revision, numbers.get("revision", 0), self._compacted)
        newer: list[StoredChange] = []
        for row in self._connection.execute(_READ_LOG):
            try:
                change = self._replay(row, fields)
            except (ValueError, KeyError, TypeError, AttributeError, IndexError) as problem:
                revision, resource, namespace, name = row[:4]
                where = f"{namespace}/{name}" if namespace else name
                raise BrokenRowError(
                    f"row {revision} ({resource} {where}) is broken: {type(problem).__name__}: {problem}"
                ) from None
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


def _check_whose(connection: sqlite3.Connection, cluster: int | None) -> None:
    """Before anything is written into it. Raises ForeignDatabaseError."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    found = None
    if "numbers" in tables:
        found = connection.execute("SELECT value FROM numbers WHERE name = ?", (_CLUSTER,)).fetchone()
    if cluster is not None and (found is None or found[0] != cluster):
        raise ForeignDatabaseError("is not the database of this cluster")
    if tables and "log" not in tables:
        raise ForeignDatabaseError("is a database of another program")


FORMAT = "1"
"""Changes when a server could not read what an older one wrote."""

_FORMAT_FILE = "format"
_LOCK_FILE = "lock"
_CLUSTER_FILE = "cluster"
"""The number of the cluster whose database belongs here, once there is one."""

WHAT_TO_DO = "restore it from a backup, or delete the directory to start a new cluster"


class DataDirectoryError(OSError):
    """The directory cannot be used; says why in one line."""


class DataDirectory:
    """Held until ``close``."""

    def __init__(self, path: Path) -> None:
        """Raises DataDirectoryError."""
        self.path = path
        self._lock: IO[str] | None = None
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._take()
            self._check_format()
        except FileExistsError:
            raise DataDirectoryError(f"{path}: not a directory") from None
        except DataDirectoryError:
            self.close()
            raise
        except (OSError, UnicodeDecodeError) as problem:
            self.close()
            raise DataDirectoryError(f"{path}: {getattr(problem, 'strerror', None) or problem}") from None

    @property
    def objects(self) -> Path:
        return self.path / "objects.sqlite"

    @property
    def cluster(self) -> int | None:
        """The cluster that lives here; None as long as there is none. Raises DataDirectoryError."""
        file = self.path / _CLUSTER_FILE
        try:
            return int(file.read_text()) if file.exists() else None
        except (OSError, ValueError):
            raise DataDirectoryError(f"{file}: is broken: {WHAT_TO_DO}") from None

    def check_objects(self) -> None:
        """Raises DataDirectoryError if a cluster lives here whose objects are gone."""
        if self.cluster is None:
            return
        if not self.objects.exists():
            raise DataDirectoryError(f"{self.objects}: is missing, with all objects of this cluster: {WHAT_TO_DO}")
        if self.objects.stat().st_size == 0:
            raise DataDirectoryError(f"{self.objects}: is empty, all objects of this cluster are gone: {WHAT_TO_DO}")

    def note_cluster(self, cluster: int) -> None:
        """From now on, no other database is taken for this cluster's."""
        if self.cluster is None:
            beside = self.path / f".{_CLUSTER_FILE}"
            beside.write_text(f"{cluster}\n")
            beside.replace(self.path / _CLUSTER_FILE)

    def close(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _take(self) -> None:
        """The lock goes with the process: one that is killed leaves nothing behind."""
        self._lock = (self.path / _LOCK_FILE).open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DataDirectoryError(f"{self.path}: another API server is using it") from None

    def _check_format(self) -> None:
        file = self.path / _FORMAT_FILE
        found = file.read_text().strip() if file.exists() else ""
        if not found:  # also when a server was killed between making the file and writing it
            file.write_text(f"{FORMAT}\n")
        elif found != FORMAT:
            raise DataDirectoryError(
                f"{self.path}: written by another version of kubesched (format {found[:20]}, this one reads {FORMAT});"
                " use another directory, or that version"
            )
