"""VolumeZone: a pod goes only where its bound volumes are, as far as their zone and region labels say.

Older volumes carry their zone as a label in place of a node affinity. Nodes without any zone or region label are taken
to be in the right place. Claims that wait for their first consumer have no zone yet and do not count.

Next: `volume_binding`, which looks at the node affinity of volumes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kubesched.framework.caching import ClaimQuestion, PodChange, Scope
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.events import ActionType, ClusterEvent, EventResource, Hint, RegisteredEvent
from kubesched.framework.group_room import GroupRoom
from kubesched.framework.handle import Handle
from kubesched.framework.nodes import MISSING, NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import PreFilterResult
from kubesched.framework.status import SKIP, Status
from kubesched.framework.verdicts import BoolArray, Verdicts
from kubesched.k8s.model import storage
from kubesched.k8s.model.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONE_DELIMITER
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

ZONE_CONFLICT = "node(s) had no available volume zone"

_TOPOLOGY_LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_STABLE_LABELS = {BETA_ZONE: ZONE, BETA_REGION: REGION}


@dataclass(frozen=True, slots=True)
class VolumeTopology:
    """Where a volume is: the values of one label that a node must have."""

    key: str
    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class ZonesOfVolumes:
    """Every label requirement of the pod's bound volumes."""

    topologies: tuple[VolumeTopology, ...]


@dataclass(frozen=True, slots=True)
class VolumeZone:
    args: object
    handle: Handle
    name: ClassVar[str] = "VolumeZone"
    filter_scope: ClassVar[Scope] = Scope.CLUSTER

    def filter_scope_for(self, pod: PodInfo) -> Scope:
        """A pod without claims is never refused."""
        return self.filter_scope if pod.signature.claim_names else Scope.NODE

    def objects_changed(self, _cycle: CycleState, pod: PodInfo, _changed: Sequence[KubeObject]) -> bool:
        """Objects matter to pods with volumes of that kind alone."""
        return self.filter_scope_for(pod) is Scope.NODE

    def question_of(self, pod: PodInfo) -> ClaimQuestion | None:
        """The zones and regions of its volumes; none of it is the claims' own."""
        found = self._topologies_of(pod)
        return None if isinstance(found, Status) else ClaimQuestion(tuple(found))

    def generalize(self, cycle: CycleState, pod: PodInfo) -> None:
        pass

    def take_over(self, cycle: CycleState, pod: PodInfo) -> bool:
        return True

    def nodes_to_ask_again(self, cycle: CycleState, pod: PodInfo, changes: Sequence[PodChange]) -> Sequence[str]:
        return ()

    def pre_filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        found = self._topologies_of(pod)
        if isinstance(found, Status):
            return PreFilterResult(found)
        if not found:
            return PreFilterResult(SKIP)
        cycle.put(ZonesOfVolumes(tuple(found)))
        return PreFilterResult()

    def filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdicts:
        elsewhere = np.zeros(len(nodes), dtype=np.bool_)
        for topology in cycle.get(ZonesOfVolumes).topologies:
            elsewhere |= ~_in_topology(nodes, topology)
        return Verdicts.reject(elsewhere & _has_topology_label(nodes), ZONE_CONFLICT, unresolvable=True)

    def bound_group(self, _room: GroupRoom) -> bool:
        """Where bound volumes are does not depend on pods."""
        return True

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        changed = ActionType.ADD | ActionType.UPDATE
        return (
            RegisteredEvent(ClusterEvent(EventResource.STORAGE_CLASS, ActionType.ADD), after_storage_class_added),
            RegisteredEvent(ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)),
            RegisteredEvent(ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, changed), after_claim_changed),
            RegisteredEvent(ClusterEvent(EventResource.PERSISTENT_VOLUME, changed), after_volume_changed),
        )

    def _topologies_of(self, pod: PodInfo) -> list[VolumeTopology] | Status:
        found: list[VolumeTopology] = []
        for volume in pod.spec.volumes or ():
            if volume.persistent_volume_claim is None:
                continue
            answer = self._topologies_of_claim(pod.namespace, volume.persistent_volume_claim.claim_name)
            if isinstance(answer, Status):
                return answer
            found.extend(answer)
        return found

    def _topologies_of_claim(self, namespace: str, name: str) -> list[VolumeTopology] | Status:
        if not name:
            return Status.unresolvable("PersistentVolumeClaim had no name")
        claim = self.handle.objects.persistent_volume_claims.get(f"{namespace}/{name}")
        if claim is None:
            return Status.unresolvable(storage.claim_not_found(name))
        volume_name = claim.spec.volume_name
        if not volume_name:
            return self._check_unbound(claim)
        volume = self.handle.objects.persistent_volumes.get(volume_name)
        if volume is None:
            return Status.unresolvable(storage.volume_not_found(volume_name))
        return topologies_of_volume(volume)

    def _check_unbound(self, claim: PersistentVolumeClaim) -> list[VolumeTopology] | Status:
        """Only a claim that waits for its first consumer may still be without a volume."""
        class_name = storage.class_of_claim(claim)
        if not class_name:
            return Status.unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
        storage_class = self.handle.objects.storage_classes.get(class_name)
        if storage_class is None:
            return Status.unresolvable(storage.storage_class_not_found(class_name))
        if storage_class.volume_binding_mode is None:
            return Status.unresolvable(storage.binding_mode_not_set(class_name))
        if storage.waits_for_first_consumer(storage_class):
            return []
        return Status.unresolvable("PersistentVolume had no name")


def topologies_of_volume(volume: PersistentVolume) -> list[VolumeTopology]:
    """From the volume's labels; a label that names an empty zone is left out."""
    labels = volume.metadata.labels or {}
    found = []
    for key in _TOPOLOGY_LABELS:
        if key in labels:
            values = frozenset(value.strip() for value in labels[key].split(ZONE_DELIMITER))
            if "" not in values:
                found.append(VolumeTopology(key, values))
    return found


def after_claim_changed(pod: PodInfo, old: object | None, new: object | None) -> Hint:  # noqa: ARG001
    if not isinstance(new, PersistentVolumeClaim):
        return Hint.QUEUE
    return Hint.QUEUE if new.key in pod.signature.claim_names else Hint.SKIP


def after_storage_class_added(pod: PodInfo, old: object | None, new: object | None) -> Hint:  # noqa: ARG001
    """A class that binds at once does not excuse a claim from having a volume."""
    if not isinstance(new, StorageClass):
        return Hint.QUEUE
    return Hint.QUEUE if storage.waits_for_first_consumer(new) else Hint.SKIP


def after_volume_changed(pod: PodInfo, old: object | None, new: object | None) -> Hint:  # noqa: ARG001
    if not isinstance(old, PersistentVolume) or not isinstance(new, PersistentVolume):
        return Hint.QUEUE
    return Hint.QUEUE if topologies_of_volume(old) != topologies_of_volume(new) else Hint.SKIP


def _in_topology(nodes: NodeTable, topology: VolumeTopology) -> BoolArray:
    """Nodes with one of the values; a node without the beta label is asked for the stable one."""
    column = nodes.label(topology.key)
    found = column.where(topology.values.__contains__)
    stable = _STABLE_LABELS.get(topology.key)
    if stable is None:
        return found
    lacks_beta = column.codes == MISSING
    return np.where(lacks_beta, nodes.label(stable).where(topology.values.__contains__), found)


def _has_topology_label(nodes: NodeTable) -> BoolArray:
    has_any = np.zeros(len(nodes), dtype=np.bool_)
    for key in _TOPOLOGY_LABELS:
        has_any |= nodes.label(key).codes != MISSING
    return has_any
