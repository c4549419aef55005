"""A catalogue of damage: every field that the scheduler reads, spoilt in every way that its type allows, and objects
that are spoilt as a whole.

Made from the model itself, so that a field which is added there is in it by itself.
"""

from __future__ import annotations

import copy
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import inspect

from kubesched.k8s.client.resources import RESOURCES, Resource

Tree = dict[str, Any]
Path = tuple[str | int, ...]

DEEP = 20_000
_MARK = "@@damage@@"


@dataclass(frozen=True)
class Damage:
    """`encode` gives the bytes of a good object as they are sent."""

    resource: Resource
    name: str
    encode: Callable[[Tree], bytes]

    @property
    def kind(self) -> str:
        return self.resource.type.__name__

    @property
    def is_damage(self) -> bool:
        """Whether it cannot be read at all in one place or another, by what JSON and the model's types say."""
        good = self.manifest()
        good["metadata"] |= {"uid": "u", "resourceVersion": "1"}
        data = self.encode(good)
        for opening, closing in ((b"[", b"]"), (b'{"a":', b"}")):
            data = data.replace(opening * DEEP, opening * 3).replace(closing * DEEP, closing * 3)
        try:
            tree = json.loads(data, parse_constant=str)
        except ValueError:
            return b'"zzz"' not in data
        try:
            msgspec.convert(_without_null(tree), self.resource.type)
        except msgspec.ValidationError:
            return True
        return False

    @property
    def object_name(self) -> str:
        """A name that no other damage has."""
        text = "".join(sign if sign.isalnum() else "-" for sign in self.name.lower())
        return f"{text.strip('-')[:60].strip('-')}-{zlib.crc32(f'{self.kind} {self.name}'.encode())}"

    def manifest(self) -> Tree:
        """The good object."""
        metadata: Tree = {"name": self.object_name, "labels": {"app": "x"}, "annotations": {"a": "b"}}
        if self.resource.namespaced:
            metadata["namespace"] = "default"
        base = copy.deepcopy(_BASES.get(self.kind, {}))
        return {"apiVersion": self.resource.api_version, "kind": self.kind, "metadata": metadata, **base}


def _without_null(tree: Any) -> Any:
    """Null is not given, but in lists and maps."""
    if isinstance(tree, list):
        return [_without_null(item) for item in tree]
    if not isinstance(tree, dict):
        return tree
    return {name: _without_null(item) for name, item in tree.items() if item is not None or name in ("a", "n")}


_BASES: dict[str, Tree] = {
    "Pod": {
        "spec": {
            "schedulerName": "kubesched-test",
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1m", "memory": "1Ki"}}}],
        },
        "status": {"phase": "Pending"},
    },
    "Node": {"spec": {}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}},
    "PersistentVolume": {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}},
    "PersistentVolumeClaim": {"spec": {"resources": {"requests": {"storage": "1Gi"}}}},
    "CSINode": {"spec": {"drivers": [{"name": "d", "nodeID": "n", "allocatable": {"count": 3}}]}},
    "ResourceClaim": {"spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "c"}}]}}},
    "ResourceSlice": {"spec": {"driver": "d", "pool": {"name": "p"}, "devices": [{"name": "x"}]}},
}


def catalogue() -> list[Damage]:
    """All of it, kind by kind."""
    found = (damage for resource in RESOURCES for damage in (*_of_whole_objects(resource), *_of_fields(resource)))
    return list({(damage.kind, damage.name): damage for damage in found}.values())


# -- whole objects -----------------------------------------------------------------------------------------------------


def _bytes(text: bytes) -> Callable[[Tree], bytes]:
    return lambda _: text


def _with(path: Path, value: Any, raw: bytes | None = None) -> Callable[[Tree], bytes]:
    """The object with this at the path; or with these bytes, which JSON could not be made of."""

    def encode(item: Tree) -> bytes:
        spoilt = copy.deepcopy(item)
        _set(spoilt, path, value if raw is None else _MARK)
        data = msgspec.json.encode(spoilt)
        return data if raw is None else data.replace(f'"{_MARK}"'.encode(), raw)

    return encode


def _set(tree: Any, path: Path, value: Any) -> None:
    for step, following in pairwise(path):
        empty: Any = [] if isinstance(following, int) else {}
        if isinstance(tree, list):
            while len(tree) <= int(step):
                tree.append(copy.deepcopy(empty))
            tree = tree[int(step)]
        else:
            tree = tree.setdefault(step, empty)
    if isinstance(tree, list):
        while len(tree) <= int(path[-1]):
            tree.append(None)
    tree[path[-1]] = value


def _without(path: Path) -> Callable[[Tree], bytes]:
    def encode(item: Tree) -> bytes:
        spoilt = copy.deepcopy(item)
        part: Any = spoilt
        for step in path[:-1]:
            part = part[step]
        del part[path[-1]]
        return msgspec.json.encode(spoilt)

    return encode


