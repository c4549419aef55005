"""Simulated controllers of a benchmark, for device claims and for volumes.

Device claims are made for pods from templates, and given back when their pods are gone. What the scheduler has chosen
for a volume is bound or provisioned at once: the volume controller says which objects change in consequence of the two
writes of VolumeBinding, and the world shows these to the loop after it has given the answer, as a real controller would
come later too.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.k8s.model.core import Pod, PodResourceClaimStatus
from kubesched.k8s.model.meta import KubeObject, ObjectMeta, OwnerReference, controller_of
from kubesched.k8s.model.resource import ResourceClaim, ResourceClaimStatus, ResourceClaimTemplate
from kubesched.k8s.model.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeSpec, StorageClass
from kubesched.k8s.model.volumes import CSIPersistentVolumeSource
from kubesched.scheduler.plugins.volume_binding.binding import BindVolumeToClaim, SelectNodeForClaim
from kubesched.simulator.api_model.store import TypedStore
from kubesched.simulator.bench.object_factory import ObjectFactory, bound_claim, reference_to


class ClaimController:
    def __init__(self, store: TypedStore, factory: ObjectFactory) -> None:
        self._store = store
        self._factory = factory

    def with_claims(self, pod: Pod) -> Pod:
        """The pod with the claims that its templates ask for, which are there from now on."""
        statuses = []
        for entry in pod.spec.resource_claims or ():
            if entry.resource_claim_template_name is None:
                continue
            key = f"{pod.namespace}/{entry.resource_claim_template_name}"
            template = self._store.find(ResourceClaimTemplate, key)
            if template is None:
                continue
            name = self._factory.generated_name(f"{pod.name}-{entry.name}-")
            owner = OwnerReference("Pod", pod.name, pod.metadata.uid, "v1", controller=True)
            metadata = ObjectMeta(name=name, namespace=pod.namespace, owner_references=(owner,))
            self._store.create(ResourceClaim(metadata, template.spec.spec))
            statuses.append(PodResourceClaimStatus(entry.name, name))
        if not statuses:
            return pod
        return replace(pod, status=replace(pod.status, resource_claim_statuses=tuple(statuses)))

    def pod_gone(self, pod: Pod) -> None:
        """Claims made for the pod go with it; others are free again once no pod uses them."""
        uid = pod.metadata.uid
        names = [entry.resource_claim_name for entry in pod.spec.resource_claims or ()]
        names += [status.resource_claim_name for status in pod.status.resource_claim_statuses or ()]
        if pod.status.extended_resource_claim_status is not None:
            names.append(pod.status.extended_resource_claim_status.resource_claim_name)
        for name in names:
            claim = self._store.find(ResourceClaim, f"{pod.namespace}/{name}")
            if claim is None:
                continue
            owner = controller_of(claim.metadata)
            if owner is not None and owner.uid == uid:
                self._store.remove(claim)
            else:
                self._give_back(claim, uid)

    def _give_back(self, claim: ResourceClaim, uid: str) -> None:
        users = tuple(user for user in claim.status.reserved_for or () if user.uid != uid)
        status = replace(claim.status, reserved_for=users) if users else ResourceClaimStatus()
        self._store.write(claim, status=status)


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
