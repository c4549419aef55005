"""Where a volume for a claim can be made: the storage class allows the node, and its driver has room there.

Room is known only for drivers that publish CSIStorageCapacity objects and say so in their CSIDriver object.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kubesched.framework.handle import Objects
from kubesched.framework.nodes import NodeTable
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model import selectors
from kubesched.k8s.model.storage import PersistentVolumeClaim, StorageClass, TopologySelectorTerm
from kubesched.k8s.model.volume_claims import class_of_claim
from kubesched.k8s.model.volume_matching import NO_PROVISIONER, requested_storage
from kubesched.scheduler.plugins.volume_binding.affinity import rows_meeting
from kubesched.scheduler.plugins.volume_binding.capacity_index import CapacityIndex


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
    allowed = _in_allowed_topology(nodes, storage_class.allowed_topologies)
    return Provisionable(allowed, _with_room(nodes, objects, capacities, storage_class, claim))


def _in_allowed_topology(nodes: NodeTable, terms: tuple[TopologySelectorTerm, ...] | None) -> BoolArray:
    if not terms:
        return _everywhere(nodes)
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
    resources = claim.spec.resources
    asks_for_room = resources is not None and "storage" in (resources.requests or {})
    driver = objects.csi_drivers.get(storage_class.provisioner)
    if not asks_for_room or driver is None or not driver.spec.storage_capacity:
        return _everywhere(nodes)
    capacities.refresh(objects.csi_storage_capacities)
    return capacities.rows_with_room(nodes, storage_class.name, requested_storage(claim).value)


def _everywhere(nodes: NodeTable) -> BoolArray:
    return np.ones(len(nodes), dtype=np.bool_)


def _nowhere(nodes: NodeTable) -> BoolArray:
    return np.zeros(len(nodes), dtype=np.bool_)
