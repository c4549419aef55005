"""How many feasible nodes are enough in a large cluster, and where the search for them begins.

The table answers for all nodes at once, so nothing is saved by stopping early; but which nodes take part in scoring is
part of the decision, so the search is cut where kube-scheduler would cut it.
"""

from __future__ import annotations

import numpy as np

from kubesched.framework.nodes import RowArray
from kubesched.framework.verdicts import BoolArray

_ENOUGH_NODES = 100
_LOWEST_PERCENTAGE = 5

NEAR = 2
"""Among so many times the rows that would be enough a search mostly finds them: there it looks first."""


def feasible_nodes_to_find(percentage: int, n_nodes: int) -> int:
    """0 percent stands for a share that shrinks as the cluster grows."""
    if n_nodes < _ENOUGH_NODES:
        return n_nodes
    if percentage == 0:
        percentage = max(50 - n_nodes // 125, _LOWEST_PERCENTAGE)
    return max(n_nodes * percentage // 100, _ENOUGH_NODES)


def going_round(order: RowArray, start: int, n: int) -> RowArray:
    """So many rows of a search that begins at `start`; all of them, if there are no more."""
    stop = start + n
    if stop <= len(order):
        return order[start:stop]
    return np.concatenate((order[start:], order[: min(stop - len(order), start)])) if start else order


def cut_search(order: RowArray, fits: BoolArray, start: int, enough: int) -> tuple[RowArray, int]:
    """The first `enough` feasible rows in the order of the search that begins at `start`, and how many rows it took:
    all of them, unless there is one more feasible row.

    `order` are the rows in search order, `fits` says by row whether it is feasible.
    """
    n = len(order)
    start %= max(n, 1)  # nodes may have left since
    for n_rows in (NEAR * enough, n):
        rows = going_round(order, start, n_rows)
        feasible = fits.take(rows).nonzero()[0]
        if len(feasible) > enough:
            return rows.take(feasible[:enough]), feasible.item(enough - 1) + 1
    return rows.take(feasible), n
