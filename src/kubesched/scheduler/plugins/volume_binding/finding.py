"""Looks for the nodes where all volumes of a pod can be had, for the whole table at once.

The answer depends on labels and names of nodes and on storage objects, not on the pods of a node. So it is worked out
once in a cycle, and every later question, a dry run on one node as well, is a look at these arrays.

Next: `findings` for the answer; `matching` and `provisioning` for the two ways to get a volume.
"""

from __future__ import annotations

import numpy as np

from kubesched.framework.handle import Objects
from kubesched.framework.nodes import NodeTable
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model.selectors import SelectorError
from kubesched.k8s.model.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.k8s.model.volume_claims import SELECTED_NODE_ANNOTATION
from kubesched.k8s.model.volume_matching import requested_storage
from kubesched.scheduler.plugins.volume_binding.affinity import reach_of
from kubesched.scheduler.plugins.volume_binding.assumed import AssumedObjects
from kubesched.scheduler.plugins.volume_binding.capacity_index import CapacityIndex
from kubesched.scheduler.plugins.volume_binding.claims import PodClaims
from kubesched.scheduler.plugins.volume_binding.findings import Conflict, Findings, Match
from kubesched.scheduler.plugins.volume_binding.matching import NO_VOLUME, VolumeMatcher
from kubesched.scheduler.plugins.volume_binding.provisioning import provisionable
from kubesched.scheduler.plugins.volume_binding.volume_index import VolumeIndex


class VolumeFinder:
    """Looks with the help of indexes that live as long as the plugin, and with the promises made so far in mind."""

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

    def _check_bound(self, nodes: NodeTable, objects: Objects, claims: PodClaims, findings: Findings) -> None:
        """Goes through the bound claims; the first that does not suit a node says why."""
        open_rows = np.ones(len(nodes), dtype=np.bool_)
        for claim in claims.bound:
            volume = self._assumed.get(objects.persistent_volumes, claim.spec.volume_name)
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
        waiting = [claim for claim in claims.delayed if _selected_node(claim) is None]
        if not waiting or not open_rows.any():
            return open_rows
        self._index.refresh(objects.persistent_volumes)
        findings.offers = self._index.candidates(waiting, self._assumed.promised(objects.persistent_volumes))
        matcher = VolumeMatcher(nodes, findings.offers)
        for claim in sorted(waiting, key=lambda claim: requested_storage(claim).nanos):
            try:
                findings.matches.append(Match(claim, matcher.match(claim)))
            except SelectorError as mistake:
                message = f"error creating internal label selector for claim: {claim.key}: {mistake}"
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
        selected = _selected_node(claim)
        if selected is not None:
            findings.selected.append(claim)
            here = nodes.named(selected)
            findings.reject(Conflict.BIND, open_rows & ~here)
            open_rows &= here
    return open_rows


def _selected_node(claim: PersistentVolumeClaim) -> str | None:
    return (claim.metadata.annotations or {}).get(SELECTED_NODE_ANNOTATION)
