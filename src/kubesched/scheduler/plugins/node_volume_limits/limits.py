"""How many volumes of each CSI driver the nodes can hold, as their CSINode objects say: a column per driver.

Next: `ledger` for how many they hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kubesched.framework.nodes import IntArray
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model.storage import CSINode
from kubesched.scheduler.plugins.object_changes import ObjectChanges

NO_LIMIT = int(np.iinfo(np.int64).max)


class LimitColumns:
    """Columns over the rows of the whole table. `refresh` makes them anew when nodes or CSINodes changed."""

    __slots__ = ("_by_driver", "_changes", "_names", "has_csi_node")

    def __init__(self) -> None:
        self._changes: ObjectChanges[CSINode] = ObjectChanges()
        self._names: list[str] = []
        self._by_driver: dict[str, IntArray] = {}
        self.has_csi_node: BoolArray = np.zeros(0, dtype=np.bool_)

    def refresh(self, csi_nodes: Mapping[str, CSINode], names: Sequence[str]) -> None:
        changed = self._changes.take(csi_nodes)
        if not changed and self._names == names:
            return
        self._names = list(names)
        self._by_driver = {}
        known = [csi_nodes.get(name) for name in names]
        self.has_csi_node = np.fromiter((node is not None for node in known), dtype=np.bool_, count=len(known))
        for row, csi_node in enumerate(known):
            for driver in csi_node.spec.drivers if csi_node is not None else ():
                if driver.allocatable is not None and driver.allocatable.count is not None:
                    self._column(driver.name)[row] = driver.allocatable.count

    def of(self, driver: str) -> IntArray | None:
        """(n_rows,) the limits of one driver, NO_LIMIT where a node has none; None if no node has one."""
        return self._by_driver.get(driver)

    def _column(self, driver: str) -> IntArray:
        column = self._by_driver.get(driver)
        if column is None:
            column = self._by_driver[driver] = np.full(len(self._names), NO_LIMIT, dtype=np.int64)
        return column
