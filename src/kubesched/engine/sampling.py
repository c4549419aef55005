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


def feasible_nodes_to_find(percentage: int, n_nodes: int) -> int:
    """0 percent stands for a share that shrinks as the cluster grows."""
    if n_nodes < _ENOUGH_NODES:
        return n_nodes
    if percentage == 0:
        percentage = max(50 - n_nodes // 125, _LOWEST_PERCENTAGE)
    return max(n_nodes * percentage // 100, _ENOUGH_NODES)


def cut_search(order: RowArray, fits: BoolArray, start: int, enough: int) -> tuple[RowArray, int]:
    """The first `enough` feasible rows in the order of the search that begins at `start`, and how many rows it took.

    `order` are the rows in search order, `fits` says by row whether it is feasible.
    """
    turned = np.roll(order, -start)
    feasible = np.flatnonzero(fits[turned])
    if len(feasible) <= enough:
        return turned[feasible], len(turned)
    return turned[feasible[:enough]], int(feasible[enough - 1]) + 1
