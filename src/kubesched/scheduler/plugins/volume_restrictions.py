"""VolumeRestrictions: two pods must not use one disk in a way that the disk does not allow.

Two rules. An inline disk (GCE PD, EBS, iSCSI, RBD) may be mounted once per node, or more often only where all mounts
are read-only. A claim with the access mode ReadWriteOncePod may be used by one pod of the whole cluster: if another pod
uses it, all nodes are rejected, until that pod is deleted.

Next: `node_volume_limits`, which counts volumes.
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
from kubesched.framework.nodes import NodeInfo, NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import PreFilterResult
from kubesched.framework.status import OK, SKIP, Status
from kubesched.framework.verdicts import BoolArray, Verdicts
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.storage import READ_WRITE_ONCE_POD, PersistentVolumeClaim, claim_not_found
from kubesched.k8s.model.volumes import RBDVolumeSource, Volume

DISK_CONFLICT = "node(s) had no available disk"
READ_WRITE_ONCE_POD_CONFLICT = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)

_NOTHING_ASKED = ClaimQuestion(())


@dataclass(slots=True)
class ClaimsOfOnePod:
    """The pod's claims that only one pod may use, and how many times other pods use one of them."""

    claim_names: frozenset[str]
    users: int

    def uses_by(self, other: PodInfo) -> int:
        """By name alone, whatever the namespace: kube-scheduler compares no more than that here."""
        return sum(name in self.claim_names for name in _named_claims(other.pod))


@dataclass(frozen=True, slots=True)
class VolumeRestrictions:
    args: object
    handle: Handle
    name: ClassVar[str] = "VolumeRestrictions"
    filter_scope: ClassVar[Scope] = Scope.CLUSTER

    def filter_scope_for(self, pod: PodInfo) -> Scope:
        """A pod without such volumes is never refused."""
        return self.filter_scope if _restricted_volumes(pod.pod) or _named_claims(pod.pod) else Scope.NODE

    def objects_changed(self, _cycle: CycleState, pod: PodInfo, _changed: Sequence[KubeObject]) -> bool:
        """Objects matter to pods with volumes of that kind alone."""
        return self.filter_scope_for(pod) is Scope.NODE

    def question_of(self, pod: PodInfo) -> ClaimQuestion | None:
        """Claims that no other pod keeps from being used ask for nothing; inline disks are compared pod by pod."""
        if _restricted_volumes(pod.pod):
            return None
        for claim_name in _named_claims(pod.pod):
            key = f"{pod.namespace}/{claim_name}"
            claim = self.handle.objects.persistent_volume_claims.get(key)
            if claim is None:
                return None
            if READ_WRITE_ONCE_POD in (claim.spec.access_modes or ()) and self.handle.nodes.is_claim_used(key):
                return None
        return _NOTHING_ASKED

    def generalize(self, cycle: CycleState, pod: PodInfo) -> None:
        pass

    def take_over(self, cycle: CycleState, pod: PodInfo) -> bool:
        return True

    def nodes_to_ask_again(self, cycle: CycleState, pod: PodInfo, changes: Sequence[PodChange]) -> Sequence[str]:
        return ()

    def pre_filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult:
        exclusive = self._exclusive_claims(pod)
        if isinstance(exclusive, Status):
            return PreFilterResult(exclusive)
        users = sum(nodes.is_claim_used(f"{pod.namespace}/{name}") for name in exclusive)
        if users == 0 and not _restricted_volumes(pod.pod):
            return PreFilterResult(SKIP)
        cycle.put(ClaimsOfOnePod(frozenset(exclusive), users))
        return PreFilterResult()

    def add_pod(self, cycle: CycleState, pod: PodInfo, added: PodInfo, node: NodeInfo) -> Status:
        state = cycle.get(ClaimsOfOnePod)
        state.users += state.uses_by(added)
        return OK

    def remove_pod(self, cycle: CycleState, pod: PodInfo, removed: PodInfo, node: NodeInfo) -> Status:
        state = cycle.get(ClaimsOfOnePod)
        state.users -= state.uses_by(removed)
        return OK

    def filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdicts:
        disk_taken = _rows_with_conflict(pod.pod, nodes)
        claim_taken = np.full(len(nodes), cycle.get(ClaimsOfOnePod).users > 0, dtype=np.bool_)
        return Verdicts.combine(
            (
                (DISK_CONFLICT, disk_taken, False),
                (READ_WRITE_ONCE_POD_CONFLICT, claim_taken & ~disk_taken, False),
            )
        )

    def bound_group(self, room: GroupRoom) -> bool:
        """Claims and disks that are for one pod keep others of the group away only if they share them."""
        named: set[str] = set()
        for kind in room.kinds:
            if _restricted_volumes(kind.pod.pod):
                return False
            names = self._exclusive_claims(kind.pod)
            if isinstance(names, Status):
                return False
            if names and (kind.n_pods > 1 or not named.isdisjoint(names)):
                return False
            named |= names
        return True

    def _exclusive_claims(self, pod: PodInfo) -> set[str] | Status:
        """The names of those that only one pod may use."""
        claims = self.handle.objects.persistent_volume_claims
        exclusive: set[str] = set()
        for claim_name in _named_claims(pod.pod):
            claim = claims.get(f"{pod.namespace}/{claim_name}")
            if claim is None:
                return Status.unresolvable(claim_not_found(claim_name))
            if READ_WRITE_ONCE_POD in (claim.spec.access_modes or ()):
                exclusive.add(claim_name)
        return exclusive

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        return (
            RegisteredEvent(ClusterEvent(EventResource.POD, ActionType.DELETE), after_pod_deleted),
            RegisteredEvent(ClusterEvent(EventResource.NODE, ActionType.ADD)),
            RegisteredEvent(ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD), after_claim_added),
        )


