"""Limits of attached volumes: EBS, GCE PD, Azure Disk and Cinder each by itself, and CSI drivers by their own."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import Handle
from kubesched.framework.nodes import NodeInfo
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Status
from kubesched.k8s.model import csi_migration
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.requests import ATTACHABLE_VOLUMES_PREFIX, node_units
from kubesched.k8s.model.storage import PersistentVolumeClaim, PersistentVolumeSpec
from kubesched.k8s.model.volume_claims import class_of_claim
from kubesched.k8s.model.volumes import Volume
from kubesched.older.config.generations import Generation
from kubesched.older.plugins.rejection import OlderPlugin

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
