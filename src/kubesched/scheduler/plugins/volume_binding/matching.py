"""Finds for each claim, on every node at once, the PersistentVolume to bind it to.

On a node a claim gets the volume that is already bound to it, or else the smallest suitable one whose node affinity
allows the node and that no earlier claim of the pod was given there. Volumes that name their node (or zone) by one
label are the common case, and there are as many as nodes: they are looked up by the label's value in one go.

A volume's node affinity is about labels only: a term about a node's name matches every node, because kube-scheduler
evaluates it against a node without a name. A volume of an in-tree plugin is judged by its CSI translation on the nodes
whose kubelet has migrated that plugin.

Next: `provisioning`, for claims that find no volume; `kubesched.k8s.model.volume_claims` for what suits a claim.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kubesched.framework.nodes import IntArray, NodeTable
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model import csi_migration
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.selectors import Requirement
from kubesched.k8s.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim, VolumeNodeAffinity
from kubesched.k8s.model.volume_claims import Offer, class_of_claim, class_of_volume, compile_affinity, suitable_volumes
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
