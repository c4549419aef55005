"""A pretend volume controller and provisioner: what the scheduler has chosen is bound or made at once.

Answers the two writes of VolumeBinding, and says which objects change in consequence. The world shows these to the
loop after it has given the answer, as a real controller would come later too.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.framework.effects import Failed
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.k8s.model.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec
from kubesched.k8s.model.volume_claims import BOUND_BY_CONTROLLER_ANNOTATION, SELECTED_NODE_ANNOTATION
from kubesched.k8s.model.volumes import CSIPersistentVolumeSource
from kubesched.scheduler.cluster.objects import ObjectStore
from kubesched.scheduler.plugins.volume_binding.effects import BindVolumeToClaim, SelectNodeForClaim, Written
from kubesched.simulator.bench.object_factory import ObjectFactory
from kubesched.simulator.bench.pod_making import bound_claim, reference_to


@dataclass(frozen=True, slots=True)
class VolumeWrite:
    """What a write is answered with, the object as written, and what changes after that."""

    answer: object
    written: tuple[KubeObject, ...] = ()
    later: tuple[KubeObject, ...] = ()


class VolumeController:
    def __init__(self, objects: ObjectStore, factory: ObjectFactory) -> None:
        self._objects = objects
        self._factory = factory

    def bind(self, action: BindVolumeToClaim) -> VolumeWrite:
        volume = self._objects.persistent_volumes.get(action.volume_name)
        claim = self._objects.persistent_volume_claims.get(f"{action.claim.namespace}/{action.claim.name}")
        if volume is None or claim is None:
            return VolumeWrite(Failed(f'persistentvolumes "{action.volume_name}" not found', is_gone=True))
        annotations = dict(volume.metadata.annotations or {})
        if action.is_ours:
            annotations[BOUND_BY_CONTROLLER_ANNOTATION] = "yes"
        written = self._factory.versioned(
            replace(
                volume,
                metadata=replace(volume.metadata, annotations=annotations),
                spec=replace(volume.spec, claim_ref=action.claim),
                status=replace(volume.status, phase="Bound"),
            )
        )
        later = self._factory.versioned(bound_claim(claim, written))
        return VolumeWrite(Written(written.metadata.resource_version), (written,), (later,))

    def provision(self, action: SelectNodeForClaim) -> VolumeWrite:
        claim = self._objects.persistent_volume_claims.get(f"{action.namespace}/{action.claim_name}")
        if claim is None:
            return VolumeWrite(Failed(f'persistentvolumeclaims "{action.claim_name}" not found', is_gone=True))
        annotations = {**(claim.metadata.annotations or {}), SELECTED_NODE_ANNOTATION: action.node_name}
        written = self._factory.versioned(replace(claim, metadata=replace(claim.metadata, annotations=annotations)))
        volume = self._new_volume(written)
        later = self._factory.versioned(bound_claim(written, volume))
        return VolumeWrite(Written(written.metadata.resource_version), (written,), (volume, later))

    def _new_volume(self, claim: PersistentVolumeClaim) -> PersistentVolume:
        name = f"pvc-{claim.metadata.uid}"
        class_name = claim.spec.storage_class_name or ""
        storage_class = self._objects.storage_classes.get(class_name)
        driver = "" if storage_class is None else storage_class.provisioner
        requests = None if claim.spec.resources is None else claim.spec.resources.requests
        volume = PersistentVolume(
            ObjectMeta(name=name, uid=self._factory.next_uid(), resource_version=self._factory.next_version()),
            PersistentVolumeSpec(
                capacity=requests,
                access_modes=claim.spec.access_modes,
                claim_ref=reference_to(claim),
                storage_class_name=class_name,
                csi=CSIPersistentVolumeSource(driver=driver, volume_handle=name),
            ),
        )
        return replace(volume, status=replace(volume.status, phase="Bound"))
