"""The claims of a pod, sorted by what has to happen with them.

Next: `finding`, which looks for nodes that suit them.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.framework.handle import Objects
from kubesched.framework.status import Status
from kubesched.k8s.model import volume_claims
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.storage import PersistentVolumeClaim
from kubesched.scheduler.plugins.volume_binding.assumed import AssumedObjects

UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


@dataclass(frozen=True, slots=True)
class PodClaims:
    """`bound` have their volume; `delayed` get one where the pod goes; `immediate` should have one but do not."""

    bound: tuple[PersistentVolumeClaim, ...] = ()
    delayed: tuple[PersistentVolumeClaim, ...] = ()
    immediate: tuple[PersistentVolumeClaim, ...] = ()


def find_obstacle(objects: Objects, pod: Pod) -> Status | None:
    """What keeps the pod from using one of its claims on any node."""
    for use in volume_claims.claims_of(pod):
        claim = objects.persistent_volume_claims.get(use.key)
        message = _missing_claim(use) if claim is None else _unusable_claim(pod, claim, use)
        if message is not None:
            return Status.unresolvable(message)
    return None


def sort_claims(objects: Objects, assumed: AssumedObjects[PersistentVolumeClaim], pod: Pod) -> PodClaims | Status:
    """The pod's claims with what was promised about them; a Status if one cannot be judged."""
    bound: list[PersistentVolumeClaim] = []
    delayed: list[PersistentVolumeClaim] = []
    immediate: list[PersistentVolumeClaim] = []
    for use in volume_claims.claims_of(pod):
        claim = assumed.get(objects.persistent_volume_claims, use.key)
        if claim is None:
            return Status.error(f'error getting PVC "{use.key}": {assumed.not_found(use.key)}')
        if volume_claims.is_fully_bound(claim):
            bound.append(claim)
            continue
        is_delayed = _is_delayed(objects, claim)
        if isinstance(is_delayed, Status):
            return is_delayed
        # A claim that names its volume is for the volume controller to bind, whatever its class says.
        (delayed if is_delayed and not claim.spec.volume_name else immediate).append(claim)
    return PodClaims(tuple(bound), tuple(delayed), tuple(immediate))


def _missing_claim(use: volume_claims.ClaimUse) -> str:
    if use.is_ephemeral:
        return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{use.name}"'
    return volume_claims.claim_not_found(use.name)


def _unusable_claim(pod: Pod, claim: PersistentVolumeClaim, use: volume_claims.ClaimUse) -> str | None:
    if claim.status.phase == "Lost":
        return f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{claim.name}" is being deleted'
    return volume_claims.foreign_claim_message(pod, claim) if use.is_ephemeral else None


def _is_delayed(objects: Objects, claim: PersistentVolumeClaim) -> bool | Status:
    class_name = volume_claims.class_of_claim(claim)
    storage_class = objects.storage_classes.get(class_name)
    if storage_class is None:
        return False
    if storage_class.volume_binding_mode is None:
        return Status.error(volume_claims.binding_mode_not_set(class_name))
    return volume_claims.waits_for_first_consumer(storage_class)
