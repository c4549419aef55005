"""The PersistentVolumeClaims of a pod by what has to happen with them, and the objects assumed for other pods.

A volume that was reserved for a pod is written only later, and must not be given to the next pod. So the assumed object
takes the place of the one that is known, until a newer one arrives or it is restored.

Next: `finding`, which looks for nodes where the claims can be satisfied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from kubesched.framework.handle import Objects
from kubesched.framework.status import Status
from kubesched.k8s.model import volume_claims
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.storage import PersistentVolumeClaim

Item = TypeVar("Item", bound=KubeObject)


class AssumedObjects(Generic[Item]):
    """Assumed objects by key. `known` is passed in, because its owner goes on changing it."""

    __slots__ = ("_assumed", "_resource")

    def __init__(self, resource: str) -> None:
        self._resource = resource
        self._assumed: dict[str, tuple[Item, Item]] = {}
        """Key to (object as it was known then, object as assumed)."""

    def get(self, known: Mapping[str, Item], key: str) -> Item | None:
        current = known.get(key)
        if current is None:
            self._assumed.pop(key, None)
            return None
        return self._newest(key, current)

    def assumed(self, known: Mapping[str, Item]) -> dict[str, Item]:
        """By key, every assumed object that still holds."""
        found = {}
        for key, (_, item) in list(self._assumed.items()):
            if self.get(known, key) is item:
                found[key] = item
        return found

    def not_found(self, key: str) -> str:
        return f'{self._resource} "{key}" not found'

    def assume(self, known: Mapping[str, Item], assumed: Item) -> str | None:
        """Assumes the object, or says why it cannot."""
        key = assumed.key
        current = known.get(key)
        if current is None:
            return self.not_found(key)
        version, wanted = current.metadata.resource_version, assumed.metadata.resource_version
        if version != wanted:
            return f'"{key}" is out of sync (stored: {version}, assume: {wanted})'
        self._assumed[key] = (current, assumed)
        return None

    def restore(self, assumed: Item) -> None:
        """Drops an assumed object; one that was assumed on another version stays."""
        entry = self._assumed.get(assumed.key)
        if entry is not None and entry[1].metadata.resource_version == assumed.metadata.resource_version:
            del self._assumed[assumed.key]

    def _newest(self, key: str, current: Item) -> Item:
        entry = self._assumed.get(key)
        if entry is None:
            return current
        based_on, assumed = entry
        version = current.metadata.resource_version
        if current is based_on or (version and version == assumed.metadata.resource_version):
            return assumed
        del self._assumed[key]
        return current


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
    """The pod's claims as they are assumed to be; a Status if one cannot be judged."""
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
