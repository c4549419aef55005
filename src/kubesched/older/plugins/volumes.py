"""VolumeRestrictions and VolumeZone of old, and the limits of attached volumes.

EBS, GCE PD, Azure Disk and Cinder were limited each by itself, and CSI drivers by their own limits.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import Handle
from kubesched.framework.nodes import NodeInfo
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Status
from kubesched.k8s.model import csi_migration, storage
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.requests import ATTACHABLE_VOLUMES_PREFIX, node_units
from kubesched.k8s.model.storage import PersistentVolumeClaim, PersistentVolumeSpec, class_of_claim
from kubesched.k8s.model.volumes import Volume
from kubesched.older.config.generations import Generation, VolumeTrouble
from kubesched.older.plugins.rejection import OlderPlugin, Reason, ReasonedFilter
from kubesched.scheduler.plugins.volume_restrictions import conflicts

TOO_MANY_VOLUMES = Status.unschedulable("node(s) exceed max volume count")

_NITRO = re.compile(r"^[cmr]5.*|t3|z1d")
_INSTANCE_TYPES = ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type")
_CSI_PREFIX = "attachable-volumes-csi-"
_LONGEST_KEY = 63

Source = Volume | PersistentVolumeSpec


@dataclass(frozen=True, slots=True)
class DiskKind:
    """A kind of disk: where it is named, what a node may hold of it."""

    provisioner: str
    limit_key: str
    id_of: Callable[[Source], str | None]
    default_limit: Callable[[str], int]


def _ebs(source: Source) -> str | None:
    return None if source.aws_elastic_block_store is None else source.aws_elastic_block_store.volume_id


def _gce(source: Source) -> str | None:
    return None if source.gce_persistent_disk is None else source.gce_persistent_disk.pd_name


def _azure(source: Source) -> str | None:
    return None if source.azure_disk is None else source.azure_disk.disk_name


def _cinder(source: Source) -> str | None:
    return None if source.cinder is None else source.cinder.volume_id


DISK_KINDS: Mapping[str, DiskKind] = {
    "EBSLimits": DiskKind(
        "kubernetes.io/aws-ebs", "attachable-volumes-aws-ebs", _ebs, lambda kind: 25 if _NITRO.search(kind) else 39
    ),
    "GCEPDLimits": DiskKind("kubernetes.io/gce-pd", "attachable-volumes-gce-pd", _gce, lambda _kind: 16),
    "AzureDiskLimits": DiskKind("kubernetes.io/azure-disk", "attachable-volumes-azure-disk", _azure, lambda _kind: 16),
    "CinderLimits": DiskKind("kubernetes.io/cinder", "attachable-volumes-cinder", _cinder, lambda _kind: 256),
}


class DiskLimits(OlderPlugin):
    """One kind of disk. Two pods that use one disk count it once."""

    def __init__(
        self, name: str, args: Mapping[str, Any], handle: Handle, generation: Generation, kind: DiskKind
    ) -> None:
        super().__init__(name, args, handle, generation)
        self._kind = kind

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        new = set(self._disks(pod.pod))
        if not new:
            return OK
        existing = {disk for other in node.pods for disk in self._disks(other.pod)}
        return TOO_MANY_VOLUMES if len(existing | new) > self._limit(node.node) else OK

    def _limit(self, node: Node) -> int:
        of_node = _attachable(node).get(self._kind.limit_key)
        if of_node is not None:
            return of_node
        labels = _INSTANCE_TYPES if self.generation.stable_zone_labels else _INSTANCE_TYPES[:1]
        types = [node.labels[label] for label in labels if label in node.labels]
        return self._kind.default_limit(types[0] if types else "")

    def _disks(self, pod: Pod) -> Iterator[str]:
        for volume in pod.spec.volumes or ():
            disk = self._kind.id_of(volume)
            if disk is not None:
                yield disk
            elif volume.persistent_volume_claim is not None:
                yield from self._claimed(f"{pod.namespace}/{volume.persistent_volume_claim.claim_name}")

    def _claimed(self, key: str) -> Iterator[str]:
        objects = self.handle.objects
        claim = objects.persistent_volume_claims.get(key)
        volume = None
        if claim is not None and claim.spec.volume_name:
            volume = objects.persistent_volumes.get(claim.spec.volume_name)
        if volume is not None:
            disk = self._kind.id_of(volume.spec)
            if disk is not None:
                yield disk
        elif self.generation.unknown_claims_count or (claim is not None and self._is_to_come(claim)):
            yield f"claim {key}"

    def _is_to_come(self, claim: PersistentVolumeClaim) -> bool:
        name = claim.spec.storage_class_name
        storage_class = None if name is None else self.handle.objects.storage_classes.get(name)
        return storage_class is not None and storage_class.provisioner == self._kind.provisioner


class CSILimits(OlderPlugin):
    """Volumes of CSI drivers, by the limit of each driver."""

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        limits = self._limits(node)
        new = dict(self._volumes(pod.pod))
        if not new or not limits:
            return OK
        attached = {volume: key for other in node.pods for volume, key in self._volumes(other.pod)}
        for key in set(new.values()):
            n_new = sum(known == key for volume, known in new.items() if volume not in attached)
            n_attached = sum(known == key for known in attached.values())
            if n_new and key in limits and n_attached + n_new > limits[key]:
                return TOO_MANY_VOLUMES
        return OK

    def _limits(self, node: NodeInfo) -> dict[str, int]:
        found = _attachable(node.node)
        csi_node = self.handle.objects.csi_nodes.get(node.name) if self.generation.reads_csi_nodes else None
        for driver in () if csi_node is None else csi_node.spec.drivers:
            if driver.allocatable is not None and driver.allocatable.count is not None:
                found[limit_key(driver.name)] = driver.allocatable.count
        return found

    def _volumes(self, pod: Pod) -> Iterator[tuple[str, str]]:
        """A volume's own name, and the key of its driver's limit."""
        for volume in pod.spec.volumes or ():
            if volume.persistent_volume_claim is None:
                continue
            key = f"{pod.namespace}/{volume.persistent_volume_claim.claim_name}"
            claim = self.handle.objects.persistent_volume_claims.get(key)
            found = None if claim is None else self._driver_and_handle(claim)
            if found is not None:
                driver, handle = found
                name = f"{driver}/{handle}" if self.generation.reads_csi_nodes else handle
                yield name, limit_key(driver)

    def _driver_and_handle(self, claim: PersistentVolumeClaim) -> tuple[str, str] | None:
        volume = self.handle.objects.persistent_volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is not None:
            csi = volume.spec.csi
            return None if csi is None else (csi.driver, csi.volume_handle)
        if not self.generation.reads_csi_nodes:
            return None
        storage_class = self.handle.objects.storage_classes.get(class_of_claim(claim))
        if storage_class is None or csi_migration.plugin_named(storage_class.provisioner) is not None:
            return None
        return storage_class.provisioner, f"claim {claim.key}"


def limit_key(driver: str) -> str:
    """A name too long for a resource is shortened, with a hash of the whole."""
    key = _CSI_PREFIX + driver
    if len(key) < _LONGEST_KEY:
        return key
    return _CSI_PREFIX + driver[:23] + hashlib.sha1(driver.encode(), usedforsecurity=False).hexdigest()[:16]


def _attachable(node: Node) -> dict[str, int]:
    found = node_units(node.status.allocatable, "status.allocatable")
    return {name: amount for name, amount in found.items() if name.startswith(ATTACHABLE_VOLUMES_PREFIX)}


DISK_TAKEN = Reason("node(s) had no available disk")
WRONG_ZONE = Status.unresolvable("node(s) had no available volume zone")

_BETA_LABELS = ("failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region")
_STABLE_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_ZONE_DELIMITER = "__"


class OlderVolumeRestrictions(ReasonedFilter):
    def reasons(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Sequence[Reason]:
        volumes = pod.spec.volumes or ()
        taken = any(conflicts(volume, other.pod) for volume in volumes for other in node.pods)
        return (DISK_TAKEN,) if taken else ()


class OlderVolumeZone(OlderPlugin):
    """A node with zone labels must be in the zones of the pod's volumes."""

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        keys = _BETA_LABELS + (_STABLE_LABELS if self.generation.stable_volume_zones else ())
        here = {key: node.node.labels[key] for key in keys if key in node.node.labels}
        if not here:
            return OK
        for volume in pod.spec.volumes or ():
            if volume.persistent_volume_claim is not None:
                status = self._check(pod, volume.persistent_volume_claim.claim_name, keys, here)
                if not status.is_success:
                    return status
        return OK

    def _check(self, pod: PodInfo, name: str, keys: Sequence[str], here: Mapping[str, str]) -> Status:
        if not name:
            return self._trouble("PersistentVolumeClaim had no name")
        claim = self.handle.objects.persistent_volume_claims.get(f"{pod.namespace}/{name}")
        if claim is None:
            return self._trouble(storage.claim_not_found(name))
        volume_name = claim.spec.volume_name
        if not volume_name:
            return self._check_unbound(claim)
        volume = self.handle.objects.persistent_volumes.get(volume_name)
        if volume is None:
            return self._trouble(storage.volume_not_found(volume_name))
        labels = volume.metadata.labels or {}
        for key in keys:
            zones = _zones(labels[key]) if key in labels else None
            if zones is not None and here.get(key, "") not in zones:
                return WRONG_ZONE
        return OK

    def _check_unbound(self, claim: PersistentVolumeClaim) -> Status:
        """A claim that waits for its first consumer may go anywhere; any other should have been bound."""
        class_name = storage.class_of_claim(claim)
        storage_class = self.handle.objects.storage_classes.get(class_name)
        if storage_class is not None:
            if storage_class.volume_binding_mode is None:
                return self._trouble(f'VolumeBindingMode not set for StorageClass "{class_name}"')
            if storage.waits_for_first_consumer(storage_class):
                return OK
        return self._trouble(self._unbound_message(claim, class_name, has_class=storage_class is not None))

    def _unbound_message(self, claim: PersistentVolumeClaim, class_name: str, *, has_class: bool) -> str:
        if self.generation.unbound_zone_message:
            return self.generation.unbound_zone_message.format(claim=claim.name)
        if not class_name:
            return "PersistentVolumeClaim had no pv name and storageClass name"
        if has_class:
            return "PersistentVolume had no name"
        if self.generation.zone_of_broken_volume is VolumeTrouble.ERROR:
            return f'StorageClass "{class_name}" claimed by PersistentVolumeClaim "{claim.name}" not found'
        return storage.storage_class_not_found(class_name)

    def _trouble(self, message: str) -> Status:
        if self.generation.zone_of_broken_volume is VolumeTrouble.ERROR:
            return Status.error(message)
        return Status.unresolvable(message)


def _zones(text: str) -> set[str] | None:
    """The zones of a volume's label; None if it makes no sense, and is then left out."""
    found = [zone.strip() for zone in text.split(_ZONE_DELIMITER)]
    return set(found) if all(found) else None
