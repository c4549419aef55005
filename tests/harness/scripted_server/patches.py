"""Patches on JSON: merge, JSON patch, and strategic merge as far as schedulers use it (lists merged by their key)."""

from __future__ import annotations

import copy
from typing import Any

from harness.scripted_server.answers import RefusalError

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
