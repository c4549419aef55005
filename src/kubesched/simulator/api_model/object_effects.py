"""What plugins write, on typed objects in memory: `WriteObject` and `PatchObject`, answered as an API server does.

Only kinds that the scheduler or a controller looks at are there; of their objects, only the fields that it looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from kubesched.framework.effects import Failed, PatchObject, PatchPodGroupStatus, WriteObject, Written
from kubesched.k8s.model.manifests import KINDS_WITH_WORKLOADS, ManifestError, from_dicts, is_namespaced
from kubesched.k8s.model.merge_patch import merged
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.scheduling import PodGroup
from kubesched.simulator.api_model.store import TypedStore, conflict, not_found


class ObjectEffects:
    """`new_name` makes a name of a beginning, for objects that ask for one by `generateName`."""

    def __init__(self, store: TypedStore, new_name: Callable[[str], str]) -> None:
        self._store = store
        self._new_name = new_name

    def write(self, action: WriteObject) -> Written | Failed:
        manifest = dict(action.manifest)
        metadata = manifest["metadata"] = dict(manifest.get("metadata") or {})
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = self._new_name(metadata["generateName"])
        item = _read(manifest)
        if isinstance(item, Failed):
            return item
        version = item.metadata.resource_version
        known = self._store.find(type(item), item.key)
        if not version:
            if known is not None:
                return Failed(f'{_resource(manifest)} "{item.name}" already exists', reason="AlreadyExists")
            return _written(self._store.create(item))
        if known is None:
            return _not_found(manifest, item.name)
        if known.metadata.resource_version != version:
            return _conflict(manifest, item.name)
        return _written(self._store.update(item))

    def patch(self, action: PatchObject) -> Written | Failed:
        header = {"apiVersion": action.api_version, "kind": action.kind}
        namespace, _, name = action.key.rpartition("/")
        kind = _kind(header)
        if kind is None:
            return _no_kind(header)
        key = f"{namespace or 'default'}/{name}" if is_namespaced(kind) else name
        known = self._store.find(kind, key)
        if known is None:
            return _not_found(header, name)
        wanted = action.patch.get("metadata") or {}
        if wanted.get("uid", known.metadata.uid) != known.metadata.uid:
            return _conflict(header, name)
        if wanted.get("resourceVersion", known.metadata.resource_version) != known.metadata.resource_version:
            return _conflict(header, name)
        is_status = action.subresource == "status"
        part = {field: value for field, value in action.patch.items() if (field == "status") == is_status}
        changed = _read({**merged(msgspec.to_builtins(known), part), **header})
        return changed if isinstance(changed, Failed) else _written(self._store.update(changed))


def _read(manifest: Mapping[str, Any]) -> KubeObject | Failed:
    if _kind(manifest) is None:
        return _no_kind(manifest)
    try:
        (item,) = from_dicts([manifest], kinds=KINDS_WITH_WORKLOADS).objects
    except ManifestError as problem:
        return Failed(str(problem), reason="Invalid")
    return item


def _kind(header: Mapping[str, Any]) -> type[KubeObject] | None:
    return KINDS_WITH_WORKLOADS.get((_group(header), str(header.get("kind", ""))))


def _group(header: Mapping[str, Any]) -> str:
    return str(header.get("apiVersion", "")).rpartition("/")[0]


def _resource(header: Mapping[str, Any]) -> str:
    """`resourceclaims.resource.k8s.io`, as an API server says it."""
    kind, group = str(header["kind"]).lower(), _group(header)
    plural = f"{kind}es" if kind.endswith("s") else f"{kind[:-1]}ies" if kind.endswith("y") else f"{kind}s"
    return f"{plural}.{group}" if group else plural


def _written(item: KubeObject) -> Written:
    return Written(item.metadata.resource_version, item.name, item.metadata.uid)


def _no_kind(header: Mapping[str, Any]) -> Failed:
    kind, version = header.get("kind", ""), header.get("apiVersion", "")
    return Failed(f'no matches for kind "{kind}" in version "{version}"', is_gone=True, reason="NotFound")


def _not_found(header: Mapping[str, Any], name: str) -> Failed:
    return not_found(_resource(header), name, reason="NotFound")


def _conflict(header: Mapping[str, Any], name: str) -> Failed:
    return conflict(_resource(header), name, reason="Conflict")


def patch_group_status(store: TypedStore, now: Callable[[], str], action: PatchPodGroupStatus) -> None:
    """Takes the place of the condition of this type; the time is that of the last turn."""
    group = store.find(PodGroup, action.group)
    if group is None or group.metadata.uid != action.uid:
        return
    known = group.condition(action.condition.type)
    since = now() if action.is_turn or known is None else known.last_transition_time
    condition = replace(action.condition, last_transition_time=since, observed_generation=action.generation)
    others = tuple(one for one in group.status.conditions or () if one.type != condition.type)
    store.write(group, status=replace(group.status, conditions=(*others, condition)))
