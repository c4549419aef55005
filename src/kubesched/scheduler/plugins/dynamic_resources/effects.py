"""What the plugin asks the world outside to do with claims and pods: small typed records.

Steps of PreBind yield these and are sent what became of them: the claim as it is now, `ClaimConflict` where somebody
else was faster, or `Failed`. Those that PostFilter and Unreserve ask for (`ClaimRequest`) are not waited for.
Writes carry only what changes, and the version that they are based on: the rest of an object is not the plugin's.

Next: `binding` for the order in which they come.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from kubesched.k8s.model.core import ContainerExtendedResourceRequest
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.resource import (
    FINALIZER,
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)


@dataclass(frozen=True, slots=True)
class ClaimConflict:
    """What a step is sent when the claim changed before it could be written."""

    message: str


@dataclass(frozen=True, slots=True)
class CreateResourceClaim:
    """Create the claim under a name that the API server makes from `generate_name`. Sent back: the claim as created."""

    claim: ResourceClaim
    generate_name: str


@dataclass(frozen=True, slots=True)
class ReadResourceClaim:
    """Read the claim as it is now. Sent back: the claim."""

    key: str


@dataclass(frozen=True, slots=True)
class AddClaimFinalizer:
    """Protect the claim from deletion, if it still has this version. Sent back: the claim as updated."""

    key: str
    uid: str
    resource_version: str
    finalizer: str = FINALIZER

    def applied_to(self, claim: ResourceClaim) -> ResourceClaim:
        finalizers = (*(claim.metadata.finalizers or ()), self.finalizer)
        return msgspec.structs.replace(claim, metadata=msgspec.structs.replace(claim.metadata, finalizers=finalizers))


@dataclass(frozen=True, slots=True)
class UpdateClaimStatus:
    """Write allocation and consumers into the claim's status, if it still has this version.

    An allocation without `allocationTimestamp` gets the time of the write. Sent back: the claim as updated.
    """

    key: str
    uid: str
    resource_version: str
    allocation: AllocationResult
    reserved_for: tuple[ResourceClaimConsumerReference, ...]

    def applied_to(self, claim: ResourceClaim, now: str) -> ResourceClaim:
        allocation = self.allocation
        if allocation.allocation_timestamp is None:
            allocation = msgspec.structs.replace(allocation, allocation_timestamp=now)
        status = msgspec.structs.replace(claim.status, allocation=allocation, reserved_for=self.reserved_for)
        return msgspec.structs.replace(claim, status=status)


@dataclass(frozen=True, slots=True)
class PatchPodExtendedResourceClaimStatus:
    """Tell the pod's status which claim stands for its extended resources. Sent back: `Done`."""

    pod: PodKey
    uid: str
    resource_claim_name: str
    request_mappings: tuple[ContainerExtendedResourceRequest, ...]


# -- not waited for --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeallocateClaim:
    """Take allocation, consumers and device states out of the claim's status, so that other devices can be tried."""

    key: str
    uid: str
    resource_version: str

    def applied_to(self, claim: ResourceClaim) -> ResourceClaim:
        return msgspec.structs.replace(claim, status=ResourceClaimStatus())


@dataclass(frozen=True, slots=True)
class RemoveReservation:
    """Take one consumer out of the claim's status, whatever else changed in it."""

    key: str
    uid: str
    consumer_uid: str

    def applied_to(self, claim: ResourceClaim) -> ResourceClaim:
        others = tuple(entry for entry in claim.status.reserved_for or () if entry.uid != self.consumer_uid)
        return msgspec.structs.replace(claim, status=msgspec.structs.replace(claim.status, reserved_for=others or None))


@dataclass(frozen=True, slots=True)
class DeleteResourceClaim:
    """Take the finalizer off the claim, then delete it."""

    key: str
    uid: str
    finalizer: str = FINALIZER


ClaimRequest = DeallocateClaim | RemoveReservation | DeleteResourceClaim
