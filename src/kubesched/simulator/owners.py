"""Owners of which only the references are known.

A dump of pods names owners by uid, while a manifest of the owner, as somebody wrote it, has none. Both given together
are meant to belong together: the owner gets the uid that the references to it have.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kubesched.k8s.model.meta import KubeObject


def with_uids_of_references(objects: Sequence[KubeObject]) -> list[KubeObject]:
    known = {
        (owner.kind, item.namespace, owner.name): owner.uid
        for item in objects
        for owner in item.metadata.owner_references or ()
        if owner.uid
    }
    return [_with_uid(item, known) for item in objects]


def _with_uid(item: KubeObject, known: dict[tuple[str, str, str], str]) -> KubeObject:
    uid = known.get((type(item).__name__, item.namespace, item.name), "")
    if item.metadata.uid or not uid:
        return item
    return replace(item, metadata=replace(item.metadata, uid=uid))
