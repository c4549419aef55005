"""The two ways to get a volume, on every node at once: one that exists is matched, or one is provisioned.

On a node a claim gets the volume that is already bound to it, or else the smallest suitable one whose node affinity
allows the node and that no earlier claim of the pod was given there. Volumes that name their node (or zone) by one
label are the common case, and there are as many as nodes: they are looked up by the label's value in one go.

A volume's node affinity is about labels only: a term about a node's name matches every node, because kube-scheduler
evaluates it against a node without a name. A volume of an in-tree plugin is judged by its CSI translation on the nodes
whose kubelet has migrated that plugin.

A volume can be provisioned where the StorageClass allows the node, and the driver has capacity there. Capacity is known
only for drivers that publish CSIStorageCapacity objects and set `storageCapacity` in their CSIDriver.

Next: `kubesched.k8s.model.storage` for what suits a claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kubesched.framework.handle import Objects
from kubesched.framework.nodes import IntArray, NodeTable
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model import csi_migration, quantity, selectors
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.quantity import Quantity
from kubesched.k8s.model.selectors import Requirement, Selector, SelectorError
from kubesched.k8s.model.storage import (
    NO_PROVISIONER,
    CSINode,
    CSIStorageCapacity,
    Offer,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorTerm,
    VolumeNodeAffinity,
    class_of_claim,
    class_of_volume,
    compile_affinity,
    requested_storage,
    suitable_volumes,
)
from kubesched.scheduler.plugins.object_changes import ObjectChanges

# -- node affinity of volumes ------------------------------------------------------------------------------------------


NO_MATCHING_TERMS = "no matching NodeSelectorTerms"


@dataclass(frozen=True, slots=True)
class Reach:
    """(n_nodes,) from which nodes a volume can be reached; `errors` by row are nodes where that cannot be said."""

    rows: BoolArray
    errors: Mapping[int, str] = field(default_factory=dict)


def rows_matching(nodes: NodeTable, affinity: VolumeNodeAffinity | None) -> BoolArray:
    """(n_nodes,) which nodes meet a volume's node affinity as it is written."""
    if affinity is None or affinity.required is None:
        return np.ones(len(nodes), dtype=np.bool_)
    found = np.zeros(len(nodes), dtype=np.bool_)
    for term in compile_affinity(affinity.required).terms:
        if term.error is None:
            found |= rows_meeting(nodes, term.labels)
    return found


def rows_meeting(nodes: NodeTable, requirements: tuple[Requirement, ...]) -> BoolArray:
    """(n_nodes,) which nodes meet all of the requirements."""
    found = np.ones(len(nodes), dtype=np.bool_)
    for requirement in requirements:
        found &= nodes.matching(requirement)
    return found


def reach_of(nodes: NodeTable, csi_nodes: Mapping[str, CSINode], volume: PersistentVolume) -> Reach:
    """The nodes of the whole table that a bound volume can be reached from."""
    rows = rows_matching(nodes, volume.spec.node_affinity)
    plugin = csi_migration.plugin_of(volume.spec)
    if plugin is None or not plugin.is_migrated:
        return Reach(rows)
    migrated = np.fromiter(
        (csi_migration.is_migrated_on(plugin, csi_nodes.get(name)) for name in nodes.names),
        dtype=np.bool_,
        count=len(nodes),
    )
    if not migrated.any():
        return Reach(rows)
    try:
        translated = csi_migration.translate(volume)
    except csi_migration.TranslationError as error:
        errors = dict.fromkeys(np.flatnonzero(migrated).tolist(), f"could not translate pv: {error}")
        return Reach(rows, errors)
    return Reach(np.where(migrated, rows_matching(nodes, translated.node_affinity), rows))


def mismatch(volume: PersistentVolume, node: Node, csi_node: CSINode | None) -> str | None:
    """Why a bound volume cannot be reached from one node; raises TranslationError where that cannot be said."""
    affinity = volume.spec.node_affinity
    plugin = csi_migration.plugin_of(volume.spec)
    if plugin is not None and csi_migration.is_migrated_on(plugin, csi_node):
        affinity = csi_migration.translate(volume).node_affinity
    if affinity is None or affinity.required is None:
        return None
    compiled = compile_affinity(affinity.required)
    labels = node.labels
    for term in compiled.terms:
        if term.error is None and all(r.matches(labels.get(r.key)) for r in term.labels):
            return None
    return ", ".join(compiled.errors) or NO_MATCHING_TERMS


# -- volumes by where claims look for them -----------------------------------------------------------------------------


Shelf = dict[str, Offer]
"""Offers by the volume's name."""


