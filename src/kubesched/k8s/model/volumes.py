"""Where a volume's data lives: the sources a pod or a persistent volume can name.

Next: `storage` for persistent volumes, claims and classes.
"""

from __future__ import annotations

import msgspec

from kubesched.k8s.model.meta import Int32, KubeStruct, LabelSelector, ObjectMeta, ResourceList


class PersistentVolumeClaimVolumeSource(KubeStruct, frozen=True):
    claim_name: str
    read_only: bool = False


class GCEPersistentDiskVolumeSource(KubeStruct, frozen=True):
    pd_name: str = ""
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AWSElasticBlockStoreVolumeSource(KubeStruct, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AzureDiskVolumeSource(KubeStruct, frozen=True):
    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")
    kind: str | None = None
    read_only: bool = False


class AzureFileVolumeSource(KubeStruct, frozen=True):
    secret_name: str = ""
    secret_namespace: str | None = None
    share_name: str = ""
    read_only: bool = False


class CinderVolumeSource(KubeStruct, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")
    fs_type: str = ""
    read_only: bool = False


class VsphereVirtualDiskVolumeSource(KubeStruct, frozen=True):
    volume_path: str = ""
    fs_type: str = ""


class PortworxVolumeSource(KubeStruct, frozen=True):
    volume_id: str = msgspec.field(default="", name="volumeID")
    fs_type: str = ""
    read_only: bool = False


class ISCSIVolumeSource(KubeStruct, frozen=True):
    target_portal: str = ""
    iqn: str = ""
    lun: Int32 = 0
    read_only: bool = False


class RBDVolumeSource(KubeStruct, frozen=True):
    """`monitors`, `image` and `pool` are what two users of one image share."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class CSIPersistentVolumeSource(KubeStruct, frozen=True):
    driver: str = ""
    volume_handle: str = ""
    fs_type: str = ""
    read_only: bool = False
    volume_attributes: dict[str, str] | None = None


class CSIVolumeSource(KubeStruct, frozen=True):
    """An inline volume of a CSI driver."""

    driver: str = ""
    fs_type: str | None = None
    read_only: bool | None = None
    volume_attributes: dict[str, str] | None = None


class TypedLocalObjectReference(KubeStruct, frozen=True):
    kind: str = ""
    name: str = ""
    api_group: str | None = None


class VolumeResourceRequirements(KubeStruct, frozen=True):
    requests: ResourceList | None = None
    limits: ResourceList | None = None


class PersistentVolumeClaimSpec(KubeStruct, frozen=True):
    volume_name: str = ""
    storage_class_name: str | None = None
    access_modes: tuple[str, ...] | None = None
    volume_mode: str | None = None
    selector: LabelSelector | None = None
    resources: VolumeResourceRequirements | None = None
    data_source: TypedLocalObjectReference | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimTemplate(KubeStruct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class EphemeralVolumeSource(KubeStruct, frozen=True):
    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class ImageVolumeSource(KubeStruct, frozen=True):
    """An OCI image or artifact, mounted as a volume."""

    reference: str = ""


class EmptyDirVolumeSource(KubeStruct, frozen=True):
    medium: str = ""


class HostPathVolumeSource(KubeStruct, frozen=True):
    path: str = ""


class Volume(KubeStruct, frozen=True):
    """One volume of a pod. Sources that no rule of scheduling or draining asks about are left out."""

    name: str
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    image: ImageVolumeSource | None = None
    empty_dir: EmptyDirVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
