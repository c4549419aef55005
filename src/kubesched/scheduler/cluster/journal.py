"""What changed in the table, so that a remembered answer can be brought up to date instead of recomputed.

Added and removed pods, changed nodes and other objects are logged one by one, as far back as `KEPT`, in a log each.
Dry runs (a pod put on a row to see what would follow, and taken off again) are not logged: the journal is paused.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import Generic, NamedTuple, TypeVar

import numpy as np
from msgspec import Struct

from kubesched.framework.caching import PodChange
from kubesched.framework.nodes import RowArray
from kubesched.k8s.model.meta import KubeObject

KEPT = 20_000


Entry = TypeVar("Entry")


class ChangeLog(Generic[Entry]):
    """The last changes of one kind, numbered from the first there ever was."""

    __slots__ = ("_entries", "_first", "end")

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._first = 0
        self.end = 0
        """The place behind the last change."""

    def append(self, entry: Entry) -> None:
        self._entries.append(entry)
        self.end += 1
        if len(self._entries) > KEPT:
            self._forget(KEPT // 2)

    def _forget(self, n: int) -> None:
        del self._entries[:n]
        self._first += n

    def since(self, place: int) -> Sequence[Entry] | None:
        """The changes from a place on; None if they are not kept any more."""
        if place < self._first:
            return None
        return self._entries[place - self._first :]


class PodLog(ChangeLog[PodChange]):
    """Gives the rows of the changes as an array, too."""

    __slots__ = ("_rows", "terms_end")

    def __init__(self) -> None:
        super().__init__()
        self._rows = array("q")
        self.terms_end = 0
        """The place behind the last change of a pod with terms of pod affinity."""

    def append(self, entry: PodChange) -> None:
        """As for any log, spelled out: it is done for every pod."""
        self._rows.append(entry[0])
        self._entries.append(entry)
        self.end += 1
        if entry[1].signature.affinity_class >= 0:
            self.terms_end = self.end
        if len(self._entries) > KEPT:
            self._forget(KEPT // 2)

    def _forget(self, n: int) -> None:
        super()._forget(n)
        del self._rows[:n]

    def rows_since(self, place: int) -> RowArray:
        """The row of each change from a place on, which must be kept still."""
        return np.frombuffer(self._rows[place - self._first :], dtype=np.int64)


class NodeChangeKind(Enum):
    ADDED = "added"
    UPDATED = "updated"
    REMOVED = "removed"
    """The last row took the place of this one."""


class NodeChange(NamedTuple):
    kind: NodeChangeKind
    row: int
    n_rows: int
    """How many rows there were then."""
    pods_end: int
    """The place in the log of pods at which it happened: rows in later entries are numbered as it left them."""


class Places(Struct, frozen=True):
    """How far each log was read."""

    pods: int
    nodes: int
    objects: int


class Journal:
    __slots__ = ("is_paused", "nodes", "objects", "pods")

    def __init__(self) -> None:
        self.pods = PodLog()
        self.nodes: ChangeLog[NodeChange] = ChangeLog()
        self.objects: ChangeLog[KubeObject] = ChangeLog()
        self.is_paused = False
        """Whether pods that come and go are not to be logged, since something is only tried out."""

    @property
    def places(self) -> Places:
        return Places(self.pods.end, self.nodes.end, self.objects.end)

    def node_changed(self, kind: NodeChangeKind, row: int, n_rows: int) -> None:
        self.nodes.append(NodeChange(kind, row, n_rows, self.pods.end))

    def object_changed(self, item: KubeObject) -> None:
        self.objects.append(item)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """For a trial that restores what it changes."""
        before = self.is_paused
        self.is_paused = True
        try:
            yield
        finally:
            self.is_paused = before