def _of_whole_objects(resource: Resource) -> Iterator[Damage]:
    deep_list = b"[" * DEEP + b"]" * DEEP
    deep_object = b'{"a":' * DEEP + b"1" + b"}" * DEEP
    ways: dict[str, Callable[[Tree], bytes]] = {
        "null": _bytes(b"null"),
        "a text": _bytes(b'"odd"'),
        "a number": _bytes(b"7"),
        "true": _bytes(b"true"),
        "a list": _bytes(b"[]"),
        "a list of itself": lambda item: b"[%b]" % msgspec.json.encode(item),
        "empty": _bytes(b"{}"),
        "metadata missing": _without(("metadata",)),
        "metadata null": _with(("metadata",), None),
        "metadata a list": _with(("metadata",), []),
        "metadata a text": _with(("metadata",), "odd"),
        "name missing": _without(("metadata", "name")),
        "name null": _with(("metadata", "name"), None),
        "name empty": _with(("metadata", "name"), ""),
        "name a number": _with(("metadata", "name"), 7),
        "name an object": _with(("metadata", "name"), {}),
        "name no UTF-8": _with(("metadata", "name"), "", b'"\xff\xfe"'),
        "namespace a number": _with(("metadata", "namespace"), 7),
        "uid a number": _with(("metadata", "uid"), 7),
        "version a number": _with(("metadata", "resourceVersion"), 7),
        "version missing": _without(("metadata", "resourceVersion")),
        "labels a list": _with(("metadata", "labels"), ["a"]),
        "labels that are numbers": _with(("metadata", "labels"), {"a": 1, "b": 2, "c": "d"}),
        "a label that is null": _with(("metadata", "labels", "n"), None),
        "a label that is no UTF-8": _with(("metadata", "labels", "n"), "", b'"\xc3\x28"'),
        "a label's key that is no UTF-8": _with(("metadata", "labels"), "", b'{"\xff":"a"}'),
        "annotations that are objects": _with(("metadata", "annotations"), {"a": {"b": "c"}}),
        "a field nobody reads that is no UTF-8": _with(("zzz",), "", b'"\xff"'),
        "labels nested absurdly": _with(("metadata", "labels"), "", deep_list),
        "a field nobody reads nested absurdly": _with(("zzz",), "", deep_object),
        "a number that nothing holds": _with(("metadata", "generation"), 0, b"1e400"),
        "a number of 5,000 digits": _with(("metadata", "generation"), 0, b"9" * 5000),
        "NaN": _with(("metadata", "generation"), 0, b"NaN"),
        "fields given twice": lambda item: b'{"metadata":{"name":7},%b' % msgspec.json.encode(item)[1:],
        "a time that is none": _with(("metadata", "creationTimestamp"), "yesterday"),
        "a time of deletion that is none": _with(("metadata", "deletionTimestamp"), "soon"),
        "spec a text": _with(("spec",), "odd"),
        "spec null": _with(("spec",), None),
        "spec nested absurdly": _with(("spec",), "", deep_list),
        "status a list": _with(("status",), []),
        "status null": _with(("status",), None),
    }
    for name, encode in ways.items():
        yield Damage(resource, name, encode)


# -- fields ------------------------------------------------------------------------------------------------------------

_TEXTS: dict[str, Any] = {"12": 12, "true": True, "a list": [], "an odd text": "\u0000odd \u2603/"}
_NUMBERS: dict[str, Any] = {"a text": "7", "a fraction": 1.5, "huge": 10**30, "-1": -1, "the largest": 2**31 - 1}
_SWITCHES: dict[str, Any] = {"a text": "yes", "3": 3}
_AMOUNTS: dict[str, Any] = {"true": True, "no quantity": "much", "a list": [], "absurd": "9e999", "-1": "-1"}
_STRUCTS: dict[str, Any] = {"a text": "odd", "a list": [7]}
_LISTS: dict[str, Any] = {"a text": "odd", "of null": [None], "of numbers": [7]}
_MAPS: dict[str, Any] = {"a list": ["odd"], "of null": {"a": None}, "of lists": {"a": []}}


def _of_fields(resource: Resource) -> Iterator[Damage]:
    for path, ways in _fields(inspect.type_info(resource.type), (), frozenset()):
        if path[0] == "metadata":
            continue  # above
        told = ".".join(map(str, path))
        for name, value in ways.items():
            yield Damage(resource, f"{told} {name}", _with(path, value))


def _fields(kind: inspect.Type, path: Path, inside: frozenset[type]) -> Iterator[tuple[Path, dict[str, Any]]]:
    if isinstance(kind, inspect.UnionType):
        some = {type(one) for one in kind.types}
        if {inspect.StrType, inspect.IntType, inspect.FloatType} <= some:
            yield path, _AMOUNTS
            return
        for one in kind.types:
            if not isinstance(one, inspect.NoneType):
                yield from _fields(one, path, inside)
    elif isinstance(kind, inspect.StructType):
        if path:
            yield path, _STRUCTS
        if kind.cls in inside or kind.cls.__name__ in ("PodTemplateSpec", "PersistentVolumeClaimTemplate"):
            return
        for known in kind.fields:
            yield from _fields(known.type, (*path, known.encode_name), inside | {kind.cls})
    elif isinstance(kind, inspect.VarTupleType):
        yield path, _LISTS
        if isinstance(kind.item_type, inspect.StructType | inspect.UnionType):
            yield from _fields(kind.item_type, (*path, 0), inside)
    elif isinstance(kind, inspect.DictType):
        yield path, _MAPS
        if isinstance(kind.value_type, inspect.StructType | inspect.UnionType):
            yield from _fields(kind.value_type, (*path, "cpu"), inside)
    else:
        ways = {inspect.StrType: _TEXTS, inspect.IntType: _NUMBERS, inspect.BoolType: _SWITCHES}.get(type(kind))
        if ways is not None:
            yield path, ways
