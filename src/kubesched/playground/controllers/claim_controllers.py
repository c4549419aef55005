"""Claims and volumes: made, bound to each other, protected while somebody uses them, and released.

A simulated provisioner makes volumes where a class has one. A claim whose class waits for its first consumer is served
when the scheduler has written the node it chose (`volume.kubernetes.io/selected-node`).

Claims, volumes and their classes that are deleted while somebody uses them stay until nobody does. The API server gives
each a finalizer when it is made; controllers take it off, and give it back to what was replaced by a manifest without
it. A claim is in use while a pod that has a node names it, a volume while it is bound to a claim that exists.

Claims that belong to a pod or a pod group, for ephemeral volumes and devices, are made from templates. The scheduler
reserves a claim for devices for a pod and never takes that back; this is who does. Then nobody is waited for, devices
become free, and claims made for a pod go.

Next: `kubesched.k8s.workloads.claims` for the rules.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject, controller_of
from kubesched.k8s.model.resource import FINALIZER, ResourceClaim, ResourceClaimConsumerReference, ResourceClaimTemplate
from kubesched.k8s.model.scheduling import GROUP, PodGroup, group_key_of
from kubesched.k8s.model.storage import (
    SELECTED_NODE_ANNOTATION,
    WAIT_FOR_FIRST_CONSUMER,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    claims_of,
    class_of_claim,
    class_of_volume,
    is_fully_bound,
    waits_for_first_consumer,
)
from kubesched.k8s.workloads.actions import Action, CreateObject, Plan, UpdateObject
from kubesched.k8s.workloads.claims import (
    StorageState,
    needs_claims,
    sync_claim,
    sync_group_claims,
    sync_pod_claims,
    sync_volume,
)
from kubesched.playground.controllers.controller import ControllerContext
from kubesched.playground.controllers.kinds import VolumeAttributesClass
from kubesched.playground.controllers.whole_objects import Body, volume_body

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


class ClaimBinder:
    name = "persistentvolumeclaim-binder"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._view = context.view

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        item = before if after is None else after
        if isinstance(item, PersistentVolumeClaim):
            return () if after is None else (item.key,)
        if isinstance(after, PersistentVolume):
            named = after.spec.claim_ref
            if named is not None:
                return (f"{named.namespace}/{named.name}",)
            return [claim.key for claim in self._unbound() if self._might_take(claim, after)]
        if isinstance(after, StorageClass) and before is None:
            return [claim.key for claim in self._unbound() if class_of_claim(claim) == after.name]
        return ()

    def _unbound(self) -> list[PersistentVolumeClaim]:
        return [claim for claim in self._view.of(PersistentVolumeClaim).values() if not is_fully_bound(claim)]

    def _might_take(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> bool:
        """A claim that waits for its consumer takes none by itself: the scheduler names one."""
        if claim.spec.volume_name:
            return claim.spec.volume_name == volume.name
        storage_class = self._view.find(StorageClass, class_of_claim(claim))
        is_delayed = storage_class is not None and waits_for_first_consumer(storage_class)
        return not is_delayed and class_of_claim(claim) == class_of_volume(volume)

    async def reconcile(self, key: str) -> float | None:
        claim = self._view.find(PersistentVolumeClaim, key)
        if claim is None or claim.metadata.deletion_timestamp is not None:
            return None
        state = StorageState(
            volumes=self._view.of(PersistentVolume),
            classes=self._view.of(StorageClass),
            nodes=self._view.of(Node),
            csi_nodes=self._view.of(CSINode),
        )
        plan = sync_claim(claim, state)
        made = (action for action in plan.actions if not isinstance(action, UpdateObject))
        await self._context.writer.carry_out(Plan(list[Action](made)), _body)
        for action in plan.actions:
            if isinstance(action, UpdateObject):
                await self._update(action.item, claim)
        self._tell(claim, plan)
        return None

    def _tell(self, claim: PersistentVolumeClaim, plan: Plan) -> None:
        known = self._view.find(StorageClass, class_of_claim(claim))
        if known is None or is_fully_bound(claim):
            return
        for action in plan.actions:
            if isinstance(action, CreateObject):
                note = f"Successfully provisioned volume {action.item.name}"
                self._context.event(known.provisioner, claim, "ProvisioningSucceeded", note)
        is_waiting = not plan.actions and waits_for_first_consumer(known)
        if is_waiting and SELECTED_NODE_ANNOTATION not in (claim.metadata.annotations or {}):
            note = "waiting for first consumer to be created before binding"
            self._context.event("persistentvolume-controller", claim, WAIT_FOR_FIRST_CONSUMER, note)

    async def _update(self, item: KubeObject, claim: PersistentVolumeClaim) -> None:
        """A volume that was made just now is known by its name; the claim's status tells what it got."""
        if isinstance(item, PersistentVolume):
            known = self._view.find(PersistentVolume, item.key)
            if known is not None:
                await self._context.writer.patch(known, {"spec": {"claimRef": _reference(claim)}})
                await self._context.writer.patch(known, {"status": {"phase": "Bound"}}, subresource="status")
        elif isinstance(item, PersistentVolumeClaim):
            await self._context.writer.update(item)
            await self._tell_capacity(item)

    async def _tell_capacity(self, claim: PersistentVolumeClaim) -> None:
        volume = self._view.find(PersistentVolume, claim.spec.volume_name)
        if volume is not None:
            status = {"capacity": volume.spec.capacity, "accessModes": volume.spec.access_modes, "phase": "Bound"}
            await self._context.writer.patch(claim, {"status": status}, subresource="status")


