"""Persistent volumes and claims, storage classes, CSI nodes, drivers and capacities, attachments; and rules on claims.

A pod uses a claim by naming it, or through a generic ephemeral volume, whose claim is named after pod and volume and
belongs to the pod. Older clusters write the storage class as an annotation, which then counts more than the field.
What a volume offers is worked out once per volume, and compared often with what a claim asks for.

Next: `csi_migration` for volumes of the old in-tree kinds, and `kubesched.scheduler.plugins.volume_binding` for how
claims find volumes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import msgspec

from kubesched.k8s.model import quantity, selectors
from kubesched.k8s.model.core import NodeSelector, Pod
from kubesched.k8s.model.meta import Amount, Int32, KubeObject, KubeStruct, LabelSelector, ResourceList, controller_of
from kubesched.k8s.model.quantity import Quantity
from kubesched.k8s.model.selectors import CompiledNodeSelector
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
    Volume,
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


STORAGE_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
BIND_COMPLETED_ANNOTATION = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER_ANNOTATION = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE_ANNOTATION = "volume.kubernetes.io/selected-node"

READ_WRITE_ONCE_POD = "ReadWriteOncePod"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


@dataclass(frozen=True, slots=True)
class ClaimUse:
    """A claim that a pod uses, by name. It need not exist."""

    namespace: str
    name: str
    is_ephemeral: bool = False

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


def claim_of(pod: Pod, volume: Volume) -> ClaimUse | None:
    """The claim behind a pod's volume; None for volumes that need none."""
    if volume.persistent_volume_claim is not None:
        return ClaimUse(pod.namespace, volume.persistent_volume_claim.claim_name)
    if volume.ephemeral is not None:
        return ClaimUse(pod.namespace, f"{pod.name}-{volume.name}", is_ephemeral=True)
    return None


def claims_of(pod: Pod) -> Iterator[ClaimUse]:
    """The claims of a pod's volumes, in their order."""
    for volume in pod.spec.volumes or ():
        use = claim_of(pod, volume)
        if use is not None:
            yield use


def foreign_claim_message(pod: Pod, claim: PersistentVolumeClaim) -> str | None:
    """What is wrong with using this claim for an ephemeral volume of the pod; None if it was made for the pod."""
    owner = controller_of(claim.metadata)
    if claim.namespace == pod.namespace and owner is not None and owner.uid == pod.metadata.uid:
        return None
    return f"PVC {claim.key} was not created for pod {pod.pod_key} (pod is not owner)"


def class_of_claim(claim: PersistentVolumeClaim) -> str:
    annotated = (claim.metadata.annotations or {}).get(STORAGE_CLASS_ANNOTATION)
    return annotated if annotated is not None else claim.spec.storage_class_name or ""


def class_of_volume(volume: PersistentVolume) -> str:
    annotated = (volume.metadata.annotations or {}).get(STORAGE_CLASS_ANNOTATION)
    return annotated if annotated is not None else volume.spec.storage_class_name


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Bound to a volume, and the volume controller has finished with it."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED_ANNOTATION in (claim.metadata.annotations or {})


def waits_for_first_consumer(storage_class: StorageClass) -> bool:
    return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def claim_not_found(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'


def volume_not_found(name: str) -> str:
    return f'persistentvolume "{name}" not found'


def storage_class_not_found(name: str) -> str:
    return f'storageclass.storage.k8s.io "{name}" not found'


def binding_mode_not_set(storage_class_name: str) -> str:
    return f'VolumeBindingMode not set for StorageClass "{storage_class_name}"'


NO_PROVISIONER = "kubernetes.io/no-provisioner"
FILESYSTEM = "Filesystem"

_NOTHING = quantity.from_int(0)


@dataclass(frozen=True, slots=True, eq=False)
class Offer:
    """`traits` must be the claim's own; `label` is the one label, with its values, by which the volume names nodes,
    or None if it does so in another way or not at all."""

    volume: PersistentVolume
    name: str
    class_name: str
    capacity_nanos: int
    access_modes: frozenset[str]
    traits: tuple[str, str]
    is_leaving: bool
    is_available: bool
    label: tuple[str, tuple[str, ...]] | None

    @classmethod
    def of(cls, volume: PersistentVolume) -> Offer:
        spec = volume.spec
        return cls(
            volume=volume,
            name=volume.name,
            class_name=class_of_volume(volume),
            capacity_nanos=storage_of(spec.capacity).nanos,
            access_modes=frozenset(spec.access_modes or ()),
            traits=(spec.volume_mode or FILESYSTEM, spec.volume_attributes_class_name or ""),
            is_leaving=volume.metadata.deletion_timestamp is not None,
            is_available=volume.status.phase == "Available",
            label=single_label(spec.node_affinity),
        )


def requested_storage(claim: PersistentVolumeClaim) -> Quantity:
    return storage_of(claim.spec.resources.requests) if claim.spec.resources is not None else _NOTHING


def storage_of(amounts: ResourceList | None) -> Quantity:
    amount = (amounts or {}).get("storage")
    return _NOTHING if amount is None else quantity.parse(amount)


def single_label(affinity: VolumeNodeAffinity | None) -> tuple[str, tuple[str, ...]] | None:
    """The label and its values, if the affinity asks for nothing but one of these values."""
    if affinity is None or affinity.required is None:
        return None
    terms = compile_affinity(affinity.required).terms
    if len(terms) != 1 or terms[0].error is not None or len(terms[0].labels) != 1:
        return None
    requirement = terms[0].labels[0]
    return (requirement.key, tuple(dict.fromkeys(requirement.values))) if requirement.operator == "In" else None


@lru_cache(maxsize=16384)
def compile_affinity(selector: NodeSelector) -> CompiledNodeSelector:
    return selectors.from_node_selector(selector)


@dataclass(frozen=True, slots=True)
class SuitableVolumes:
    """Positions in the list of offers: those already meant for the claim, by name, and the free ones, the smallest
    first and by name where they are of one size."""

    prebound: tuple[int, ...]
    free: tuple[int, ...]


def suitable_volumes(claim: PersistentVolumeClaim, offers: Sequence[Offer]) -> SuitableVolumes:
    """Raises SelectorError if the claim's selector cannot be understood."""
    wanted_nanos = requested_storage(claim).nanos
    wanted_class = class_of_claim(claim)
    wanted_modes = frozenset(claim.spec.access_modes or ())
    traits = (claim.spec.volume_mode or FILESYSTEM, claim.spec.volume_attributes_class_name or "")
    selector = selectors.from_label_selector(claim.spec.selector) if claim.spec.selector is not None else None
    prebound: list[tuple[str, int]] = []
    free: list[tuple[int, str, int]] = []
    for position, offer in enumerate(offers):
        if offer.capacity_nanos < wanted_nanos or offer.class_name != wanted_class or offer.traits != traits:
            continue
        if offer.is_leaving:
            continue
        if offer.volume.spec.claim_ref is not None:
            if is_bound_to(offer.volume, claim):
                prebound.append((offer.name, position))
        elif not offer.is_available or not wanted_modes <= offer.access_modes:
            continue
        elif selector is None or selector.matches(offer.volume.metadata.labels or {}):
            free.append((offer.capacity_nanos, offer.name, position))
    prebound.sort()
    free.sort()
    return SuitableVolumes(tuple(found[-1] for found in prebound), tuple(found[-1] for found in free))


def is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume names this claim; a uid that the volume does not give is not compared."""
    reference = volume.spec.claim_ref
    return (
        reference is not None
        and (reference.name, reference.namespace) == (claim.name, claim.namespace)
        and reference.uid in ("", claim.metadata.uid)
    )
