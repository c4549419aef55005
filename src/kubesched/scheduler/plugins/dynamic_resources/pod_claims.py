"""The claims that a pod names, found; or the reason why the pod has to wait for one.

Next: `state`, which holds them for a cycle.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.k8s.model.core import Pod, PodResourceClaim
from kubesched.k8s.model.meta import controller_of
from kubesched.k8s.model.resource import ResourceClaim


class ClaimNotReadyError(Exception):
    """The pod cannot be scheduled as its claims are now."""


def claims_of(pod: Pod, find: Callable[[str], ResourceClaim | None]) -> list[ResourceClaim]:
    """In the order of the pod's spec. `find` gives a claim by its key. Raises ClaimNotReadyError."""
    found = []
    for entry in pod.spec.resource_claims or ():
        name, is_generated = _claim_name(pod, entry)
        if name is None:
            continue
        key = f"{pod.namespace}/{name}"
        claim = find(key)
        if claim is None:
            raise ClaimNotReadyError(f'could not find ResourceClaim "{key}"')
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimNotReadyError(f'resourceclaim "{claim.name}" is being deleted')
        if is_generated and not _is_owned_by(claim, pod):
            raise ClaimNotReadyError(
                f"ResourceClaim {claim.key} was not created for Pod {pod.pod_key} (Pod is not owner)"
            )
        found.append(claim)
    return found


def is_reserved_for(claim: ResourceClaim, pod_uid: str) -> bool:
    return any(consumer.uid == pod_uid for consumer in claim.status.reserved_for or ())


def _claim_name(pod: Pod, entry: PodResourceClaim) -> tuple[str | None, bool]:
    """The claim's name (None if none is needed), and whether it was made for this pod from a template."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name, False
    if entry.resource_claim_template_name is None:
        raise ClaimNotReadyError(
            f'pod "{pod.pod_key}", spec.resourceClaim "{entry.name}": none of the supported fields are set'
        )
    for status in pod.status.resource_claim_statuses or ():
        if status.name == entry.name:
            return status.resource_claim_name, True
    raise ClaimNotReadyError(f'pod "{pod.pod_key}": ResourceClaim not created yet')


def _is_owned_by(claim: ResourceClaim, pod: Pod) -> bool:
    owner = controller_of(claim.metadata)
    return owner is not None and owner.uid == pod.metadata.uid
