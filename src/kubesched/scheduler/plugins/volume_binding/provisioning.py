"""Where a volume for a claim can be provisioned: the StorageClass allows the node, and the driver has capacity there.

Capacity is known only for drivers that publish CSIStorageCapacity objects and set `storageCapacity` in their CSIDriver.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from kubesched.framework.handle import Objects
from kubesched.framework.nodes import NodeTable
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model import quantity, selectors
from kubesched.k8s.model.quantity import Quantity
from kubesched.k8s.model.selectors import Selector, SelectorError
from kubesched.k8s.model.storage import CSIStorageCapacity, PersistentVolumeClaim, StorageClass, TopologySelectorTerm
from kubesched.k8s.model.volume_claims import NO_PROVISIONER, class_of_claim, requested_storage
from kubesched.scheduler.plugins.object_changes import ObjectChanges
from kubesched.scheduler.plugins.volume_binding.matching import rows_meeting

# -- capacity ----------------------------------------------------------------------------------------------------------


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


# -- provisioning ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Provisionable:
    """(n_nodes,) where the class allows a new volume, and where there is room for it."""

    allowed: BoolArray
    has_room: BoolArray


def provisionable(
    nodes: NodeTable, objects: Objects, capacities: CapacityIndex, claim: PersistentVolumeClaim
) -> Provisionable | str:
    """Where a volume for the claim can be made; a message if that cannot be said."""
    class_name = class_of_claim(claim)
    if not class_name:
        return f'no class for claim "{claim.key}"'
    storage_class = objects.storage_classes.get(class_name)
    if storage_class is None:
        return f'failed to find storage class "{class_name}"'
    if storage_class.provisioner in ("", NO_PROVISIONER):
        return Provisionable(_nowhere(nodes), _everywhere(nodes))
    terms = storage_class.allowed_topologies
    allowed = rows_in_topology(nodes, terms) if terms else _everywhere(nodes)
    return Provisionable(allowed, _with_room(nodes, objects, capacities, storage_class, claim))


def rows_in_topology(nodes: NodeTable, terms: tuple[TopologySelectorTerm, ...]) -> BoolArray:
    """(n_nodes,) which nodes are in one of the topologies that a class allows."""
    found = _nowhere(nodes)
    for term in terms:
        expressions = term.match_label_expressions or ()
        if expressions and all(expression.values for expression in expressions):
            requirements = tuple(selectors.requirement(e.key, "In", e.values) for e in expressions)
            found |= rows_meeting(nodes, requirements)
    return found


def _with_room(
    nodes: NodeTable,
    objects: Objects,
    capacities: CapacityIndex,
    storage_class: StorageClass,
    claim: PersistentVolumeClaim,
) -> BoolArray:
    if not looks_at_capacity(objects, storage_class, claim):
        return _everywhere(nodes)
    capacities.refresh(objects.csi_storage_capacities)
    return capacities.rows_with_room(nodes, storage_class.name, requested_storage(claim).value)


def looks_at_capacity(objects: Objects, storage_class: StorageClass, claim: PersistentVolumeClaim) -> bool:
    """Whether it matters how much room there is for the claim's volume."""
    resources = claim.spec.resources
    asks_for_room = resources is not None and "storage" in (resources.requests or {})
    driver = objects.csi_drivers.get(storage_class.provisioner)
    return asks_for_room and driver is not None and bool(driver.spec.storage_capacity)


def _everywhere(nodes: NodeTable) -> BoolArray:
    return np.ones(len(nodes), dtype=np.bool_)


def _nowhere(nodes: NodeTable) -> BoolArray:
    return np.zeros(len(nodes), dtype=np.bool_)