class VolumeBinder:
    name = "persistentvolume-binder"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._view = context.view

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        if isinstance(after, PersistentVolume):
            return (after.key,)
        if isinstance(before, PersistentVolumeClaim) and after is None and before.spec.volume_name:
            return (before.spec.volume_name,)
        return ()

    async def reconcile(self, key: str) -> float | None:
        volume = self._view.find(PersistentVolume, key)
        if volume is None or volume.metadata.deletion_timestamp is not None:
            return None
        named = volume.spec.claim_ref
        claim_key = "" if named is None else f"{named.namespace}/{named.name}"
        await self._context.writer.carry_out(sync_volume(volume, self._view.find(PersistentVolumeClaim, claim_key)))
        return None


def _body(item: KubeObject) -> Body | None:
    return volume_body(item) if isinstance(item, PersistentVolume) else None


def _reference(claim: PersistentVolumeClaim) -> Body:
    return {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.metadata.uid,
        "resourceVersion": claim.metadata.resource_version,
    }


class PodClaimController:
    name = "pod-claims"

    def __init__(self, context: ControllerContext, groups_have_claims: bool = False) -> None:
        self._context = context
        self._groups_have_claims = groups_have_claims
        self._view = context.view

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        if isinstance(after, Pod):
            return (after.key,) if not after.spec.node_name and needs_claims(after) else ()
        if isinstance(after, ResourceClaimTemplate):
            pods = self._view.in_namespace(Pod, after.namespace)
            return [pod.key for pod in pods if not pod.spec.node_name and needs_claims(pod)]
        if self._groups_have_claims and isinstance(after, PodGroup) and after.spec.resource_claims:
            pods = self._view.in_namespace(Pod, after.namespace)
            return [pod.key for pod in pods if not pod.spec.node_name and group_key_of(pod) == after.key]
        return ()

    async def reconcile(self, key: str) -> float | None:
        pod = self._view.find(Pod, key)
        if pod is not None:
            claims, templates = self._view.of(PersistentVolumeClaim), self._view.of(ResourceClaimTemplate)
            group = self._view.find(PodGroup, group_key_of(pod)) if self._groups_have_claims else None
            await self._context.writer.carry_out(sync_pod_claims(pod, claims, templates, self._context.names, group))
        return None


