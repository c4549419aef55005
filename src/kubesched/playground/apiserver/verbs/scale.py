"""The scale subresource: how many replicas a workload shall have, as a Scale object of its own.

Reads it off the workload and writes only its replicas back, by the same way as any update. A custom resource says in
its definition where its replicas lie.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.playground.apiserver.errors import StatusError, bad_request, modified, not_found
from kubesched.playground.apiserver.kinds.serving import serve
from kubesched.playground.apiserver.served_resource import Object, ServedResource
from kubesched.playground.apiserver.storage.store import ObjectKey, Stored
from kubesched.playground.apiserver.verbs import writing
from kubesched.playground.apiserver.verbs.request import Api, Target, WriteOptions
from kubesched.playground.apiserver.verbs.update import apply_update

KIND, API_VERSION = "Scale", "autoscaling/v1"
SCALE = serve(API_VERSION, KIND, "scales", namespaced=True)
_BUILT_IN_PATHS = (".spec.replicas", ".status.replicas", ".spec.selector")
_SHOWN_METADATA = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(workload: Object, resource: ServedResource) -> Object:
    """The Scale of a workload."""
    metadata = workload["metadata"]
    wanted, seen, selector_at = resource.scale_paths if resource.is_custom else _BUILT_IN_PATHS
    shown: dict[str, Any] = {"replicas": _number_at(workload, seen)}
    selector = _at(workload, selector_at)
    text = selector if isinstance(selector, str) else _selector_text(selector)
    if text:
        shown["selector"] = text
    replicas = _number_at(workload, wanted)
    return {
        "metadata": {name: metadata[name] for name in _SHOWN_METADATA if name in metadata},
        "spec": {"replicas": replicas} if replicas else {},
        "status": shown,
    }


def _at(obj: Object, path: str) -> Any:
    """The value under a path like ".spec.replicas"."""
    found: Any = obj
    for name in filter(None, path.split(".")):
        found = found.get(name) if isinstance(found, dict) else None
    return found if path else None


def _number_at(obj: Object, path: str) -> int:
    found = _at(obj, path)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def _set_at(obj: Object, path: str, value: int) -> None:
    *outer, last = filter(None, path.split("."))
    for name in outer:
        inner = obj.get(name)
        obj[name] = inner if isinstance(inner, dict) else {}
        obj = obj[name]
    obj[last] = value


def get_scale(api: Api, target: Target) -> Stored:
    return _as_stored(scale_of(writing.load(target.resource, _workload(api, target)), target.resource))


def update_scale(api: Api, target: Target, scale: Object, options: WriteOptions) -> Stored:
    """Writes the replicas of a Scale; its version, if given, must be the workload's."""
    before = _workload(api, target)
    metadata = scale.get("metadata") or {}
    if metadata.get("name") and metadata["name"] != target.name:
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({target.name})"
        )
    replicas = _replicas(scale, target.name)
    if metadata.get("resourceVersion") and metadata["resourceVersion"] != str(before.revision):
        raise modified(target.resource, target.name)
    workload = writing.load(target.resource, before)
    _set_at(workload, target.resource.scale_paths[0] or ".spec.replicas", replicas)
    stored = apply_update(api, target, workload, before, options)
    return _as_stored(scale_of(writing.load(target.resource, stored), target.resource))


def _workload(api: Api, target: Target) -> Stored:
    stored = api.store.get(target.resource.storage_key, writing.key_of(target))
    if stored is None:
        raise not_found(target.resource, target.name)
    return stored


def _replicas(scale: Object, name: str) -> int:
    spec = scale.get("spec") or {}
    replicas = spec.get("replicas", 0) if isinstance(spec, dict) else None
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise bad_request(
            'Scale in version "v1" cannot be handled as a Scale: json: cannot unmarshal into Go struct field '
            "ScaleSpec.spec.replicas of type int32"
        )
    if replicas < 0:
        message = f"Invalid value: {replicas}: must be greater than or equal to 0"
        cause = {"reason": "FieldValueInvalid", "message": message, "field": "spec.replicas"}
        details = {"name": name, "group": "autoscaling", "kind": KIND, "causes": [cause]}
        raise StatusError(422, "Invalid", f'Scale.autoscaling "{name}" is invalid: spec.replicas: {message}', details)
    return replicas


def _as_stored(scale: Object) -> Stored:
    metadata = scale["metadata"]
    key = ObjectKey(metadata.get("namespace", ""), metadata["name"])
    return Stored(key, int(metadata["resourceVersion"]), msgspec.json.encode(scale), {}, {})


def _selector_text(selector: Any) -> str:
    """A label selector as kubectl writes it."""
    if not isinstance(selector, dict):
        return ""
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return ",".join(f"{name}={selector[name]}" for name in sorted(selector))
    terms = [f"{name}={value}" for name, value in (selector.get("matchLabels") or {}).items()]
    terms.extend(_expression_text(expression) for expression in selector.get("matchExpressions") or ())
    return ",".join(sorted(terms))


def _expression_text(expression: dict[str, Any]) -> str:
    key, operator = expression.get("key", ""), expression.get("operator", "")
    if operator == "Exists":
        return str(key)
    if operator == "DoesNotExist":
        return f"!{key}"
    return f"{key} {operator.lower()} ({','.join(sorted(expression.get('values') or ()))})"
