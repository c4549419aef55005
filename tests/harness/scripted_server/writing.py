"""Create, update, patch and delete of the scripted server, with resourceVersion and uid checked as a real one does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harness.scripted_server.answers import RefusalError, already_exists, conflict, not_found
from harness.scripted_server.kinds import ServedKind
from harness.scripted_server.patches import apply_patch
from harness.scripted_server.routing import Address
from harness.scripted_server.selection import Stored
from harness.scripted_server.storage import VersionedStorage, key_of


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
