"""Volumes and claims: bound to each other, and made by a simulated provisioner where a class has one.

A claim whose class waits for its first consumer is served when the scheduler has written the node it chose
(`volume.kubernetes.io/selected-node`). What is decided is in `kubesched.k8s.workloads.claims`.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.k8s.model.core import Node
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from kubesched.k8s.model.volume_claims import (
    SELECTED_NODE_ANNOTATION,
    WAIT_FOR_FIRST_CONSUMER,
    class_of_claim,
    class_of_volume,
    is_fully_bound,
    waits_for_first_consumer,
)
from kubesched.k8s.workloads.actions import Action, CreateObject, Plan, UpdateObject
from kubesched.k8s.workloads.claims import StorageState, sync_claim, sync_volume
from kubesched.playground.controllers.controller import ControllerContext
from kubesched.playground.controllers.documents import Body
from kubesched.playground.controllers.whole_bodies import volume_body


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
