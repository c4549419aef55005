"""Writes of volumes, their claims and device claims, as kube-apiserver carries them out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import replace

from kubesched.framework.effects import Failed, Written
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.k8s.model.resource import ResourceClaim
from kubesched.k8s.model.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.k8s.model.volume_claims import BOUND_BY_CONTROLLER_ANNOTATION, SELECTED_NODE_ANNOTATION
from kubesched.scheduler.plugins.dynamic_resources.effects import (
    AddClaimFinalizer,
    ClaimConflict,
    ClaimRequest,
    CreateResourceClaim,
    DeallocateClaim,
    DeleteResourceClaim,
    ReadResourceClaim,
    RemoveReservation,
    UpdateClaimStatus,
)
from kubesched.scheduler.plugins.volume_binding.binding import BindVolumeToClaim, SelectNodeForClaim
from kubesched.simulator.api_model.store import TypedStore, conflict, not_found

Item = TypeVar("Item", bound=KubeObject)


_RESOURCE = "resourceclaims.resource.k8s.io"

ClaimAnswer = ResourceClaim | ClaimConflict | Failed


class ClaimEffects:
    """`now` is the time that is written, `new_name` makes a name of a beginning."""

    def __init__(self, store: TypedStore, now: Callable[[], str], new_name: Callable[[str], str]) -> None:
        self._store = store
        self._now = now
        self._new_name = new_name

    # -- waited for ----------------------------------------------------------------------------------------------------

    def create(self, action: CreateResourceClaim) -> ClaimAnswer:
        metadata = replace(action.claim.metadata, name=self._new_name(action.generate_name), uid="")
        return self._store.create(replace(action.claim, metadata=metadata))

    def read(self, action: ReadResourceClaim) -> ClaimAnswer:
        return self._store.find(ResourceClaim, action.key) or not_found(_RESOURCE, action.key.rpartition("/")[2])

    def add_finalizer(self, action: AddClaimFinalizer) -> ClaimAnswer:
        claim = self._find(action.key, action.uid, action.resource_version)
        if not isinstance(claim, ResourceClaim) or action.finalizer in (claim.metadata.finalizers or ()):
            return claim
        return self._store.write(action.applied_to(claim))

    def update_status(self, action: UpdateClaimStatus) -> ClaimAnswer:
        claim = self._find(action.key, action.uid, action.resource_version)
        if not isinstance(claim, ResourceClaim):
            return claim
        return self._written(claim, action.applied_to(claim, self._now()))

    # -- not waited for ------------------------------------------------------------------------------------------------

    def carry_out(self, action: ClaimRequest) -> None:
        version = action.resource_version if isinstance(action, DeallocateClaim) else ""
        claim = self._find(action.key, action.uid, version)
        if not isinstance(claim, ResourceClaim):
            return
        if isinstance(action, DeallocateClaim | RemoveReservation):
            self._written(claim, action.applied_to(claim))
        else:
            self._delete(claim, action)

    def _delete(self, claim: ResourceClaim, action: DeleteResourceClaim) -> None:
        """Finalizers of others hold it."""
        held_by = tuple(name for name in claim.metadata.finalizers or () if name != action.finalizer)
        if held_by:
            deleted_at = claim.metadata.deletion_timestamp or self._now()
            metadata = replace(claim.metadata, finalizers=held_by, deletion_timestamp=deleted_at)
            self._written(claim, replace(claim, metadata=metadata))
        else:
            self._store.remove(claim)

    # -- both ----------------------------------------------------------------------------------------------------------

    def _find(self, key: str, uid: str, version: str) -> ClaimAnswer:
        """The claim, if it is still the same one, and of this version unless that is empty."""
        claim, name = self._store.find(ResourceClaim, key), key.rpartition("/")[2]
        if claim is None or claim.metadata.uid != uid:
            return not_found(_RESOURCE, name)
        if version and claim.metadata.resource_version != version:
            return ClaimConflict(conflict(_RESOURCE, name).message)
        return claim

    def _written(self, known: ResourceClaim, changed: ResourceClaim) -> ResourceClaim:
        """What changes nothing is not written."""
        return known if changed == known else self._store.write(changed)


class VolumeEffects:
    def __init__(self, store: TypedStore) -> None:
        self._store = store

    def bind_volume(self, action: BindVolumeToClaim) -> Written | Failed:
        volume = self._find(PersistentVolume, "persistentvolumes", action.volume_name, action.resource_version)
        if isinstance(volume, Failed):
            return volume
        metadata = volume.metadata
        if action.is_ours:
            metadata = _annotated(metadata, BOUND_BY_CONTROLLER_ANNOTATION, "yes")
        return self._write(replace(volume, metadata=metadata, spec=replace(volume.spec, claim_ref=action.claim)))

    def select_node(self, action: SelectNodeForClaim) -> Written | Failed:
        key = f"{action.namespace}/{action.claim_name}"
        claim = self._find(PersistentVolumeClaim, "persistentvolumeclaims", key, action.resource_version)
        if isinstance(claim, Failed):
            return claim
        metadata = _annotated(claim.metadata, SELECTED_NODE_ANNOTATION, action.node_name)
        return self._write(replace(claim, metadata=metadata))

    def _find(self, kind: type[Item], resource: str, key: str, version: str) -> Item | Failed:
        found = self._store.find(kind, key)
        name = key.rpartition("/")[2]
        if found is None:
            return not_found(resource, name)
        return found if found.metadata.resource_version == version else conflict(resource, name)

    def _write(self, item: PersistentVolume | PersistentVolumeClaim) -> Written:
        """What changes nothing is not written."""
        if item != self._store.find(type(item), item.key):
            item = self._store.write(item)
        return Written(item.metadata.resource_version)


def _annotated(metadata: ObjectMeta, key: str, value: str) -> ObjectMeta:
    return replace(metadata, annotations={**(metadata.annotations or {}), key: value})
