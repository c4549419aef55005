"""Finds the nodes where all volumes of a pod are available, for the whole table at once.

A pod's claims are sorted by what has to happen with them (`sort_claims`). The answer depends on labels and names of
nodes and on storage objects, not on the pods of a node. So it is worked out once in a cycle (`Findings`), and every
later question, a dry run on one node as well, reads these arrays.

A volume that was reserved for a pod is written only later, and must not be given to the next pod. So the assumed object
takes the place of the one that is known, until a newer one arrives or it is restored (`AssumedObjects`).

Next: `matching` for the two ways to get a volume, `binding` for what is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

import numpy as np

from kubesched.framework.handle import Objects
from kubesched.framework.nodes import IntArray, NodeTable, RowArray
from kubesched.framework.status import Status
from kubesched.framework.verdicts import ACCEPT_ALL, BoolArray, Verdicts
from kubesched.k8s.model import storage
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.selectors import SelectorError
from kubesched.k8s.model.storage import (
    SELECTED_NODE_ANNOTATION,
    Offer,
    PersistentVolume,
    PersistentVolumeClaim,
    requested_storage,
)
from kubesched.scheduler.plugins.volume_binding.matching import (
    NO_VOLUME,
    CapacityIndex,
    VolumeIndex,
    VolumeMatcher,
    provisionable,
    reach_of,
)


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


class VolumeFinder:
    """Uses indexes that live as long as the plugin, and sees volumes as they are assumed to be."""

    __slots__ = ("_assumed", "_capacities", "_index")

    def __init__(self, assumed: AssumedObjects[PersistentVolume]) -> None:
        self._assumed = assumed
        self._index = VolumeIndex()
        self._capacities = CapacityIndex()

    def find(self, nodes: NodeTable, objects: Objects, claims: PodClaims) -> Findings:
        """`nodes` must be the whole table: the findings go by row numbers."""
        findings = Findings(len(nodes))
        self._check_bound(nodes, objects, claims, findings)
        if claims.delayed:
            open_rows = _take_selected(nodes, claims, findings)
            open_rows = self._match(nodes, objects, claims, findings, open_rows)
            self._check_provisioning(nodes, objects, findings, open_rows)
        return findings

    def volume_of(self, objects: Objects, claim: PersistentVolumeClaim) -> PersistentVolume | None:
        """The volume that a claim is bound to; None if it does not exist."""
        return self._assumed.get(objects.persistent_volumes, claim.spec.volume_name)

    def may_find_volume(self, objects: Objects, claim: PersistentVolumeClaim) -> bool:
        """Whether there is a volume that the claim may get on some node."""
        self._index.refresh(objects.persistent_volumes)
        return self._index.has_candidates(claim)

    def _check_bound(self, nodes: NodeTable, objects: Objects, claims: PodClaims, findings: Findings) -> None:
        """Goes through the bound claims; the first that does not suit a node says why."""
        open_rows = np.ones(len(nodes), dtype=np.bool_)
        for claim in claims.bound:
            volume = self.volume_of(objects, claim)
            if volume is None:
                findings.reject(Conflict.VOLUME_DOES_NOT_EXIST, open_rows)
                return
            reach = reach_of(nodes, objects.csi_nodes, volume)
            for row, message in reach.errors.items():
                if open_rows[row]:
                    findings.errors[row] = message
                    open_rows[row] = False
            findings.reject(Conflict.NODE, open_rows & ~reach.rows)
            open_rows &= reach.rows

    def _match(
        self, nodes: NodeTable, objects: Objects, claims: PodClaims, findings: Findings, open_rows: BoolArray
    ) -> BoolArray:
        """Finds volumes for claims without a node, the smallest claim first. Returns the rows that are still open."""
        waiting = [claim for claim in claims.delayed if selected_node(claim) is None]
        if not waiting or not open_rows.any():
            return open_rows
        self._index.refresh(objects.persistent_volumes)
        findings.offers = self._index.candidates(waiting, self._assumed.assumed(objects.persistent_volumes))
        matcher = VolumeMatcher(nodes, findings.offers)
        for claim in sorted(waiting, key=lambda claim: requested_storage(claim).nanos):
            try:
                findings.matches.append(Match(claim, matcher.match(claim)))
            except SelectorError as error:
                message = f"error creating internal label selector for claim: {claim.key}: {error}"
                findings.fail(message, open_rows)
                return np.zeros_like(open_rows)
        return open_rows

    def _check_provisioning(self, nodes: NodeTable, objects: Objects, findings: Findings, open_rows: BoolArray) -> None:
        """Claims that found no volume need a new one; the first that cannot have one on a node says why."""
        needs: list[tuple[PersistentVolumeClaim, BoolArray]] = [(claim, open_rows) for claim in findings.selected]
        needs.extend((match.claim, match.positions == NO_VOLUME) for match in findings.matches)
        for claim, need in needs:
            rows = open_rows & need
            if not rows.any():
                continue
            answer = provisionable(nodes, objects, self._capacities, claim)
            if isinstance(answer, str):
                findings.fail(answer, rows)
                open_rows = open_rows & ~rows
                continue
            findings.reject(Conflict.BIND, rows & ~answer.allowed)
            findings.reject(Conflict.NOT_ENOUGH_SPACE, rows & answer.allowed & ~answer.has_room)
            open_rows = open_rows & ~(rows & ~(answer.allowed & answer.has_room))


def _take_selected(nodes: NodeTable, claims: PodClaims, findings: Findings) -> BoolArray:
    """Claims for which an earlier attempt selected a node bind the pod to it. Returns the rows that are still open."""
    open_rows = ~findings.broken_rows()
    for claim in claims.delayed:
        selected = selected_node(claim)
        if selected is not None:
            findings.selected.append(claim)
            here = nodes.named(selected)
            findings.reject(Conflict.BIND, open_rows & ~here)
            open_rows &= here
    return open_rows


def selected_node(claim: PersistentVolumeClaim) -> str | None:
    return (claim.metadata.annotations or {}).get(SELECTED_NODE_ANNOTATION)


Item = TypeVar("Item", bound=KubeObject)


class AssumedObjects(Generic[Item]):
    """Assumed objects by key. `known` is passed in, because its owner goes on changing it."""

    __slots__ = ("_assumed", "_resource")

    def __init__(self, resource: str) -> None:
        self._resource = resource
        self._assumed: dict[str, tuple[Item, Item]] = {}
        """Key to (object as it was known then, object as assumed)."""

    def get(self, known: Mapping[str, Item], key: str) -> Item | None:
        current = known.get(key)
        if current is None:
            self._assumed.pop(key, None)
            return None
        return self._newest(key, current)

    def assumed(self, known: Mapping[str, Item]) -> dict[str, Item]:
        """By key, every assumed object that still holds."""
        found = {}
        for key, (_, item) in list(self._assumed.items()):
            if self.get(known, key) is item:
                found[key] = item
        return found

    def not_found(self, key: str) -> str:
        return f'{self._resource} "{key}" not found'

    def assume(self, known: Mapping[str, Item], assumed: Item) -> str | None:
        """Assumes the object, or says why it cannot."""
        key = assumed.key
        current = known.get(key)
        if current is None:
            return self.not_found(key)
        version, wanted = current.metadata.resource_version, assumed.metadata.resource_version
        if version != wanted:
            return f'"{key}" is out of sync (stored: {version}, assume: {wanted})'
        self._assumed[key] = (current, assumed)
        return None

    def restore(self, assumed: Item) -> None:
        """Drops an assumed object; one that was assumed on another version stays."""
        entry = self._assumed.get(assumed.key)
        if entry is not None and entry[1].metadata.resource_version == assumed.metadata.resource_version:
            del self._assumed[assumed.key]

    def _newest(self, key: str, current: Item) -> Item:
        entry = self._assumed.get(key)
        if entry is None:
            return current
        based_on, assumed = entry
        version = current.metadata.resource_version
        if current is based_on or (version and version == assumed.metadata.resource_version):
            return assumed
        del self._assumed[key]
        return current


UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


@dataclass(frozen=True, slots=True)
class PodClaims:
    """`bound` have their volume; `delayed` get one where the pod goes; `immediate` should have one but do not."""

    bound: tuple[PersistentVolumeClaim, ...] = ()
    delayed: tuple[PersistentVolumeClaim, ...] = ()
    immediate: tuple[PersistentVolumeClaim, ...] = ()


def find_obstacle(objects: Objects, pod: Pod) -> Status | None:
    """What keeps the pod from using one of its claims on any node."""
    for use in storage.claims_of(pod):
        claim = objects.persistent_volume_claims.get(use.key)
        message = _missing_claim(use) if claim is None else _unusable_claim(pod, claim, use)
        if message is not None:
            return Status.unresolvable(message)
    return None


def sort_claims(objects: Objects, assumed: AssumedObjects[PersistentVolumeClaim], pod: Pod) -> PodClaims | Status:
    """The pod's claims as they are assumed to be; a Status if one cannot be judged."""
    bound: list[PersistentVolumeClaim] = []
    delayed: list[PersistentVolumeClaim] = []
    immediate: list[PersistentVolumeClaim] = []
    for use in storage.claims_of(pod):
        claim = assumed.get(objects.persistent_volume_claims, use.key)
        if claim is None:
            return Status.error(f'error getting PVC "{use.key}": {assumed.not_found(use.key)}')
        if storage.is_fully_bound(claim):
            bound.append(claim)
            continue
        is_delayed = _is_delayed(objects, claim)
        if isinstance(is_delayed, Status):
            return is_delayed
        # A claim that names its volume is for the volume controller to bind, whatever its class says.
        (delayed if is_delayed and not claim.spec.volume_name else immediate).append(claim)
    return PodClaims(tuple(bound), tuple(delayed), tuple(immediate))


def _missing_claim(use: storage.ClaimUse) -> str:
    if use.is_ephemeral:
        return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.name}"'
    return storage.claim_not_found(use.name)


def _unusable_claim(pod: Pod, claim: PersistentVolumeClaim, use: storage.ClaimUse) -> str | None:
    if claim.status.phase == "Lost":
        return f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{claim.name}" is being deleted'
    return storage.foreign_claim_message(pod, claim) if use.is_ephemeral else None


def _is_delayed(objects: Objects, claim: PersistentVolumeClaim) -> bool | Status:
    class_name = storage.class_of_claim(claim)
    storage_class = objects.storage_classes.get(class_name)
    if storage_class is None:
        return False
    if storage_class.volume_binding_mode is None:
        return Status.error(storage.binding_mode_not_set(class_name))
    return storage.waits_for_first_consumer(storage_class)
