"""Pretend controllers for device claims: claims are made for pods from templates, written when they are allocated, and
given back when their pods are gone.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from kubesched.framework.effects import Failed
from kubesched.k8s.model.core import Pod, PodExtendedResourceClaimStatus, PodResourceClaimStatus
from kubesched.k8s.model.meta import KubeObject, ObjectMeta, OwnerReference, controller_of
from kubesched.k8s.model.resource import ResourceClaim, ResourceClaimStatus
from kubesched.scheduler.cluster.objects import ObjectStore
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
from kubesched.simulator.bench.object_factory import ObjectFactory

_WRITTEN_AT = "2026-01-01T00:00:00Z"

ClaimAction = (
    AddClaimFinalizer
    | CreateResourceClaim
    | DeallocateClaim
    | DeleteResourceClaim
    | ReadResourceClaim
    | RemoveReservation
    | UpdateClaimStatus
)


class ClaimController:
    """`put` and `remove` show a claim to the loop."""

    def __init__(
        self,
        objects: ObjectStore,
        factory: ObjectFactory,
        put: Callable[[KubeObject], None],
        remove: Callable[[KubeObject], None],
    ) -> None:
        self._objects = objects
        self._factory = factory
        self._put = put
        self._remove = remove

    # -- for pods ------------------------------------------------------------------------------------------------------

    def with_claims(self, pod: Pod) -> Pod:
        """The pod with the claims that its templates ask for, which are there from now on."""
        statuses = []
        for entry in pod.spec.resource_claims or ():
            if entry.resource_claim_template_name is None:
                continue
            template = self._objects.resource_claim_templates.get(
                f"{pod.namespace}/{entry.resource_claim_template_name}"
            )
            if template is None:
                continue
            name = self._factory.generated_name(f"{pod.name}-{entry.name}-")
            owner = OwnerReference("Pod", pod.name, pod.metadata.uid, "v1", controller=True)
            metadata = self._metadata(name, pod.namespace, (owner,))
            self._put(ResourceClaim(metadata, template.spec.spec))
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
            claim = self._objects.resource_claims.get(f"{pod.namespace}/{name}")
            if claim is None:
                continue
            owner = controller_of(claim.metadata)
            if owner is not None and owner.uid == uid:
                self._remove(claim)
            else:
                self._give_back(claim, uid)

    def _give_back(self, claim: ResourceClaim, uid: str) -> None:
        users = tuple(user for user in claim.status.reserved_for or () if user.uid != uid)
        status = replace(claim.status, reserved_for=users) if users else ResourceClaimStatus()
        self._write(replace(claim, status=status))

    # -- for the loop --------------------------------------------------------------------------------------------------

    def carry_out(self, action: ClaimAction) -> object:
        """What the action is answered with."""
        if isinstance(action, CreateResourceClaim):
            name = self._factory.generated_name(action.generate_name)
            metadata = action.claim.metadata
            made = self._metadata(name, metadata.namespace, metadata.owner_references)
            return self._write(replace(action.claim, metadata=replace(made, annotations=metadata.annotations)))
        claim = self._objects.resource_claims.get(action.key)
        if claim is None:
            return Failed(f'resourceclaims "{action.key.partition("/")[2]}" not found', is_gone=True)
        if isinstance(action, ReadResourceClaim):
            return claim
        if isinstance(action, DeleteResourceClaim):
            self._remove(claim)
            return None
        if isinstance(action, RemoveReservation | DeallocateClaim):
            self._write(action.applied_to(claim))
            return None
        if claim.metadata.resource_version != action.resource_version:
            return ClaimConflict("the object has been modified")
        if isinstance(action, AddClaimFinalizer):
            return self._write(action.applied_to(claim))
        return self._write(action.applied_to(claim, _WRITTEN_AT))

    def patched(self, pod: Pod, action: PatchPodExtendedResourceClaimStatus) -> Pod:
        told = PodExtendedResourceClaimStatus(action.resource_claim_name, action.request_mappings)
        return replace(pod, status=replace(pod.status, extended_resource_claim_status=told))

    def _metadata(self, name: str, namespace: str, owners: tuple[OwnerReference, ...] | None) -> ObjectMeta:
        return ObjectMeta(
            name=name,
            namespace=namespace,
            uid=self._factory.next_uid(),
            resource_version=self._factory.next_version(),
            owner_references=owners,
        )

    def _write(self, claim: ResourceClaim) -> ResourceClaim:
        written = self._factory.versioned(claim)
        self._put(written)
        return written