class VolumeIndex:
    """Brought up to date by `refresh`; knows nothing of assumed volumes."""

    __slots__ = ("_by_claim", "_changes", "_free_by_class")

    def __init__(self) -> None:
        self._changes: ObjectChanges[PersistentVolume] = ObjectChanges()
        self._free_by_class: dict[str, Shelf] = {}
        self._by_claim: dict[str, Shelf] = {}

    def refresh(self, known: Mapping[str, PersistentVolume]) -> None:
        for before, now in self._changes.take(known):
            if before is not None:
                self._take_out(before)
            if now is not None:
                shelves, key = self._place_of(now)
                shelves.setdefault(key, {})[now.name] = Offer.of(now)

    def candidates(
        self, claims: Iterable[PersistentVolumeClaim], assumed: Mapping[str, PersistentVolume]
    ) -> list[Offer]:
        """What one of the claims may get; an assumed volume is offered as it is assumed to be."""
        found: Shelf = {}
        for claim in claims:
            found.update(self._free_by_class.get(class_of_claim(claim), {}))
            found.update(self._by_claim.get(claim.key, {}))
        for name, volume in assumed.items():
            if name in found:
                found[name] = Offer.of(volume)
        return list(found.values())

    def has_candidates(self, claim: PersistentVolumeClaim) -> bool:
        """Whether `candidates` has any for this claim."""
        return class_of_claim(claim) in self._free_by_class or claim.key in self._by_claim

    def _take_out(self, volume: PersistentVolume) -> None:
        shelves, key = self._place_of(volume)
        shelf = shelves[key]
        del shelf[volume.name]
        if not shelf:
            del shelves[key]

    def _place_of(self, volume: PersistentVolume) -> tuple[dict[str, Shelf], str]:
        reference = volume.spec.claim_ref
        if reference is None:
            return self._free_by_class, class_of_volume(volume)
        return self._by_claim, f"{reference.namespace}/{reference.name}"


# -- matching ----------------------------------------------------------------------------------------------------------


NO_VOLUME = -1


class VolumeMatcher:
    """Gives volumes to the claims of one pod, one claim after the other, and remembers what is taken where."""

    def __init__(self, nodes: NodeTable, offers: Sequence[Offer]) -> None:
        self._nodes = nodes
        self._offers = offers
        self._taken: list[IntArray] = []

    def match(self, claim: PersistentVolumeClaim) -> IntArray:
        """(n_nodes,) the position of the volume for this claim on each node, NO_VOLUME where there is none.

        Raises SelectorError if the claim's selector cannot be understood.
        """
        suitable = suitable_volumes(claim, self._offers)
        undecided = np.ones(len(self._nodes), dtype=np.bool_)
        chosen = np.full(len(self._nodes), NO_VOLUME, dtype=np.int64)
        for position in suitable.prebound:
            here = undecided & ~self._is_taken(np.full(len(self._nodes), position))
            chosen[here & rows_matching(self._nodes, self._offers[position].volume.spec.node_affinity)] = position
            undecided &= ~here
        if suitable.free and undecided.any():
            chosen[undecided] = self._smallest(suitable.free)[undecided]
        self._taken.append(chosen)
        return chosen

    def _smallest(self, candidates: tuple[int, ...]) -> IntArray:
        """(n_nodes,) the first of the candidates that can be reached from each node and is not taken there."""
        none = len(candidates)
        positions = np.array([*candidates, NO_VOLUME], dtype=np.int64)
        best = np.full(len(self._nodes), none, dtype=np.int64)
        for ranks in self._ranks_by_row(candidates, none):
            is_free = ~self._is_taken(positions[ranks])
            best[is_free] = np.minimum(best, ranks)[is_free]
        found: IntArray = positions[best]
        return found

    def _ranks_by_row(self, candidates: tuple[int, ...], none: int) -> list[IntArray]:
        """Arrays of ranks (positions in `candidates`, or `none`), which together hold each node's best candidates:
        as many as can be taken by earlier claims, and one more."""
        depth = len(self._taken) + 1
        by_label: dict[str, dict[str, list[int]]] = {}
        by_affinity: dict[VolumeNodeAffinity | None, list[int]] = {}
        for rank, position in enumerate(candidates):
            offer = self._offers[position]
            if offer.label is None:
                by_affinity.setdefault(offer.volume.spec.node_affinity, []).append(rank)
                continue
            key, values = offer.label
            by_value = by_label.setdefault(key, {})
            for value in values:
                by_value.setdefault(value, []).append(rank)
        found: list[IntArray] = []
        for key, by_value in by_label.items():
            column = self._nodes.label(key)
            found.extend(column.measure(_rank_by_value(by_value, level, none)) for level in range(depth))
        for affinity, ranks in by_affinity.items():
            rows = rows_matching(self._nodes, affinity)
            found.extend(np.where(rows, rank, none) for rank in ranks[:depth])
        return found

    def _is_taken(self, positions: IntArray) -> BoolArray:
        taken = np.zeros(len(self._nodes), dtype=np.bool_)
        for earlier in self._taken:
            taken |= (earlier == positions) & (positions != NO_VOLUME)
        return taken


def _rank_by_value(by_value: Mapping[str, list[int]], level: int, none: int) -> Callable[[str | None], int]:
    """The question for a label's value: which candidate comes at this level, 0 being the best?"""
    ranks = {value: found[level] for value, found in by_value.items() if len(found) > level}

    def rank(value: str | None) -> int:
        return none if value is None else ranks.get(value, none)

    return rank


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
