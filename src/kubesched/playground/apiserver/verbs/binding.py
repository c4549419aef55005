"""Binding: a pod is given to a node, once and for good.

Guarantees what a scheduler relies on: a pod that has a node, is being deleted or is gated is never bound; uid and
version in the request must be the pod's; topology labels of the node are copied to the pod. Written in one change
with the PodScheduled condition. Of the stored pod only what binding looks at is decoded; the rest goes over as the
bytes that it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kubesched.playground.apiserver.errors import StatusError, bad_request, not_found, unclassified
from kubesched.playground.apiserver.served_resource import Object
from kubesched.playground.apiserver.storage.store import ObjectKey
from kubesched.playground.apiserver.verbs import writing
from kubesched.playground.apiserver.verbs.request import Api, Target, WriteOptions
from kubesched.playground.apiserver.verbs.update import precondition_failed

_COPIED_LABELS = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
_DECODED_METADATA = ("uid", "resourceVersion", "deletionTimestamp", "labels", "annotations")
_DECODED_SPEC = ("nodeName", "schedulingGates")


class _PodParts(msgspec.Struct, gc=False):
    """A stored pod, its fields not decoded further than shown."""

    metadata: dict[str, msgspec.Raw]
    spec: dict[str, msgspec.Raw]
    status: dict[str, Any] = {}


_decode_parts = msgspec.json.Decoder(_PodParts).decode


def bind(api: Api, target: Target, binding: Object, options: WriteOptions) -> None:
    """Binds the pod that ``target`` names."""
    metadata = binding.get("metadata") or {}
    if metadata.get("name", "") != target.name:
        raise bad_request("name in URL does not match name in Binding object")
    if metadata.get("namespace", "") not in ("", target.namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    node = _node_name(binding)
    before = api.store.get("pods", writing.key_of(target))
    if before is None:
        raise not_found(target.resource, target.name)
    pod = _load(before.raw)
    _check_preconditions(target, metadata, pod["metadata"], options.dry_run)
    _check_bindable(target, pod)
    _assign(api, pod, node, metadata)
    if not options.dry_run:  # straight to the store: nothing here that the kind's rules would have to look at
        fields = {**before.fields, "spec.nodeName": node, "status.nominatedNodeName": ""}
        api.store.put("pods", before.key, pod, lambda _: fields, before.revision)


def _load(raw: bytes) -> Object:
    """The pod, ready for the checks and changes of a binding."""
    parts = _decode_parts(raw)
    return {
        "metadata": _decoded(parts.metadata, _DECODED_METADATA),
        "spec": _decoded(parts.spec, _DECODED_SPEC),
        "status": parts.status,
    }


def _decoded(part: Mapping[str, msgspec.Raw], names: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = dict(part)
    for name in names:
        if name in found:
            found[name] = msgspec.json.decode(found[name])
    return found


def _node_name(binding: Object) -> str:
    wanted = binding.get("target") or {}
    if not isinstance(wanted, dict):
        raise bad_request('Binding in version "v1" cannot be handled as a Binding: target is no object')
    kind, name = wanted.get("kind", ""), wanted.get("name", "")
    wrong = []
    if kind not in ("", "Node"):
        wrong.append(f'target.kind: Unsupported value: "{kind}": supported values: "Node", "<empty>"')
    if not name:
        wrong.append("target.name: Required value")
    if wrong:
        raise unclassified(wrong[0] if len(wrong) == 1 else f"[{', '.join(wrong)}]")
    return str(name)


def _check_preconditions(target: Target, wanted: dict[str, Any], pod: dict[str, Any], dry_run: bool) -> None:
    if wanted.get("uid") and wanted["uid"] != pod["uid"]:
        what = f"UID in precondition: {wanted['uid']}, UID in object meta: {pod['uid']}"
        raise precondition_failed(target, what, dry_run)
    version = wanted.get("resourceVersion")
    if version and version != pod["resourceVersion"]:
        what = f"ResourceVersion in precondition: {version}, ResourceVersion in object meta: {pod['resourceVersion']}"
        raise precondition_failed(target, what, dry_run)


def _check_bindable(target: Target, pod: Object) -> None:
    name, spec, why = target.name, pod.get("spec", {}), ""
    if pod["metadata"].get("deletionTimestamp"):
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        message = f'Operation cannot be fulfilled on pods/binding "{name}": {why}'
        raise StatusError(409, "Conflict", message, {"name": name, "kind": "pods/binding"})


def _assign(api: Api, pod: Object, node: str, given: dict[str, Any]) -> None:
    metadata = pod["metadata"]
    pod["spec"]["nodeName"] = node
    for kind in ("annotations", "labels"):
        if given.get(kind):
            metadata[kind] = {**metadata.get(kind, {}), **given[kind]}
    copied = _topology_of(api, node)
    if copied:
        metadata["labels"] = {**metadata.get("labels", {}), **copied}
    pod["status"].pop("nominatedNodeName", None)
    _set_scheduled(pod["status"], api.now())


def _topology_of(api: Api, node: str) -> dict[str, str]:
    stored = api.store.get("nodes", ObjectKey("", node))
    if stored is None:
        return {}
    return {label: stored.labels[label] for label in _COPIED_LABELS if label in stored.labels}


def _set_scheduled(status: dict[str, Any], now: str) -> None:
    conditions = status.setdefault("conditions", [])
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    for at, condition in enumerate(conditions):
        if condition.get("type") == "PodScheduled":
            if condition.get("status") == "True":
                return
            conditions[at] = scheduled
            return
    conditions.append(scheduled)
