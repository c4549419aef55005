"""Carries changes out on manifests, from nothing but what `Change.to_dict()` says: as a user would."""

from __future__ import annotations

import copy
from typing import Any

from kubesched.k8s.model import quantity
from kubesched.testing.make import Manifest


def apply_change(objects: list[Manifest], change: dict[str, Any]) -> list[Manifest]:
    """The cluster after the change."""
    changed = copy.deepcopy(objects)
    for action in change["actions"]:
        changed = _CARRY_OUT[action["action"]](changed, action, change)
    return changed


def _patch(objects: list[Manifest], action: dict[str, Any], _change: dict[str, Any]) -> list[Manifest]:
    target = _find(objects, action["kind"], action["name"])
    for operation in action["patch"]:
        apply_operation(target, operation)
    return objects


def _free(objects: list[Manifest], action: dict[str, Any], _change: dict[str, Any]) -> list[Manifest]:
    """So much less used is, to the scheduler, so much more there."""
    allocatable = _find(objects, "Node", action["name"])["status"]["allocatable"]
    for resource, amount in action["amounts"].items():
        more = quantity.parse(allocatable.get(resource, 0)).nanos + quantity.parse(amount).nanos
        allocatable[resource] = str(quantity.Quantity(more))
    return objects


def _delete(objects: list[Manifest], action: dict[str, Any], _change: dict[str, Any]) -> list[Manifest]:
    return [item for item in objects if item["kind"] != "Pod" or key_of(item) not in action["names"]]


def _create(objects: list[Manifest], _action: dict[str, Any], change: dict[str, Any]) -> list[Manifest]:
    return [*objects, change["manifest"]]


_CARRY_OUT = {"patch": _patch, "free": _free, "delete": _delete, "create": _create}


def apply_operation(document: Any, operation: dict[str, Any]) -> None:
    """RFC 6902, `add` and `remove`; parents must be there."""
    *above, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
    place = document
    for part in above:
        place = place[int(part)] if isinstance(place, list) else place[part]
    if operation["op"] == "remove":
        del place[int(last) if isinstance(place, list) else last]
    elif isinstance(place, list):
        place.insert(len(place) if last == "-" else int(last), operation["value"])
    else:
        place[last] = operation["value"]


def _find(objects: list[Manifest], kind: str, key: str) -> Manifest:
    return next(item for item in objects if item["kind"] == kind and key_of(item) == key)


def key_of(item: Manifest) -> str:
    metadata = item["metadata"]
    if item["kind"] == "Node":
        return str(metadata["name"])
    return f"{metadata.get('namespace') or 'default'}/{metadata['name']}"
