"""Whatever an object holds, as long as its types are right: it is taken or refused, shown, changed and patched."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written_objects import NOW, FakeLookup, create

from kubesched.k8s.model.merge_patch import merged
from kubesched.playground.apiserver.errors import StatusError
from kubesched.playground.apiserver.kinds.registry import ALL_KINDS
from kubesched.playground.apiserver.openapi.schemas import ValueType, type_of_kind
from kubesched.playground.apiserver.patching import strategic
from kubesched.playground.apiserver.patching.apply import apply, record
from kubesched.playground.apiserver.served_resource import DecodeError, Object, ServedResource, WriteContext

_TEXTS = (
    "",
    "a",
    "A_B",
    "x y",
    "a/b/c",
    "In",
    "Exists",
    "Always",
    "NoExecute",
    "RollingUpdate",
    "Container",
    "cpu",
    "1",
)
_SCALARS: dict[str, tuple[Any, ...]] = {
    "string": _TEXTS,
    "integer": (0, 1, -1, 80, 70000, 2**31 - 1),
    "number": (0, 1, 2.5),
    "boolean": (True, False),
    "quantity": ("1", "0", "-1", "500m", "2Gi", "100u"),
    "int-or-string": (0, -3, "25%", "http", ""),
    "time": ("2026-01-01T00:00:00Z", None),
    "micro-time": ("2026-01-01T00:00:00.000001Z", None),
    "bytes": ("", "eA=="),
    "any": ({"a": 1}, None, [], "s"),
}
_NOT_GIVEN = ("kind", "apiVersion", "managedFields", "name", "generateName", "namespace", "uid", "creationTimestamp")


def _draw(of: ValueType, random: Random, depth: int = 0) -> Any:
    if of.form in _SCALARS:
        return random.choice(_SCALARS[of.form])
    if depth > 9:
        return {} if of.form != "list" else []
    if of.form == "struct":
        chance = 0.5 if depth < 4 else 0.15
        chosen = [name for name in of.fields if random.random() < chance and not (depth < 2 and name in _NOT_GIVEN)]
        return {name: _draw(of.fields[name].type, random, depth + 1) for name in chosen}
    element = of.element
    assert element is not None
    if of.form == "list":
        return [_draw(element, random, depth + 1) for _ in range(random.choice((0, 1, 1, 2)))]
    return {random.choice(_TEXTS): _draw(element, random, depth + 1) for _ in range(random.choice((0, 1, 2)))}


def _body(resource: ServedResource, random: Random) -> Object:
    of = type_of_kind(resource.group, resource.version, resource.kind)
    assert of is not None
    body: Object = _draw(of, random)
    body["metadata"] = {**body.get("metadata", {}), "name": "x"}
    return body


def _change(resource: ServedResource, new: Object, old: Object) -> None:
    resource.decode(new)
    new["metadata"] |= {name: old["metadata"][name] for name in ("uid", "namespace") if name in old["metadata"]}
    resource.prepare_update(new, old, WriteContext(FakeLookup(), NOW))
    resource.validate(new, old)
    record(new, old, resource, "tester", "", NOW)


@pytest.mark.parametrize(
    "resource",
    [one for one in ALL_KINDS if one.verbs != ("create",)],
    ids=lambda one: f"{one.api_version} {one.plural}",
)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=4)
def test_any_object_is_taken_or_refused(resource: ServedResource, seed: int) -> None:
    random = Random(seed)
    body, other = _body(resource, random), _body(resource, random)
    try:
        obj, _ = create(resource, body)
    except (DecodeError, StatusError):
        return
    resource.validate(obj, None)
    assert len([column.value(obj) for column in resource.columns]) == len(resource.columns)
    again = copy.deepcopy(obj)
    assert resource.decode(again) == []
    for changed in (
        lambda: other,
        lambda: strategic.apply(obj, other, resource),
        lambda: merged(obj, other),
        lambda: apply(obj, other, resource, "m2", True, NOW),
    ):
        try:
            _change(resource, copy.deepcopy(changed()), obj)
        except (DecodeError, StatusError):
            continue