class GroupClaimController:
    name = "podgroup-claims"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._view = context.view

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        if isinstance(after, PodGroup):
            return (after.key,) if after.spec.resource_claims else ()
        if isinstance(after, ResourceClaimTemplate):
            groups = self._view.in_namespace(PodGroup, after.namespace)
            return [group.key for group in groups if group.spec.resource_claims]
        return ()

    async def reconcile(self, key: str) -> float | None:
        group = self._view.find(PodGroup, key)
        if group is not None:
            templates = self._view.of(ResourceClaimTemplate)
            await self._context.writer.carry_out(
                sync_group_claims(group, templates, self._context.names, self._context.home_of(PodGroup).api_version)
            )
        return None


class DeviceClaimRelease:
    name = "resource-claim"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._view = context.view

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        if isinstance(after, ResourceClaim):
            return (after.key,)
        if isinstance(before, Pod) and (after is None or (isinstance(after, Pod) and _is_done(after))):
            claims = self._view.in_namespace(ResourceClaim, before.namespace)
            return [claim.key for claim in claims if _concerns(claim, before)]
        if isinstance(before, PodGroup) and after is None:
            claims = self._view.in_namespace(ResourceClaim, before.namespace)
            return [claim.key for claim in claims if _concerns(claim, before)]
        return ()

    async def reconcile(self, key: str) -> float | None:
        claim = self._view.find(ResourceClaim, key)
        if claim is None:
            return None
        users = claim.status.reserved_for or ()
        kept = tuple(user for user in users if self._is_waited_for(claim, user))
        is_ended = claim.metadata.deletion_timestamp is not None
        # a claim with neither users nor allocation may be about to get them: the scheduler protects it first
        if len(kept) < len(users) or (is_ended and not kept):
            await self._release(claim, kept)
        if not kept and not is_ended and self._is_left_over(claim):
            await self._context.writer.delete(claim)
        return None

    async def _release(self, claim: ResourceClaim, kept: tuple[ResourceClaimConsumerReference, ...]) -> None:
        """Leaves the claim to these; without any, its devices are free and nothing keeps it."""
        is_free = not kept and FINALIZER in (claim.metadata.finalizers or ())
        status: Body = {"reservedFor": [msgspec.to_builtins(user) for user in kept] or None}
        if is_free:
            status["allocation"] = None
        if claim.status.reserved_for or (is_free and claim.status.allocation is not None):
            body = {"metadata": {"resourceVersion": claim.metadata.resource_version}, "status": status}
            await self._context.writer.patch(claim, body, subresource="status")
        now = self._view.find(ResourceClaim, claim.key)
        if is_free and now is not None:
            await let_go(self._context, now, FINALIZER)

    def _is_waited_for(self, claim: ResourceClaim, user: ResourceClaimConsumerReference) -> bool:
        if (user.api_group, user.resource) == (GROUP, "podgroups"):
            group = self._view.find(PodGroup, f"{claim.namespace}/{user.name}")
            return group is not None and group.metadata.uid == user.uid
        if user.api_group or user.resource != "pods":
            return True
        pod = self._view.find(Pod, f"{claim.namespace}/{user.name}")
        return pod is not None and pod.metadata.uid == user.uid and not _is_done(pod)

    def _is_left_over(self, claim: ResourceClaim) -> bool:
        """It was made for a pod that is done; of one that is gone, the garbage collector takes it."""
        owner = controller_of(claim.metadata)
        if owner is None or owner.kind != "Pod":
            return False
        pod = self._view.find(Pod, f"{claim.namespace}/{owner.name}")
        return pod is not None and (pod.metadata.uid != owner.uid or _is_done(pod))


def _is_done(pod: Pod) -> bool:
    """It will not run any more, or never will."""
    return pod.is_terminal or (pod.is_terminating and not pod.spec.node_name)


def _concerns(claim: ResourceClaim, user: Pod | PodGroup) -> bool:
    owner = controller_of(claim.metadata)
    is_owned = owner is not None and owner.uid == user.metadata.uid
    return is_owned or any(one.uid == user.metadata.uid for one in claim.status.reserved_for or ())
