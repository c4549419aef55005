"""What belongs to others goes with them: background, foreground and orphan, as objects are deleted.

An object all of whose owners are gone, or wait for it to go, is deleted; one that still has an owner loses its
references to the others. An owner that is not known here is asked for at the server before it counts as gone. Keys are
uids.

Next: `kinds` for which kinds are watched for this.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.requester import MERGE_PATCH, STRATEGIC_PATCH
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject, OwnerReference
from kubesched.k8s.model.reported_pods import ReportedPod
from kubesched.playground.controllers.controller import AllKindsController
from kubesched.playground.controllers.whole_objects import TYPED, Body

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"

_DOCUMENT_OF: dict[type[KubeObject], type[KubeObject]] = {typed: document for document, typed in TYPED.items()}
_DOCUMENT_OF[Pod] = ReportedPod


class GarbageCollector(AllKindsController):
    name = "garbage-collector"

    def concerned(self, before: KubeObject | None, after: KubeObject | None) -> Iterable[str]:
        item = before if after is None else after
        if item is None:
            return ()
        uid = item.metadata.uid
        found: list[str] = []
        if after is None or _is_deleting_dependents(after):
            found += [known.metadata.uid for known in self._view.dependents(uid)]
        if after is not None and _waits_for_us(after):
            found.append(uid)
        for reference in item.metadata.owner_references or ():
            owner = self._owner(reference, item)
            if after is not None and (owner is None or _is_deleting_dependents(owner)):
                found.append(uid)
        owners = {known.uid for state in (before, after) if state for known in state.metadata.owner_references or ()}
        for owner_uid in owners:  # it may have waited for this one, and need not any more
            owner = self._view.by_uid(owner_uid)
            if owner is not None and owner.metadata.deletion_timestamp is not None:
                found.append(owner_uid)
        return found

    async def reconcile(self, key: str) -> float | None:
        item = self._view.by_uid(key)
        if item is None:
            return None
        if item.metadata.deletion_timestamp is not None:
            if ORPHAN in (item.metadata.finalizers or ()):
                await self._orphan(item)
            elif _is_deleting_dependents(item):
                await self._let_go_when_alone(item)
            return None
        return await self._check_owners(item)

    # -- owners that go ------------------------------------------------------------------------------------------------

    async def _orphan(self, owner: KubeObject) -> None:
        for dependent in self._view.dependents(owner.metadata.uid):
            await self._drop_references(dependent, {owner.metadata.uid})
        await self._drop_finalizer(owner, ORPHAN)

    async def _let_go_when_alone(self, owner: KubeObject) -> None:
        """In the foreground an owner goes after its dependents; only those that block it are waited for."""
        uid = owner.metadata.uid
        if not any(_blocks(dependent, uid) for dependent in self._view.dependents(uid)):
            await self._drop_finalizer(owner, FOREGROUND)

    # -- dependents of owners that went, or are about to ---------------------------------------------------------------

    async def _check_owners(self, item: KubeObject) -> float | None:
        references = item.metadata.owner_references or ()
        gone = {known.uid for known in references if await self._is_gone(known, item)}
        going = {known.uid for known in references if known.uid not in gone and self._is_going(known, item)}
        if not gone and not going:
            return None
        if len(gone) + len(going) < len(references):
            await self._drop_references(item, gone | going)
            return None
        if going and (dependents := self._view.dependents(item.metadata.uid)):
            if any(_is_deleting_dependents(dependent) for dependent in dependents):
                await self._unblock_owners(item)  # a circle: somebody has to go first
            await self._delete(item, "Foreground")
            return None
        finalizers = item.metadata.finalizers or ()
        await self._delete(item, "Orphan" if ORPHAN in finalizers else "Background")
        return None

    def _owner(self, reference: OwnerReference, item: KubeObject) -> KubeObject | None:
        """The owner that is meant: of that name, and not in another namespace."""
        owner = self._view.by_uid(reference.uid)
        is_meant = owner is not None and owner.name == reference.name and owner.namespace in ("", item.namespace)
        return owner if is_meant else None

    def _is_going(self, reference: OwnerReference, item: KubeObject) -> bool:
        owner = self._owner(reference, item)
        return owner is not None and _is_deleting_dependents(owner)

    async def _is_gone(self, reference: OwnerReference, item: KubeObject) -> bool:
        if self._owner(reference, item) is not None:
            return False
        if self._view.is_gone(reference.uid):
            return True
        kind = await self._discovered.find(reference.api_version, reference.kind)
        if kind is None or (kind.home.namespaced and not item.namespace):
            return False  # of a kind that we know nothing of, or that cannot own this: better to keep too much
        try:
            answer = await self._context.writer.api.request("GET", kind.home.path(item.namespace, reference.name))
        except ApiError as error:
            if error.is_not_found:
                return True
            raise
        return msgspec.json.decode(answer, type=KubeObject).metadata.uid != reference.uid

    # -- writes, to kinds of all sorts ---------------------------------------------------------------------------------

    async def _delete(self, item: KubeObject, propagation: str) -> None:
        await self._context.writer.delete_at(await self._path(item), item, propagation)

    async def _drop_finalizer(self, item: KubeObject, name: str) -> None:
        kept = [known for known in item.metadata.finalizers or () if known != name]
        patch: Body = {"metadata": {"finalizers": kept, "resourceVersion": item.metadata.resource_version}}
        await self._patch(item, patch, MERGE_PATCH)

    async def _unblock_owners(self, item: KubeObject) -> None:
        """The item's owners need not wait for it any more."""
        references = [
            {**msgspec.to_builtins(known), "blockOwnerDeletion": False}
            for known in item.metadata.owner_references or ()
        ]
        metadata: Body = {"ownerReferences": references, "resourceVersion": item.metadata.resource_version}
        await self._patch(item, {"metadata": metadata}, MERGE_PATCH)

    async def _drop_references(self, item: KubeObject, uids: set[str]) -> None:
        patch: Body = {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": uid} for uid in sorted(uids)]}}
        try:
            await self._patch(item, patch, STRATEGIC_PATCH)
        except ApiError as error:
            if error.status != 415:
                raise
            # Custom resources know merge patches only.
            kept = [
                msgspec.to_builtins(known) for known in item.metadata.owner_references or () if known.uid not in uids
            ]
            metadata = {"ownerReferences": kept, "resourceVersion": item.metadata.resource_version}
            await self._patch(item, {"metadata": metadata}, MERGE_PATCH)

    async def _patch(self, item: KubeObject, patch: Body, content_type: str) -> None:
        path = await self._path(item)
        try:
            await self._context.writer.api.request(
                "PATCH", path, body=msgspec.json.encode(patch), content_type=content_type
            )
        except ApiError as error:
            if not error.is_not_found:
                raise

    async def _path(self, item: KubeObject) -> str:
        wanted = _DOCUMENT_OF.get(type(item), type(item))
        for kind in await self._discovered.kinds():
            if kind.home.type is wanted:
                return kind.home.path(item.namespace, item.name)
        raise LookupError(f"{type(item).__name__} {item.key}: the server does not have this kind any more")


def _is_deleting_dependents(item: KubeObject) -> bool:
    return item.metadata.deletion_timestamp is not None and FOREGROUND in (item.metadata.finalizers or ())


def _blocks(dependent: KubeObject, owner_uid: str) -> bool:
    references = dependent.metadata.owner_references or ()
    return any(known.uid == owner_uid and known.block_owner_deletion for known in references)


def _waits_for_us(item: KubeObject) -> bool:
    finalizers = item.metadata.finalizers or ()
    return item.metadata.deletion_timestamp is not None and (ORPHAN in finalizers or FOREGROUND in finalizers)
