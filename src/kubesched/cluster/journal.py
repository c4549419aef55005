"""What changed in the table, so that whoever remembers an answer can bring it up to date instead of asking anew.

Pods that came and went are kept one by one, as far back as `KEPT`; nodes and other objects only as version numbers.
Trials (a pod put on a row to see what if, and taken off again) leave no mark: the journal is paused for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kubesched.framework.pod_info import PodInfo
from kubesched.framework.stages import PodChange

KEPT = 20_000


class Journal:
    __slots__ = ("_changes", "_first", "_paused", "nodes_version", "objects_version")

    def __init__(self) -> None:
        self._changes: list[PodChange] = []
        self._first = 0
        self._paused = False
        self.nodes_version = 0
        self.objects_version = 0

    @property
    def position(self) -> int:
        """The place behind the last change."""
        return self._first + len(self._changes)

    def since(self, position: int) -> Sequence[PodChange] | None:
        """The changes from a position on; None if they are not kept any more."""
        if position < self._first:
            return None
        return self._changes[position - self._first :]

    def pod_changed(self, row: int, info: PodInfo, added: bool) -> None:
        if self._paused:
            return
        self._changes.append((row, info, added))
        if len(self._changes) > KEPT:
            half = KEPT // 2
            del self._changes[:half]
            self._first += half

    @contextmanager
    def paused(self) -> Iterator[None]:
        """For a trial that restores what it changes."""
        before = self._paused
        self._paused = True
        try:
            yield
        finally:
            self._paused = before
