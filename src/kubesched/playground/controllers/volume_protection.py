"""Claims, volumes and their classes that are deleted while somebody uses them: they stay until nobody does.

The API server gives each a finalizer when it is made; these controllers take it off, and give it back to what was
replaced by a manifest without it. A claim is in use while a pod that
has a node names it, a volume while it is bound to a claim that exists.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.k8s.model.volume_claims import claims_of
from kubesched.playground.controllers.controller import ControllerContext
from kubesched.playground.controllers.kinds import VolumeAttributesClass

CLAIM_FINALIZER = "kubernetes.io/pvc-protection"
VOLUME_FINALIZER = "kubernetes.io/pv-protection"
CLASS_FINALIZER = "kubernetes.io/vac-protection"


class ClaimProtection:
    name = "pvc-protection"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._view = context.view

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        if isinstance(after, PersistentVolumeClaim):
            return (after.key,) if is_held(after, CLAIM_FINALIZER) or lacks(after, CLAIM_FINALIZER) else ()
        if isinstance(before, Pod) and after is None:
            return [use.key for use in claims_of(before)]
        return ()

    async def reconcile(self, key: str) -> float | None:
        claim = self._view.find(PersistentVolumeClaim, key)
        if claim is not None and lacks(claim, CLAIM_FINALIZER):
            await hold(self._context, claim, CLAIM_FINALIZER)
        elif claim is not None and is_held(claim, CLAIM_FINALIZER) and not self._is_used(claim):
            await let_go(self._context, claim, CLAIM_FINALIZER)
        return None

    def _is_used(self, claim: PersistentVolumeClaim) -> bool:
        pods = self._view.in_namespace(Pod, claim.namespace)
        return any(pod.spec.node_name and any(use.key == claim.key for use in claims_of(pod)) for pod in pods)


class VolumeProtection:
    name = "pv-protection"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._view = context.view

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        if isinstance(after, PersistentVolume):
            return (after.key,) if is_held(after, VOLUME_FINALIZER) or lacks(after, VOLUME_FINALIZER) else ()
        if isinstance(before, PersistentVolumeClaim) and after is None and before.spec.volume_name:
            return (before.spec.volume_name,)
        return ()

    async def reconcile(self, key: str) -> float | None:
        volume = self._view.find(PersistentVolume, key)
        if volume is not None and lacks(volume, VOLUME_FINALIZER):
            await hold(self._context, volume, VOLUME_FINALIZER)
        elif volume is not None and is_held(volume, VOLUME_FINALIZER) and not self._is_used(volume):
            await let_go(self._context, volume, VOLUME_FINALIZER)
        return None

    def _is_used(self, volume: PersistentVolume) -> bool:
        named = volume.spec.claim_ref
        if named is None or volume.status.phase != "Bound":
            return False
        claim = self._view.find(PersistentVolumeClaim, f"{named.namespace}/{named.name}")
        return claim is not None and named.uid in ("", claim.metadata.uid)


class AttributesClassProtection:
    """A VolumeAttributesClass is in use while a claim or a volume names it."""

    name = "vac-protection"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._view = context.view

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        if isinstance(after, VolumeAttributesClass):
            return (after.key,) if is_held(after, CLASS_FINALIZER) or lacks(after, CLASS_FINALIZER) else ()
        if isinstance(before, PersistentVolumeClaim | PersistentVolume):
            name = before.spec.volume_attributes_class_name
            return (name,) if name else ()
        return ()

    async def reconcile(self, key: str) -> float | None:
        found = self._view.find(VolumeAttributesClass, key)
        if found is not None and lacks(found, CLASS_FINALIZER):
            await hold(self._context, found, CLASS_FINALIZER)
        elif found is not None and is_held(found, CLASS_FINALIZER) and not self._is_used(found.name):
            await let_go(self._context, found, CLASS_FINALIZER)
        return None

    def _is_used(self, name: str) -> bool:
        claims, volumes = self._view.of(PersistentVolumeClaim).values(), self._view.of(PersistentVolume).values()
        by_claim = any(claim.spec.volume_attributes_class_name == name for claim in claims)
        return by_claim or any(volume.spec.volume_attributes_class_name == name for volume in volumes)


def is_held(item: KubeObject, finalizer: str) -> bool:
    """Deleted, and kept by this."""
    return item.metadata.deletion_timestamp is not None and finalizer in (item.metadata.finalizers or ())


def lacks(item: KubeObject, finalizer: str) -> bool:
    """Not deleted, and nothing would keep it then."""
    return item.metadata.deletion_timestamp is None and finalizer not in (item.metadata.finalizers or ())


async def hold(context: ControllerContext, item: KubeObject, finalizer: str) -> None:
    kept = [*(item.metadata.finalizers or ()), finalizer]
    patch = {"metadata": {"finalizers": kept, "resourceVersion": item.metadata.resource_version}}
    await context.writer.patch(item, patch)


async def let_go(context: ControllerContext, item: KubeObject, finalizer: str) -> None:
    kept = [known for known in item.metadata.finalizers or () if known != finalizer]
    patch = {"metadata": {"finalizers": kept, "resourceVersion": item.metadata.resource_version}}
    await context.writer.patch(item, patch)
