"""What a search for a pod's volumes found: by row, why a node does not do, or which volumes the pod gets there.

Next: `plugin` turns it into verdicts, `binding` has it written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from kubesched.framework.nodes import IntArray, RowArray
from kubesched.framework.verdicts import ACCEPT_ALL, BoolArray, Verdicts
from kubesched.k8s.model.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.k8s.model.volume_matching import Offer
from kubesched.scheduler.plugins.volume_binding.matching import NO_VOLUME


class Conflict(Enum):
    """Why a node does not do, in the order in which the reasons are given."""

    NODE = "node(s) didn't match PersistentVolume's node affinity"
    BIND = "node(s) didn't find available persistent volumes to bind"
    NOT_ENOUGH_SPACE = "node(s) did not have enough free storage"
    VOLUME_DOES_NOT_EXIST = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"


@dataclass(frozen=True, slots=True)
class Match:
    """A claim, and by row the position of the volume found for it, or NO_VOLUME."""

    claim: PersistentVolumeClaim
    positions: IntArray


@dataclass(frozen=True, slots=True)
class PodVolumes:
    """What is to be written if the pod goes to one node: claims with their volumes, and claims that need a new one."""

    bindings: tuple[tuple[PersistentVolume, PersistentVolumeClaim], ...] = ()
    provisions: tuple[PersistentVolumeClaim, ...] = ()


class Findings:
    """Filled by `finding`, then only read."""

    __slots__ = ("_conflicts", "errors", "matches", "offers", "selected")

    def __init__(self, n_rows: int) -> None:
        self._conflicts: dict[Conflict, BoolArray] = {
            conflict: np.zeros(n_rows, dtype=np.bool_) for conflict in Conflict
        }
        self.errors: dict[int, str] = {}
        """Rows whose check broke, and how."""
        self.offers: Sequence[Offer] = ()
        self.matches: list[Match] = []
        self.selected: list[PersistentVolumeClaim] = []
        """Claims for which an earlier attempt selected a node: they need a new volume there."""

    def reject(self, conflict: Conflict, rows: BoolArray) -> None:
        self._conflicts[conflict] |= rows

    def fail(self, message: str, rows: BoolArray) -> None:
        for row in np.flatnonzero(rows).tolist():
            self.errors[row] = message

    def broken_rows(self) -> BoolArray:
        broken = np.zeros_like(self._conflicts[Conflict.NODE])
        broken[list(self.errors)] = True
        return broken

    def fits(self, row: int) -> bool:
        return row not in self.errors and not any(rows[row] for rows in self._conflicts.values())

    def verdicts(self, rows: RowArray) -> Verdicts:
        """For a part of the table. No eviction changes what volumes there are, so no rejection is resolvable."""
        found = [(conflict.value, mask[rows]) for conflict, mask in self._conflicts.items()]
        hits = [(reason, mask) for reason, mask in found if mask.any()]
        errors = (
            {at: self.errors[row] for at, row in enumerate(rows.tolist()) if row in self.errors} if self.errors else {}
        )
        if not hits and not errors:
            return ACCEPT_ALL
        bits = np.array([mask for _, mask in hits], dtype=np.bool_).reshape(len(hits), len(rows))
        rejected: BoolArray = np.logical_or.reduce(bits, axis=0)
        return Verdicts(tuple(reason for reason, _ in hits), bits, rejected, errors)

    def volumes_on(self, row: int) -> PodVolumes:
        """What the pod gets on a row that fits."""
        bindings = []
        provisions = list(self.selected)
        for match in self.matches:
            position = int(match.positions[row])
            if position == NO_VOLUME:
                provisions.append(match.claim)
            else:
                bindings.append((self.offers[position].volume, match.claim))
        return PodVolumes(tuple(bindings), tuple(provisions))
