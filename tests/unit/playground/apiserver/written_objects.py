"""Objects written to the kinds without a server: decoding, managed fields, admission and validation, in that order."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from kubesched.playground.apiserver.kinds.registry import find
from kubesched.playground.apiserver.patching.apply import record
from kubesched.playground.apiserver.served_resource import Object, ServedResource, WriteContext

NOW = "2026-01-01T00:00:00Z"


@dataclass
class FakeLookup:
    """Other objects, by resource and name."""

    objects: dict[str, list[Object]] = field(default_factory=dict)

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        for obj in self.list(resource, namespace):
            if obj["metadata"]["name"] == name:
                return obj
        return None

    def list(self, resource: str, namespace: str = "") -> Iterable[Object]:
        return self.objects.get(resource, [])


def resource_of(group_version: str, plural: str) -> ServedResource:
    group, _, version = group_version.rpartition("/")
    found = find(group, version, plural)
    assert found is not None, f"{group_version} {plural} is not served"
    return found


PODS = resource_of("v1", "pods")


def create(resource: ServedResource, body: Object, lookup: FakeLookup | None = None) -> tuple[Object, WriteContext]:
    """The object as it would be stored, unvalidated, and the context with its warnings."""
    obj = copy.deepcopy(body)
    resource.decode(obj)
    meta = obj["metadata"]
    meta.setdefault("name", "x")
    meta["uid"] = "u"
    if resource.namespaced:
        meta.setdefault("namespace", "default")
    resource.set_times(obj, NOW)
    record(obj, None, resource, "tester", "", NOW)
    ctx = WriteContext(lookup or FakeLookup(), NOW)
    resource.prepare_create(obj, ctx)
    resource.validate_admission(obj, None, ctx)
    return obj, ctx


def errors(resource: ServedResource, body: Object, lookup: FakeLookup | None = None) -> list[str]:
    """What is wrong with a new object, as the message writes it."""
    obj, _ = create(resource, body, lookup)
    return [f"{error.field}: {error.message}" for error in resource.validate(obj, None)]


def change_mistakes(resource: ServedResource, body: Object, changes: Object, subresource: str = "") -> list[str]:
    """What is wrong with changing a created object; ``changes`` maps dotted paths to values, None to remove."""
    old, _ = create(resource, body)
    new = copy.deepcopy(old)
    for path, value in changes.items():
        *parents, last = path.split(".")
        place: Any = new
        for name in parents:
            place = place[int(name)] if name.isdigit() else place.setdefault(name, {})
        if value is None:
            place.pop(last)
        else:
            place[last] = value
    resource.decode(new)
    resource.prepare_update(new, old, WriteContext(FakeLookup(), NOW, subresource=subresource))
    validate = resource.validate_through.get(subresource, resource.validate)
    # what is found twice is a cause twice, but the message tells it once
    return list(dict.fromkeys(f"{error.field}: {error.message}" for error in validate(new, old)))


def pod(**spec: Any) -> Object:
    spec.setdefault("containers", [{"name": "c", "image": "registry.k8s.io/pause:3.9"}])
    return {"metadata": {"name": "p"}, "spec": spec}


def container(**more: Any) -> Object:
    return {"name": "c", "image": "i", **more}
