"""Create, update, patch, delete, bind and evict of the scripted server, with resourceVersion and uid checked.

Patches are merge, JSON patch, and strategic merge as far as schedulers use it (lists merged by their key).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from harness.scripted_server.faults import RefusalError, already_exists, conflict, not_found
from harness.scripted_server.routing import Address, ServedKind
from harness.scripted_server.storage import Stored, VersionedStorage, key_of

_MERGE_KEYS = {
    "conditions": "type",
    "containers": "name",
    "initContainers": "name",
    "ephemeralContainers": "name",
    "volumes": "name",
    "env": "name",
    "ownerReferences": "uid",
    "resourceClaims": "name",
    "resourceClaimStatuses": "name",
    "addresses": "type",
    "taints": "key",
}
_MERGED_AS_SETS = {"finalizers"}


def apply_patch(content_type: str, target: dict[str, Any], patch: Any) -> dict[str, Any]:
    """A new object; `target` stays as it is."""
    kind = content_type.partition(";")[0].strip()
    if kind == "application/json-patch+json":
        return _json_patch(target, patch)
    if not isinstance(patch, dict):
        raise RefusalError(400, "the patch is not an object")
    if kind == "application/merge-patch+json":
        return _merge(target, patch)
    if kind in ("application/strategic-merge-patch+json", "application/apply-patch+yaml"):
        return _strategic(target, patch)
    raise RefusalError(415, f"the body of the request was in an unknown format - {kind}")


def _merge(target: Any, patch: dict[str, Any]) -> dict[str, Any]:
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge(merged.get(key), value) if isinstance(value, dict) else value
    return merged


def _strategic(target: Any, patch: dict[str, Any]) -> dict[str, Any]:
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if key == "$patch" or key.startswith("$setElementOrder/"):
            continue
        if key.startswith("$deleteFromPrimitiveList/"):
            name = key.partition("/")[2]
            merged[name] = [entry for entry in merged.get(name) or () if entry not in value]
        elif value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            replaces = value.get("$patch") == "replace"
            merged[key] = _strategic(None if replaces else merged.get(key), value)
        elif isinstance(value, list):
            merged[key] = _merged_list(key, merged.get(key) or [], value)
        else:
            merged[key] = value
    return merged


def _merged_list(name: str, old: list[Any], new: list[Any]) -> list[Any]:
    if name in _MERGED_AS_SETS:
        return old + [entry for entry in new if entry not in old]
    merge_key = _MERGE_KEYS.get(name)
    if merge_key is None or not all(isinstance(entry, dict) for entry in (*old, *new)):
        return new
    by_key = {entry.get(merge_key): entry for entry in old}
    for entry in new:
        key = entry.get(merge_key)
        if entry.get("$patch") == "delete":
            by_key.pop(key, None)
        else:
            by_key[key] = _strategic(by_key.get(key), entry)
    return list(by_key.values())


# -- JSON patch (RFC 6902) ---------------------------------------------------------------------------------------------


def _json_patch(target: dict[str, Any], operations: Any) -> dict[str, Any]:
    if not isinstance(operations, list):
        raise RefusalError(400, "a JSON patch is a list of operations")
    document = copy.deepcopy(target)
    for operation in operations:
        try:
            _operate(document, operation)
        except (KeyError, IndexError, ValueError, TypeError):
            path = operation.get("path") if isinstance(operation, dict) else operation
            raise RefusalError(422, f"the server rejected our request due to an error in our request: {path}") from None
    return document


def _operate(document: dict[str, Any], operation: dict[str, Any]) -> None:
    verb, path = operation["op"], operation["path"]
    if verb == "test":
        if _read(document, path) != operation.get("value"):
            raise RefusalError(422, f"testing value {path} failed")
    elif verb in ("move", "copy"):
        value = copy.deepcopy(_read(document, operation["from"]))
        if verb == "move":
            _write(document, operation["from"], "remove", None)
        _write(document, path, "add", value)
    elif verb in ("add", "replace", "remove"):
        _write(document, path, verb, operation.get("value"))
    else:
        raise RefusalError(400, f"unknown JSON patch operation {verb!r}")


def _steps(path: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]


def _read(document: Any, path: str) -> Any:
    for step in _steps(path):
        document = document[int(step)] if isinstance(document, list) else document[step]
    return document


def _write(document: Any, path: str, verb: str, value: Any) -> None:
    *parents, last = _steps(path)
    for step in parents:
        document = document[int(step)] if isinstance(document, list) else document[step]
    if isinstance(document, list):
        _write_into_list(document, last, verb, value)
    elif verb != "add" and last not in document:
        raise KeyError(last)
    elif verb == "remove":
        del document[last]
    else:
        document[last] = value


def _write_into_list(entries: list[Any], last: str, verb: str, value: Any) -> None:
    at = len(entries) if last == "-" else int(last)
    if verb == "add":
        entries.insert(at, value)
    elif verb == "replace":
        entries[at] = value
    else:
        del entries[at]


class Writing:
    """Changes objects. `graceful_pods` makes a deleted pod that has a node stay, marked, until it is deleted with grace
    period 0, as if a kubelet had to stop it first."""

    def __init__(self, storage: VersionedStorage, now: Callable[[], str]) -> None:
        self.graceful_pods = False
        self.now = now
        self._storage = storage
        self._n_created = 0

    def create(self, served: ServedKind, namespace: str | None, body: Any) -> Stored:
        item = self.completed(served, namespace, body)
        if self._storage.get(served.resource, key_of(item)) is not None:
            raise already_exists(served.resource, item["metadata"]["name"])
        return self._storage.put(served.resource, key_of(item), item)

    def completed(self, served: ServedKind, namespace: str | None, body: Any) -> Stored:
        """The object with what a server fills in: name, namespace, uid, creation time, phase."""
        metadata = dict(_metadata_of(body))
        self._n_created += 1
        if not metadata.get("name"):
            if not metadata.get("generateName"):
                raise RefusalError(
                    422, f"{served.kind} is invalid: metadata.name: Required value: name or generateName"
                )
            metadata["name"] = f"{metadata['generateName']}{self._n_created:05d}"
        if served.namespaced:
            metadata["namespace"] = namespace or metadata.get("namespace") or "default"
        metadata.setdefault("uid", f"{self._n_created:08d}-0000-4000-8000-{self._storage.revision:012d}")
        metadata.setdefault("creationTimestamp", self.now())
        item = {**body, "kind": served.kind, "apiVersion": served.api_version, "metadata": metadata}
        if served.resource == "pods" and not (item.get("status") or {}).get("phase"):
            item["status"] = {**(item.get("status") or {}), "phase": "Pending"}
        return item

    def update(self, address: Address, body: Any) -> Stored:
        old = self.existing(address)
        _check_precondition(address, old, _metadata_of(body))
        kept = ("uid", "creationTimestamp", "namespace", "name", "deletionTimestamp")
        metadata = {**body["metadata"], **{key: old["metadata"][key] for key in kept if key in old["metadata"]}}
        new = {**body, "metadata": metadata, "kind": old["kind"], "apiVersion": old["apiVersion"]}
        return self._keep(address, _only_its_part(address, old, new))

    def patch(self, address: Address, content_type: str, patch: Any) -> Stored:
        old = self.existing(address)
        if isinstance(patch, dict):
            _check_precondition(address, old, patch.get("metadata") or {})
        return self._keep(address, _only_its_part(address, old, apply_patch(content_type, old, patch)))

    def delete(self, address: Address, options: Mapping[str, Any]) -> Stored:
        old = self.existing(address)
        _check_precondition(address, old, options.get("preconditions") or {})
        grace_s = options.get("gracePeriodSeconds")
        is_bound_pod = address.served.resource == "pods" and bool(old.get("spec", {}).get("nodeName"))
        stays = bool(grace_s) or (self.graceful_pods and is_bound_pod and grace_s != 0)
        if not stays and not old["metadata"].get("finalizers"):
            return self._storage.delete(address.served.resource, address.key)
        if old["metadata"].get("deletionTimestamp"):
            return old
        metadata = {**old["metadata"], "deletionTimestamp": self.now()}
        if address.served.resource == "pods":
            metadata["deletionGracePeriodSeconds"] = 30 if grace_s is None else grace_s
        return self._storage.put(address.served.resource, address.key, {**old, "metadata": metadata})

    def existing(self, address: Address) -> Stored:
        found = self._storage.get(address.served.resource, address.key)
        if found is None:
            raise not_found(address.served.resource, str(address.name))
        return found

    def _keep(self, address: Address, item: Stored) -> Stored:
        kept = self._storage.put(address.served.resource, address.key, item)
        metadata = item["metadata"]
        waited_for_finalizers = "deletionGracePeriodSeconds" not in metadata and not metadata.get("finalizers")
        if metadata.get("deletionTimestamp") and waited_for_finalizers:
            return self._storage.delete(address.served.resource, address.key)
        return kept


def _metadata_of(body: Any) -> dict[str, Any]:
    metadata = body.get("metadata") if isinstance(body, dict) else None
    if not isinstance(metadata, dict):
        raise RefusalError(400, "the object has no metadata")
    return metadata


def _check_precondition(address: Address, old: Stored, wanted: Mapping[str, Any]) -> None:
    has = old["metadata"]
    if wanted.get("uid") not in (None, "", has["uid"]):
        problem = f"Precondition failed: UID in precondition: {wanted['uid']}, UID in object meta: {has['uid']}"
        raise conflict(address.served.resource, has["name"], problem)
    if wanted.get("resourceVersion") not in (None, "", has["resourceVersion"]):
        problem = "the object has been modified; please apply your changes to the latest version and try again"
        raise conflict(address.served.resource, has["name"], problem)


_KINDS_WITH_STATUS = {"pods", "nodes", "persistentvolumes", "persistentvolumeclaims", "resourceclaims"}


def _only_its_part(address: Address, old: Stored, new: Stored) -> Stored:
    """A write to `status` changes only the status and annotations, and one to the object all but the status."""
    if address.subresource == "status":
        metadata = {**old["metadata"], "annotations": new["metadata"].get("annotations") or {}}
        return {**old, "metadata": metadata, "status": new.get("status") or {}}
    if address.served.plural in _KINDS_WITH_STATUS and "status" in old:
        return {**new, "status": old["status"]}
    return new


SUCCESS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def bind(storage: VersionedStorage, writing: Writing, address: Address, body: Any) -> dict[str, Any]:
    """The node's name comes into the pod, with the condition that it is scheduled. Only once, whatever the node."""
    node = ((body or {}).get("target") or {}).get("name")
    if not node:
        raise RefusalError(422, "Binding is invalid: target.name: Required value")
    pod = writing.existing(address)
    _check(pod, (body.get("metadata") or {}).get("uid"))
    condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": writing.now()}
    status = pod.get("status") or {}
    others = [one for one in status.get("conditions") or () if one.get("type") != "PodScheduled"]
    bound = {
        **pod,
        "spec": {**pod.get("spec", {}), "nodeName": node},
        "status": {**status, "conditions": [*others, condition]},
    }
    storage.put("pods", address.key, bound)
    return SUCCESS


def _check(pod: Stored, uid: str | None) -> None:
    metadata, spec = pod["metadata"], pod.get("spec", {})
    name = metadata["name"]
    if uid not in (None, "", metadata["uid"]):
        problem = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {metadata['uid']}"
    elif metadata.get("deletionTimestamp"):
        problem = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        problem = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        problem = f"pod {name} has non-empty .spec.schedulingGates"
    else:
        return
    raise conflict("pods/binding", name, problem)


def evict(writing: Writing, address: Address, body: Any) -> dict[str, Any]:
    """Deletes the pod; budgets are not looked at (a test that wants a refusal plans a fault with status 429)."""
    writing.delete(address, (body or {}).get("deleteOptions") or {})
    return SUCCESS
