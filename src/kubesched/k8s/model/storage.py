"""Persistent volumes and claims, storage classes, CSI nodes, drivers and capacities, attachments.

Next: `volume_claims` for the rules on claims, `csi_migration` for volumes of the old in-tree kinds.
"""

from __future__ import annotations

import msgspec

from kubesched.k8s.model.core import NodeSelector
from kubesched.k8s.model.meta import Amount, Int32, KubeObject, KubeStruct, LabelSelector, ResourceList
from kubesched.k8s.model.volumes import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    AzureFileVolumeSource,
    CinderVolumeSource,
    CSIPersistentVolumeSource,
    GCEPersistentDiskVolumeSource,
    ISCSIVolumeSource,
    PersistentVolumeClaimSpec,
    PortworxVolumeSource,
    RBDVolumeSource,
    VsphereVirtualDiskVolumeSource,
)


class ObjectReference(KubeStruct, frozen=True):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""
    """Which part of the object is meant: `spec.containers{web}`."""


class VolumeNodeAffinity(KubeStruct, frozen=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(KubeStruct, frozen=True):
    capacity: ResourceList | None = None
    access_modes: tuple[str, ...] | None = None
    claim_ref: ObjectReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None
    csi: CSIPersistentVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    rbd: RBDVolumeSource | None = None


class PersistentVolumeStatus(KubeStruct, frozen=True):
    phase: str = ""


class PersistentVolume(KubeObject, frozen=True):
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class PersistentVolumeClaimStatus(KubeStruct, frozen=True):
    phase: str = ""


class PersistentVolumeClaim(KubeObject, frozen=True):
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class TopologySelectorLabelRequirement(KubeStruct, frozen=True):
    key: str
    values: tuple[str, ...] = ()


class TopologySelectorTerm(KubeStruct, frozen=True):
    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] | None = None


class StorageClass(KubeObject, frozen=True):
    provisioner: str = ""
    parameters: dict[str, str] | None = None
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] | None = None


class VolumeNodeResources(KubeStruct, frozen=True):
    count: Int32 | None = None


class CSINodeDriver(KubeStruct, frozen=True):
    name: str
    node_id: str = msgspec.field(default="", name="nodeID")
    topology_keys: tuple[str, ...] | None = None
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(KubeStruct, frozen=True):
    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(KubeObject, frozen=True):
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(KubeStruct, frozen=True):
    attach_required: bool | None = None
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(KubeObject, frozen=True):
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(KubeObject, frozen=True):
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Amount | None = None
    maximum_volume_size: Amount | None = None


class VolumeAttachmentSource(KubeStruct, frozen=True):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(KubeStruct, frozen=True):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachment(KubeObject, frozen=True):
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
