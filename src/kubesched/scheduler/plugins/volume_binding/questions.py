"""What the claims of a pod ask of a node, without what is their own: where bound volumes can be reached from, and where
volumes can be made for claims that have none.

Pods that ask the same have the same answers, which depend on the labels of nodes alone. Claims that may get a volume
that exists already, for which a node was selected, or whose driver says how much room there is, ask more than that: for
their pods `finding` looks at everything.

Next: `finding`, which gives the same answers to one pod.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kubesched.framework.handle import Objects
from kubesched.framework.nodes import NodeTable
from kubesched.framework.verdicts import Verdicts
from kubesched.k8s.model import csi_migration
from kubesched.k8s.model.selectors import HOSTNAME_LABEL
from kubesched.k8s.model.storage import (
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorTerm,
    VolumeNodeAffinity,
)
from kubesched.k8s.model.volume_claims import NO_PROVISIONER, class_of_claim, requested_storage, single_label
from kubesched.scheduler.plugins.volume_binding.claims import PodClaims
from kubesched.scheduler.plugins.volume_binding.finding import Conflict, PodVolumes, VolumeFinder, selected_node
from kubesched.scheduler.plugins.volume_binding.matching import rows_matching
from kubesched.scheduler.plugins.volume_binding.provisioning import looks_at_capacity, rows_in_topology

Topologies = tuple[TopologySelectorTerm, ...]


@dataclass(frozen=True, slots=True)
class VolumeQuestion:
    """Of bound claims, the node affinities of their volumes; of the others, the topologies that their classes allow."""

    affinities: tuple[VolumeNodeAffinity | None, ...]
    topologies: tuple[Topologies, ...]

    def verdicts(self, nodes: NodeTable) -> Verdicts:
        """For a part of the table. No rejection is resolvable."""
        reached = np.ones(len(nodes), dtype=np.bool_)
        for affinity in self.affinities:
            if affinity is not None:
                reached &= rows_matching(nodes, affinity)
        allowed = np.ones(len(nodes), dtype=np.bool_)
        for terms in self.topologies:
            if terms:
                allowed &= rows_in_topology(nodes, terms)
        return Verdicts.combine(((Conflict.NODE.value, ~reached, True), (Conflict.BIND.value, ~allowed, True)))


def find_question(finder: VolumeFinder, objects: Objects, claims: PodClaims) -> VolumeQuestion | None:
    """None if the claims ask for more than can be said in general, or for what no other pod asks for."""
    affinities = []
    for claim in claims.bound:
        volume = finder.volume_of(objects, claim)
        if volume is None or csi_migration.plugin_of(volume.spec) is not None:
            return None
        affinity = volume.spec.node_affinity
        label = single_label(affinity)
        if label is not None and label[0] == HOSTNAME_LABEL:
            return None
        affinities.append(affinity)
    topologies = []
    for claim in claims.delayed:
        storage_class = objects.storage_classes[class_of_claim(claim)]
        if _asks_for_more(finder, objects, claim, storage_class):
            return None
        topologies.append(storage_class.allowed_topologies or ())
    return VolumeQuestion(tuple(affinities), tuple(topologies))


def volumes_to_make(claims: PodClaims) -> PodVolumes:
    """What a pod gets on any node that does, if it can be told by a question."""
    return PodVolumes((), tuple(sorted(claims.delayed, key=lambda claim: requested_storage(claim).nanos)))


def _asks_for_more(
    finder: VolumeFinder, objects: Objects, claim: PersistentVolumeClaim, storage_class: StorageClass
) -> bool:
    return (
        selected_node(claim) is not None
        or storage_class.provisioner in ("", NO_PROVISIONER)
        or looks_at_capacity(objects, storage_class, claim)
        or finder.may_find_volume(objects, claim)
    )
