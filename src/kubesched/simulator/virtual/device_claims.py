"""Device claims on the pretend API server: written as the scheduler asks, given back when their pods have ended."""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.framework.effects import Done, Failed
from kubesched.k8s.model.core import Pod, PodExtendedResourceClaimStatus
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.resource import ResourceClaim, ResourceClaimStatus
from kubesched.k8s.model.times import print_instant
from kubesched.k8s.workloads.names import NameSource
from kubesched.scheduler.plugins.dynamic_resources.effects import (
    AddClaimFinalizer,
    ClaimConflict,
    CreateResourceClaim,
    DeallocateClaim,
    DeleteResourceClaim,
    PatchPodExtendedResourceClaimStatus,
    ReadResourceClaim,
    RemoveReservation,
    UpdateClaimStatus,
)
from kubesched.simulator.virtual.clock import VirtualClock
from kubesched.simulator.virtual.store import ClusterStore

ClaimWrite = AddClaimFinalizer | UpdateClaimStatus | DeallocateClaim | RemoveReservation | DeleteResourceClaim
DeviceAction = ClaimWrite | CreateResourceClaim | ReadResourceClaim | PatchPodExtendedResourceClaimStatus


class DeviceClaims:
    def __init__(self, clock: VirtualClock, store: ClusterStore, names: NameSource) -> None:
        self._clock = clock
        self._store = store
        self._names = names
        store.listen(self._on_change)

    def carry_out(self, action: DeviceAction) -> object:
        """What the action is answered with."""
        if isinstance(action, CreateResourceClaim):
            name = self._names.name(action.generate_name)
            metadata = replace(action.claim.metadata, name=name, uid="")
            return self._store.create(replace(action.claim, metadata=metadata))
        if isinstance(action, PatchPodExtendedResourceClaimStatus):
            return self._patch_pod(action)
        claim = self._store.find(ResourceClaim, action.key)
        if claim is None:
            name = action.key.partition("/")[2]
            return Failed(f'resourceclaims.resource.k8s.io "{name}" not found', is_gone=True)
        return claim if isinstance(action, ReadResourceClaim) else self._write(claim, action)

    def _write(self, claim: ResourceClaim, action: ClaimWrite) -> object:
        if isinstance(action, DeleteResourceClaim):
            self._store.remove(claim)
            return Done()
        if isinstance(action, DeallocateClaim | RemoveReservation):
            return self._store.update(action.applied_to(claim))
        if claim.metadata.resource_version != action.resource_version:
            return ClaimConflict("the object has been modified; please apply your changes to the latest version")
        if isinstance(action, AddClaimFinalizer):
            return self._store.update(action.applied_to(claim))
        return self._store.update(action.applied_to(claim, print_instant(self._clock.now_s)))

    def _patch_pod(self, action: PatchPodExtendedResourceClaimStatus) -> object:
        pod = self._store.find(Pod, action.pod)
        if pod is None or pod.metadata.uid != action.uid:
            return Failed(not_found(action.pod), is_gone=True)
        told = PodExtendedResourceClaimStatus(action.resource_claim_name, action.request_mappings)
        self._store.update(replace(pod, status=replace(pod.status, extended_resource_claim_status=told)))
        return Done()

    # -- pods that have ended ------------------------------------------------------------------------------------------

    def _on_change(self, before: KubeObject | None, after: KubeObject | None) -> None:
        if not isinstance(before, Pod) or not _uses_devices(before):
            return
        has_ended = after is None or (isinstance(after, Pod) and after.is_terminal and not before.is_terminal)
        if has_ended:
            uid = before.metadata.uid
            self._clock.after(0.0, lambda: self._give_back(uid))

    def _give_back(self, uid: str) -> None:
        for claim in list(self._store.of(ResourceClaim).values()):
            users = claim.status.reserved_for or ()
            left = tuple(user for user in users if user.uid != uid)
            if len(left) < len(users):
                status = replace(claim.status, reserved_for=left) if left else ResourceClaimStatus()
                self._store.update(replace(claim, status=status))


def not_found(pod: PodKey) -> str:
    return f'pods "{pod.partition("/")[2]}" not found'


def _uses_devices(pod: Pod) -> bool:
    return bool(pod.spec.resource_claims) or pod.status.extended_resource_claim_status is not None