def after_pod_deleted(pod: PodInfo, old: object | None, new: object | None) -> Hint:  # noqa: ARG001
    """The deleted pod may have held a disk or a claim of this one. Whether the claim is exclusive is not looked up."""
    if not isinstance(old, Pod):
        return Hint.QUEUE
    if old.namespace != pod.namespace:
        return Hint.SKIP
    if any(conflicts(volume, old) for volume in _restricted_volumes(pod.pod)):
        return Hint.QUEUE
    shared = set(_named_claims(pod.pod)).intersection(_named_claims(old))
    return Hint.QUEUE if shared else Hint.SKIP


def after_claim_added(pod: PodInfo, old: object | None, new: object | None) -> Hint:  # noqa: ARG001
    if not isinstance(new, PersistentVolumeClaim):
        return Hint.QUEUE
    is_ours = new.namespace == pod.namespace and new.name in _named_claims(pod.pod)
    return Hint.QUEUE if is_ours else Hint.SKIP


def conflicts(volume: Volume, other: Pod) -> bool:
    """Whether the other pod's use of a disk forbids this volume on the same node."""
    return any(_is_same_disk(volume, existing) for existing in other.spec.volumes or ())


def _is_same_disk(one: Volume, other: Volume) -> bool:
    """The same disk, and not merely read by both; an EBS volume goes to one pod even for reading."""
    gce, other_gce = one.gce_persistent_disk, other.gce_persistent_disk
    if gce is not None and other_gce is not None:
        return gce.pd_name == other_gce.pd_name and not (gce.read_only and other_gce.read_only)
    ebs, other_ebs = one.aws_elastic_block_store, other.aws_elastic_block_store
    if ebs is not None and other_ebs is not None:
        return ebs.volume_id == other_ebs.volume_id
    iscsi, other_iscsi = one.iscsi, other.iscsi
    if iscsi is not None and other_iscsi is not None:
        return iscsi.iqn == other_iscsi.iqn and not (iscsi.read_only and other_iscsi.read_only)
    if one.rbd is not None and other.rbd is not None:
        return _is_same_image(one.rbd, other.rbd) and not (one.rbd.read_only and other.rbd.read_only)
    return False


def _is_same_image(one: RBDVolumeSource, other: RBDVolumeSource) -> bool:
    is_alike = one.pool == other.pool and one.image == other.image
    return is_alike and not set(one.monitors).isdisjoint(other.monitors)


def _rows_with_conflict(pod: Pod, nodes: NodeTable) -> BoolArray:
    found = np.zeros(len(nodes), dtype=np.bool_)
    volumes = _restricted_volumes(pod)
    if not volumes:
        return found
    pods_on = nodes.pods.on
    for position, row in enumerate(nodes.rows.tolist()):
        for other in pods_on(row):
            if other.pod.spec.volumes and any(conflicts(volume, other.pod) for volume in volumes):
                found[position] = True
                break
    return found


def _restricted_volumes(pod: Pod) -> list[Volume]:
    return [
        volume
        for volume in pod.spec.volumes or ()
        if volume.gce_persistent_disk is not None
        or volume.aws_elastic_block_store is not None
        or volume.rbd is not None
        or volume.iscsi is not None
    ]


def _named_claims(pod: Pod) -> list[str]:
    """Claims that the pod names itself, in the order of its volumes; one that is named twice stands twice."""
    return [
        volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes or ()
        if volume.persistent_volume_claim is not None
    ]
