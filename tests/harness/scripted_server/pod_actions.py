"""What can be done to a pod beside writing it: binding and eviction."""

from __future__ import annotations

from typing import Any

from harness.scripted_server.answers import RefusalError, conflict
from harness.scripted_server.routing import Address
from harness.scripted_server.selection import Stored
from harness.scripted_server.storage import VersionedStorage
from harness.scripted_server.writing import Writing

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
