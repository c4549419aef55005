"""A pretend volume controller and provisioner: what the scheduler has chosen is bound or made at once.

It says which objects change in consequence of the two writes of VolumeBinding. The world shows these to the loop after
it has given the answer, as a real controller would come later too.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.k8s.model.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec, StorageClass
from kubesched.k8s.model.volumes import CSIPersistentVolumeSource
from kubesched.scheduler.plugins.volume_binding.effects import BindVolumeToClaim, SelectNodeForClaim
from kubesched.simulator.api_model.store import TypedStore
from kubesched.simulator.bench.object_factory import ObjectFactory
from kubesched.simulator.bench.pod_making import bound_claim, reference_to


class VolumeController:
    def __init__(self, store: TypedStore, factory: ObjectFactory) -> None:
        self._store = store
        self._factory = factory

    def bind(self, action: BindVolumeToClaim) -> tuple[KubeObject, ...]:
        """After a claim was written into a volume: both are bound."""
        volume = self._store.find(PersistentVolume, action.volume_name)
        claim = self._store.find(PersistentVolumeClaim, f"{action.claim.namespace}/{action.claim.name}")
        if volume is None or claim is None:
            return ()
        return replace(volume, status=replace(volume.status, phase="Bound")), bound_claim(claim, volume)

    def provision(self, action: SelectNodeForClaim) -> tuple[KubeObject, ...]:
        """After a node was selected for a claim: a volume is made, and the claim bound to it."""
        claim = self._store.find(PersistentVolumeClaim, f"{action.namespace}/{action.claim_name}")
        if claim is None:
            return ()
        volume = self._new_volume(claim)
        return volume, bound_claim(claim, volume)

    def _new_volume(self, claim: PersistentVolumeClaim) -> PersistentVolume:
        name = f"pvc-{claim.metadata.uid}"
        class_name = claim.spec.storage_class_name or ""
        storage_class = self._store.find(StorageClass, class_name)
        driver = "" if storage_class is None else storage_class.provisioner
        requests = None if claim.spec.resources is None else claim.spec.resources.requests
        volume = PersistentVolume(
            ObjectMeta(name=name, uid=self._factory.next_uid()),
            PersistentVolumeSpec(
                capacity=requests,
                access_modes=claim.spec.access_modes,
                claim_ref=reference_to(claim),
                storage_class_name=class_name,
                csi=CSIPersistentVolumeSource(driver=driver, volume_handle=name),
            ),
        )
        return replace(volume, status=replace(volume.status, phase="Bound"))
