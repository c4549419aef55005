"""Finds for each claim, on every node at once, the persistent volume to bind it to.

On a node a claim gets the volume that is already meant for it, or else the smallest suitable one that can be reached
from there and that no earlier claim of the pod was given on that node.

Volumes that name their node (or zone) by one label are the common case, and there are as many as nodes. They are looked
up by the label's value in one go; only other kinds of node affinity are asked about one by one.

Next: `provisioning`, for claims that find no volume.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from kubesched.framework.nodes import IntArray, NodeTable
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model.storage import PersistentVolumeClaim, VolumeNodeAffinity
from kubesched.k8s.model.volume_matching import Offer, suitable_volumes
from kubesched.scheduler.plugins.volume_binding.affinity import rows_matching

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
