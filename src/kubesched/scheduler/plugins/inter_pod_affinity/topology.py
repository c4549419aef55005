"""Numbers by topology: for each topology key an array, indexed by the code of the label's value.

What is counted on a row counts for all nodes with the same value of the topology label; a row without the label counts
nowhere. To ask for nodes is a gather. Filtering counts pods this way, scoring adds up weights.

Next: `filtering`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kubesched.framework.nodes import MISSING, CodeArray, Column, IntArray, NodeTable, RowArray
from kubesched.framework.verdicts import BoolArray


class TopologyCounts:
    """Numbers by topology key and value. Only keys that something was added for have an array."""

    __slots__ = ("_by_key", "_codes", "_nodes", "_occupied", "n_pods")

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes.whole
        self._by_key: dict[str, IntArray] = {}
        self._codes: dict[str, CodeArray] = {}
        self._occupied: BoolArray | None = None
        """By row of the whole table: what `with_any` says; None if that has to be looked up."""
        self.n_pods = 0
        """How many pods have been added, once per key, that stand on a row with the label."""

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_key)

    def add_pods(self, key: str, rows: RowArray, weight: int = 1) -> None:
        """Pods by the row of each; a row may occur several times."""
        column = self._nodes.label(key)
        codes = column.codes.take(rows)
        codes = codes[codes != MISSING]
        if len(codes):
            self._array(key, column)[:-1] += weight * np.bincount(codes, minlength=len(column.values))
            self.n_pods += len(codes)

    def add_counts(self, key: str, counts: IntArray, weight: int = 1) -> None:
        """Pods by how many every row of the whole table holds."""
        column = self._nodes.label(key)
        rows = np.flatnonzero((counts > 0) & (column.codes != MISSING))
        if len(rows):
            n_values = len(column.values)
            by_value = np.bincount(column.codes[rows], weights=counts[rows], minlength=n_values).astype(np.int64)
            self._array(key, column)[:-1] += weight * by_value
            self.n_pods += int(by_value.sum())

    def change(self, key: str, row: int, by: int, weight: int = 1) -> None:
        """One pod comes to a row (+1), or leaves it (-1)."""
        codes = self._codes.get(key)
        if codes is None:
            codes = self._codes[key] = self._nodes.label(key).codes
        code = codes[row]
        if code != MISSING:
            array = self._by_key.get(key)
            if array is None:
                array = self._array(key, self._nodes.label(key))
            before = array.item(code)
            array[code] = after = before + weight * by
            self.n_pods += by
            if self._occupied is not None and (before > 0) != (after > 0):
                if len(self._by_key) == 1:
                    change = np.logical_or if after > 0 else np.greater  # of truth values: true and not
                    change(self._occupied, codes == code, out=self._occupied)
                else:
                    self._occupied = None  # what one key says of a row, another may say, too

    def at(self, key: str, nodes: NodeTable) -> IntArray:
        """(n_nodes,) the number of each node's topology; 0 for nodes without the label."""
        found = self._by_key.get(key)
        return np.zeros(len(nodes), dtype=np.int64) if found is None else found.take(nodes.label(key).codes)

    def without_any(self, key: str, nodes: NodeTable) -> BoolArray:
        """(n_nodes,) nodes in a topology where nothing was counted, or in none."""
        found = self._by_key.get(key)
        if found is None:
            return np.ones(len(nodes), dtype=np.bool_)
        empty = found <= 0
        return empty.take(nodes.label(key).codes)

    def with_any(self, nodes: NodeTable) -> BoolArray | None:
        """(n_nodes,) nodes in a topology where something was counted; None if there are no such nodes."""
        if self.n_pods == 0:
            return None
        occupied = self._occupied
        if occupied is None:
            occupied = np.zeros(len(self._nodes), dtype=np.bool_)
            for key, found in self._by_key.items():
                occupied |= (found > 0).take(self._nodes.label(key).codes)
            self._occupied = occupied
        return occupied.copy() if nodes.whole is nodes else occupied.take(nodes.rows)

    def _array(self, key: str, column: Column[str]) -> IntArray:
        """One entry more than there are values: the code `MISSING` finds it, and it stays 0."""
        found = self._by_key.get(key)
        if found is None:
            found = self._by_key[key] = np.zeros(len(column.values) + 1, dtype=np.int64)
        return found
