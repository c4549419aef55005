"""Volumes and claims: bound to each other, and made by a pretend provisioner where a class has one.

A claim whose class waits for its first consumer is served when the scheduler has written the node it chose
(`volume.kubernetes.io/selected-node`). What is decided is in `kubesched.expansion.volume_claims`.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.controllers.controller import ControllerContext
from kubesched.controllers.documents import Body
from kubesched.controllers.whole_bodies import volume_body
from kubesched.expansion.actions import Action, Plan, UpdateObject
from kubesched.expansion.volume_claims import StorageState, sync_claim, sync_volume
from kubesched.model.core import Node
from kubesched.model.meta import KubeObject
from kubesched.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from kubesched.model.volume_claims import is_fully_bound


class ClaimBinder:
    name = "persistentvolumeclaim-binder"

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._view = context.view

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        item = before if after is None else after
        if isinstance(item, PersistentVolumeClaim):
            return () if after is None else (item.key,)
        if isinstance(item, PersistentVolume | StorageClass):
            claims = self._view.of(PersistentVolumeClaim).values()
            return [claim.key for claim in claims if not is_fully_bound(claim)]
        return ()

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
        return None

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
