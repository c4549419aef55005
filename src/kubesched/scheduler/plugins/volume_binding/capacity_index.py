"""How much room CSI drivers have where, as CSIStorageCapacity objects tell it, by storage class.

Next: `provisioning`, which asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from kubesched.framework.nodes import NodeTable
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model import quantity, selectors
from kubesched.k8s.model.quantity import Quantity
from kubesched.k8s.model.selectors import Selector, SelectorError
from kubesched.k8s.model.storage import CSIStorageCapacity
from kubesched.scheduler.plugins.object_changes import ObjectChanges
from kubesched.scheduler.plugins.volume_binding.affinity import rows_meeting


@dataclass(frozen=True, slots=True)
class StorageRoom:
    """The largest volume that can be made for the nodes of a selector."""

    limit_bytes: int
    nodes: Selector


class CapacityIndex:
    """Brought up to date by `refresh`. Capacities that are of no use to any node are left out."""

    __slots__ = ("_by_class", "_changes")

    def __init__(self) -> None:
        self._changes: ObjectChanges[CSIStorageCapacity] = ObjectChanges()
        self._by_class: dict[str, dict[str, StorageRoom]] = {}

    def refresh(self, known: Mapping[str, CSIStorageCapacity]) -> None:
        for before, now in self._changes.take(known):
            if before is not None:
                self._by_class.get(before.storage_class_name, {}).pop(before.key, None)
            room = _room_of(now) if now is not None else None
            if now is not None and room is not None:
                self._by_class.setdefault(now.storage_class_name, {})[now.key] = room

    def rows_with_room(self, nodes: NodeTable, class_name: str, size_bytes: int) -> BoolArray:
        """(n_nodes,) where a volume of this class and size can be made."""
        rooms = self._by_class.get(class_name, {}).values()
        return _rows_selected(nodes, (room.nodes for room in rooms if room.limit_bytes >= size_bytes))


def volume_limit(capacity: CSIStorageCapacity) -> Quantity | None:
    """The largest volume that can be made: the driver's own word on it, or else all that is left."""
    amount = capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
    return None if amount is None else quantity.parse(amount)


def _room_of(capacity: CSIStorageCapacity) -> StorageRoom | None:
    limit = volume_limit(capacity)
    if limit is None or capacity.node_topology is None:
        return None
    try:
        return StorageRoom(limit.value, selectors.from_label_selector(capacity.node_topology))
    except SelectorError:
        return None


def _rows_selected(nodes: NodeTable, chosen: Iterable[Selector]) -> BoolArray:
    """(n_nodes,) the nodes that one of the selectors picks. Those that name nodes by one label, of which there may be
    as many as nodes, are asked about together."""
    found = np.zeros(len(nodes), dtype=np.bool_)
    values_by_label: dict[str, set[str]] = {}
    for selector in chosen:
        requirements = selector.requirements
        if len(requirements) == 1 and requirements[0].operator == "In":
            values_by_label.setdefault(requirements[0].key, set()).update(requirements[0].values)
        else:
            found |= rows_meeting(nodes, requirements)
    for key, values in values_by_label.items():
        found |= nodes.label(key).where(values.__contains__)
    return found
