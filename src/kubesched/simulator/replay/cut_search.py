"""Which part of the nodes a search may have seen that stops when it has found enough of them.

kube-scheduler goes round: each search begins where the last one ended, which is not visible from outside. It has
several threads, each of which takes the next few nodes, looks at them in turn, and takes the next few. When enough
nodes are found, all of them stop. So if a thread was held up, the last of its nodes may be missing, and others, further
on, were seen instead. On two cores, that was so in a quarter of the searches in a cluster of 300 nodes: for one thread
mostly, and seldom for more than three.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isqrt

import numpy as np

from kubesched.framework.nodes import IntArray, RowArray

_LIKELY_WINDOWS, _MOST_WINDOWS = 24, 512
"""How many parts are tried: those in which a node has the highest score, and others, as scores depend on the part."""
_MOST_HELD_UP = 3
"""Threads that are held up in one search."""
_STARTS, _PARTS = 512, 24
"""How many beginnings are looked at for that, and how many parts are tried."""


@dataclass(frozen=True, slots=True)
class CutSearch:
    order: RowArray
    """All rows, in the order of the search."""
    totals: IntArray
    """Of the nodes in that order, their scores among all nodes; -1 where the pod does not fit."""
    enough: int
    n_together: int
    """How many nodes a thread takes at a time."""

    @classmethod
    def of(cls, rows: RowArray, total: IntArray, order: RowArray, enough: int, parallelism: int) -> CutSearch:
        """`rows` are those of all nodes that the pod fits on."""
        totals = np.full(int(order.max()) + 1, -1, dtype=np.int64)
        totals[rows] = total
        n = len(order)
        return cls(order, totals[order], enough, max(min(isqrt(n), n // parallelism + 1), 1))

    def may_choose(self, row: int) -> bool:
        """Whether some beginning finds enough nodes, this one among them and none better, by these scores."""
        return any(len(likely) > 0 for _, _, likely in self._windows(row))

    def starts(self, row: int) -> Iterator[int]:
        """Where a search may begin that finds enough nodes, this one among them and none better: likely ones first."""
        for places, first, likely in self._windows(row):
            for window in (*_spread(likely, _LIKELY_WINDOWS), *_spread(np.arange(self.enough), _MOST_WINDOWS)):
                yield int(places[(first + window) % len(places)])

    def _windows(self, row: int) -> Iterator[tuple[RowArray, int, RowArray]]:
        """The places of the nodes that the pod fits on; where the first search begins that finds this one as its last;
        and after how many more beginnings none better is found. Nothing if all of them are found anyway."""
        places = np.flatnonzero(self.totals >= 0)
        n_feasible = len(places)
        at = np.flatnonzero(self.order[places] == row)
        if n_feasible <= self.enough or len(at) == 0:
            return
        found = self.totals[places]
        first = int(at[0]) - self.enough + 1
        rounds = np.concatenate((found, found, found))
        windows = np.lib.stride_tricks.sliding_window_view(rounds, self.enough)
        windows = windows[first + n_feasible : first + n_feasible + self.enough]
        yield places, first, np.flatnonzero(windows.max(axis=1) <= int(found[at[0]]))

    def parts(self, row: int, known_start: int) -> Iterator[RowArray]:
        """What may have been seen if threads were held up just before a better node: the rows, this one among them. The
        fewer threads that takes, the earlier; from where the search is believed to begin, or from elsewhere."""
        n = len(self.order)
        if np.count_nonzero(self.totals >= 0) <= self.enough or row not in self.order[self.totals >= 0]:
            return
        found: list[tuple[int, int, RowArray]] = []
        for rank, start in enumerate((known_start % n, *_spread(np.arange(n), _STARTS))):
            part = self._part(row, start)
            if part is not None:
                found.append((part[0], rank, part[1]))
        found.sort(key=lambda one: one[:2])
        for _, _, rows in found[:_PARTS]:
            yield rows

    def _part(self, row: int, start: int) -> tuple[int, RowArray] | None:
        """For how many threads that must be so, and what is seen then; None if it is more than there may be."""
        order, totals = np.roll(self.order, -start), np.roll(self.totals, -start)
        best = totals[order == row].item()
        kept: list[RowArray] = []
        n_kept = n_held_up = 0
        for begin in range(0, len(order), self.n_together):
            rows, scores = order[begin : begin + self.n_together], totals[begin : begin + self.n_together]
            better = np.flatnonzero(scores > best)
            end = int(better[0]) if len(better) else len(rows)
            seen = rows[:end][scores[:end] >= 0]
            if n_kept + len(seen) < self.enough and len(better):
                n_held_up += 1
                if n_held_up > _MOST_HELD_UP:
                    return None
            kept.append(seen[: self.enough - n_kept])
            n_kept += len(kept[-1])
            if n_kept == self.enough:
                break
        if n_kept < self.enough:
            return None
        together = np.concatenate(kept)
        return (n_held_up, together) if bool((together == row).any()) else None


def _spread(windows: IntArray | RowArray, most: int) -> Iterator[int]:
    """Some of them, evenly."""
    n = min(most, len(windows))
    for place in np.linspace(0, len(windows) - 1, n).astype(np.intp).tolist() if n else ():
        yield int(windows[place])
