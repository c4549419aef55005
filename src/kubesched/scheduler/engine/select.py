"""Select: one node among the best. Who wins a tie is decided by something handed in, never by chance of our own."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Protocol

from kubesched.framework.nodes import RowArray


class TieBreak(Protocol):
    def choose(self, names: Sequence[str]) -> str:
        """One of several nodes that are equally good."""
        ...

    def choose_row(self, rows: RowArray, names: Sequence[str]) -> int:
        """One of several rows, in search order, that are equally good."""
        ...

    def offset(self, n: int) -> int:
        """Where to begin among n nodes when not all can be looked at."""
        ...


class ByName:
    """The lowest name wins: for comparison and for reproducible reports."""

    def choose(self, names: Sequence[str]) -> str:
        return min(names)

    def choose_row(self, rows: RowArray, names: Sequence[str]) -> int:
        return int(min(rows.tolist(), key=names.__getitem__))

    def offset(self, n: int) -> int:
        return 0


class Seeded:
    """One of the best at random, as kube-scheduler picks; the same seed picks the same."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def choose(self, names: Sequence[str]) -> str:
        return names[self._random.randrange(len(names))]

    def choose_row(self, rows: RowArray, names: Sequence[str]) -> int:
        return int(rows[self._random.randrange(len(rows))])

    def offset(self, n: int) -> int:
        return self._random.randrange(n) if n else 0
