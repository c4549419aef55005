"""The interface of the store: objects by resource, namespace and name, one revision counter, and the history of
changes.

Every write gets the next revision, which is also the object's resourceVersion. Reading and writing never wait;
``settle`` waits until everything written so far is durable, and nothing may be told to a client before that. Changes
appear in ``history`` (what watches read) only when durable. A version older than ``compacted`` is gone: asking for it
is a CompactedError, never a gap. ``memory.py`` holds the state, ``sqlite.py`` adds the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]
FieldsOf = Callable[[dict[str, Any]], Mapping[str, str]]


def metadata_fields(obj: dict[str, Any]) -> dict[str, str]:
    """The field selectors that every kind has."""
    meta = obj.get("metadata", {})
    return {"metadata.name": meta.get("name", ""), "metadata.namespace": meta.get("namespace", "")}


class ObjectKey(NamedTuple):
    """Where an object lies within its resource; cluster-scoped objects have the namespace ""."""

    namespace: str
    name: str


class CompactedError(Exception):
    """The version asked for is older than what is kept; ``oldest`` is the oldest that can be asked for."""

    def __init__(self, oldest: int) -> None:
        super().__init__(f"history begins at revision {oldest}")
        self.oldest = oldest


class RevisionConflictError(Exception):
    """The object is not at the revision that the writer expected."""


class ObjectTooLargeError(Exception):
    """The object is larger than a store takes."""


class StoreFailedError(Exception):
    """The disk refused a write: it is as if it had never been asked for. Reads go on, and so do writes, some time."""


class Stored(msgspec.Struct, frozen=True, eq=False, gc=False):
    """An object as kept: JSON without kind and apiVersion, and what selectors ask of it."""

    key: ObjectKey
    revision: int
    raw: bytes
    labels: Mapping[str, str]
    fields: Mapping[str, str]


class StoredChange(msgspec.Struct, frozen=True, eq=False, gc=False):
    """One write. For a deletion ``now`` is the last state with the deletion's revision. ``lines`` caches encodings
    that watchers share.
    """

    type: ChangeType
    resource: str
    revision: int
    now: Stored
    before: Stored | None
    lines: dict[tuple[str, ...], bytes] = msgspec.field(default_factory=dict)


class History(Protocol):
    """The changes of one resource in order; positions never move, old ones vanish. ``shared`` is for encodings of what
    there is from a position on; it is emptied whenever that changes.
    """

    shared: dict[tuple[object, ...], bytes]

    def position_after(self, revision: int) -> int:
        """Where to read on for somebody who has seen everything up to ``revision``. Raises CompactedError."""

    def read(self, position: int) -> Sequence[StoredChange]:
        """All changes from the position on. Raises CompactedError when some of them are gone."""

    async def wait_beyond(self, position: int, timeout_s: float) -> bool:
        """Returns True when there is a change at the position, False when the time is over or somebody called
        ``tell``.
        """


class Store(Protocol):
    """What verbs need of a store."""

    @property
    def revision(self) -> int: ...

    @property
    def compacted(self) -> int: ...

    @property
    def published(self) -> int:
        """Every change up to this revision is in the history."""

    @property
    def failure(self) -> str:
        """Why nothing can be written at the moment; empty if all is well."""

    def get(self, resource: str, key: ObjectKey) -> Stored | None: ...

    def list(self, resource: str, namespace: str = "") -> Sequence[Stored]:
        """In the order of namespace and name; all namespaces for ""."""

    def list_at(self, resource: str, namespace: str, revision: int) -> Sequence[Stored]:
        """As it was then. Raises CompactedError."""

    def expire_lists(self, revision: int) -> None:
        """From now on, ``list_at`` answers only for this revision and later ones; watches are not affected."""

    def put(
        self, resource: str, key: ObjectKey, obj: dict[str, Any], fields: FieldsOf, expected: int | None = None
    ) -> Stored:
        """Writes; sets metadata.resourceVersion in ``obj``. ``expected`` 0 means that nothing may be there. Raises
        RevisionConflictError, ObjectTooLargeError.
        """

    def delete(self, resource: str, key: ObjectKey, obj: dict[str, Any], fields: FieldsOf) -> Stored:
        """Removes; ``obj`` is the last state to tell, and gets the deletion's revision."""

    def history(self, resource: str) -> History: ...

    def wake(self) -> None:
        """Ends the waiting of all who wait for changes."""

    async def settle(self) -> None:
        """Returns when every write so far is durable. Raises StoreFailedError."""

    async def close(self) -> None: ...
