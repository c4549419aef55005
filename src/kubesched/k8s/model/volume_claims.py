"""Rules on persistent volume claims: which claims a pod uses, of which class they are, whether they are bound.

A pod uses a claim by naming it, or through a generic ephemeral volume, whose claim is named after pod and volume and
belongs to the pod. Older clusters write the storage class as an annotation, which then counts more than the field.

Next: `csi_migration`, and `kubesched.scheduler.plugins.volume_binding` for how claims find volumes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import controller_of
from kubesched.k8s.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubesched.k8s.model.volumes import Volume

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
