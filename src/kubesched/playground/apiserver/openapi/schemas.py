"""The one table of all shapes, and the types made of it: what a field holds, when Go leaves it out, how lists merge.

The data lie in ``schemas.json.gz`` beside this module: OpenAPI schemas and the order, omission rule and wire number of
every field. Their origin is Kubernetes v1.36.4 (Apache License 2.0, see NOTICE). The table is read once, when first
asked for; types are made on demand and shared. ``decoding.py`` reads objects by them, ``patching/`` merges by them, and
``documents.py`` makes OpenAPI documents.
"""

from __future__ import annotations

import gzip
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

import msgspec

_REF_PREFIX = "#/components/schemas/"


class LayoutField(NamedTuple):
    """One field of a struct as Go declares it. For an inlined struct ``name`` is the name of its schema."""

    name: str
    number: int  # of the field in protobuf; 0 or less: not in protobuf
    flags: str  # p pointer, o left out when empty, z left out when zero (structs too), i inlined
    go_type: str

    @property
    def is_inline(self) -> bool:
        return "i" in self.flags


class InternalField(NamedTuple):
    """One field of a struct as the real server has it inside.

    Its form: s text, i number, b truth, q amount, n nothing when absent ("n:Struct", "m:Struct": of structs, by name),
    S:Struct always there, e:Struct embedded, x as in v1.
    """

    go_name: str
    form: str
    json_name: str = ""  # where it is not the Go name with small letters


@lru_cache(maxsize=1)
def _table() -> dict[str, Any]:
    packed = resources.files(__package__).joinpath("schemas.json.gz").read_bytes()
    table: dict[str, Any] = msgspec.json.decode(gzip.decompress(packed))
    return table


def all_schemas() -> dict[str, dict[str, Any]]:
    """All OpenAPI v3 schemas by name ("io.k8s.api.core.v1.Pod"). Not to be changed by callers."""
    found: dict[str, dict[str, Any]] = _table()["schemas"]
    return found


@lru_cache(maxsize=1024)
def layout(schema_name: str) -> tuple[LayoutField, ...]:
    """The fields of one struct in Go's order; empty for what is no struct."""
    return tuple(LayoutField(*entry) for entry in _table()["layout"].get(schema_name, ()))


def internal_fields(struct_name: str) -> list[InternalField]:
    """Fields of a struct in the form that the real server uses inside: pod specs, volumes, claims and what is in them.

    Structs of other groups than the core have its name in front: "resource.DeviceClaim".
    """
    return [InternalField(*entry) for entry in _table()["internal"].get(struct_name, ())]


@lru_cache(maxsize=1)
def _names_by_kind() -> dict[tuple[str, str, str], str]:
    found: dict[tuple[str, str, str], str] = {}
    for name, schema in all_schemas().items():
        kinds = schema.get("x-kubernetes-group-version-kind", ())
        if len(kinds) == 1:  # kinds that every group has (DeleteOptions, WatchEvent) are nobody's objects
            found[kinds[0]["group"], kinds[0]["version"], kinds[0]["kind"]] = name
    return found


def schema_name(group: str, version: str, kind: str) -> str | None:
    """The schema of a kind, None if it is not built in."""
    return _names_by_kind().get((group, version, kind))


def referenced_name(schema: dict[str, Any]) -> str | None:
    """The schema that a property refers to, plainly or by ``allOf``."""
    reference = schema.get("$ref")
    if reference is None and "allOf" in schema:
        reference = schema["allOf"][0].get("$ref")
    return None if reference is None else str(reference).removeprefix(_REF_PREFIX)


_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_SPECIAL = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
    _META + "Time": "time",
    _META + "MicroTime": "micro-time",
}


@dataclass(slots=True, eq=False)
class ValueType:
    """The type of one value.

    ``form`` is struct, map, list, string, integer, number, boolean, quantity, int-or-string, time, micro-time, bytes
    or any.
    """

    form: str
    go_type: str = ""
    schema: str = ""  # of a struct, and of what can be one thing or another
    element: ValueType | None = None  # of a map or list
    list_type: str = "atomic"  # atomic, set or map, for server-side apply
    map_keys: tuple[str, ...] = ()
    is_atomic: bool = False  # a map or struct owned as a whole
    patch_strategy: frozenset[str] = frozenset()
    merge_key: str = ""
    format: str = ""
    own_fields: dict[str, FieldType] | None = None  # of a struct without a schema of this name

    @property
    def fields(self) -> dict[str, FieldType]:
        if self.own_fields is not None:
            return self.own_fields
        return struct_fields(self.schema) if self.schema else {}

    def child(self, name: str) -> ValueType:
        """The type of a field, or of what a map or list holds."""
        if self.form == "struct":
            known = self.fields.get(name)
            return known.type if known is not None else ANY
        return self.element or ANY

    @property
    def struct_name(self) -> str:
        """The Go name of a struct: "Container"."""
        return self.schema.rpartition(".")[2]


@dataclass(slots=True, eq=False)
class FieldType:
    """One field of a struct."""

    name: str
    type: ValueType
    is_pointer: bool
    omits_empty: bool
    omits_zero: bool
    default: Any = field(default=None)
    go_path: str = ""  # with the names of the structs that it is embedded through: "VolumeSource.csi"


ANY = ValueType("any")
OPAQUE = ValueType("any", is_atomic=True)


@lru_cache(maxsize=1024)
def type_of_kind(group: str, version: str, kind: str) -> ValueType | None:
    """The type of a built-in kind; None for custom resources."""
    name = schema_name(group, version, kind)
    return None if name is None else struct_type(name)


@lru_cache(maxsize=2048)
def struct_type(schema_name: str) -> ValueType:
    schema = all_schemas()[schema_name]
    is_atomic = schema.get("x-kubernetes-map-type") == "atomic"
    return ValueType("struct", go_type=_go_name(schema_name), schema=schema_name, is_atomic=is_atomic)


def _go_name(schema_name: str) -> str:
    """With the name of the package: "v2.MetricSpec"."""
    return ".".join(schema_name.rsplit(".", 2)[-2:])


@lru_cache(maxsize=2048)
def struct_fields(schema_name: str) -> dict[str, FieldType]:
    """All fields in Go's order, inlined structs included."""
    properties = all_schemas().get(schema_name, {}).get("properties", {})
    found: dict[str, FieldType] = {}
    for entry, go_path in _flat_layout(schema_name):
        prop = properties[entry.name]
        found[entry.name] = FieldType(
            name=entry.name,
            type=_value_type(prop, entry.go_type),
            is_pointer="p" in entry.flags,
            omits_empty="o" in entry.flags,
            omits_zero="z" in entry.flags,
            default=prop.get("default"),
            go_path=go_path,
        )
    return found


def _flat_layout(schema_name: str) -> list[tuple[LayoutField, str]]:
    """Fields with their paths in Go, where an embedded struct counts as a field of its type's name."""
    flat: list[tuple[LayoutField, str]] = []
    for entry in layout(schema_name):
        if entry.is_inline:
            struct = entry.name.rpartition(".")[2]
            flat.extend((inner, f"{struct}.{path}") for inner, path in _flat_layout(entry.name))
        else:
            flat.append((entry, entry.name))
    return flat


def _value_type(schema: dict[str, Any], go_type: str) -> ValueType:
    name = referenced_name(schema)
    if name is not None:
        return _referenced(name, schema, go_type)
    form = schema.get("type")
    if form == "array":
        element = _value_type(schema["items"], go_type.removeprefix("[]").lstrip("*"))
        return ValueType("list", go_type, element=element, **_merging(schema))
    if form == "object":
        items = schema.get("additionalProperties")
        if not isinstance(items, dict):
            return ANY
        inner = go_type.partition("]")[2].lstrip("*") if go_type.startswith("map[") else ""
        return ValueType("map", go_type, element=_value_type(items, inner), **_merging(schema))
    if form == "string" and schema.get("format") == "byte":
        return ValueType("bytes", go_type)
    if form in ("string", "integer", "number", "boolean"):
        return ValueType(form, go_type, format=schema.get("format", ""))
    return ANY


def _referenced(name: str, schema: dict[str, Any], go_type: str) -> ValueType:
    if name in _SPECIAL:
        return ValueType(_SPECIAL[name], go_type)
    target = all_schemas()[name]
    if "type" not in target:
        return ValueType("any", schema=name, is_atomic=True)
    if target["type"] != "object" or (not layout(name) and "properties" in target):
        return OPAQUE
    if "properties" not in target and name.rpartition(".")[2] in ("RawExtension", "FieldsV1", "Patch"):
        return OPAQUE
    if name not in _own_types_with_merging() and "x-kubernetes-map-type" not in schema:
        return struct_type(name)
    # what the field says about its own place counts more than what the type says (a volume's claimRef is granular)
    atomic = schema.get("x-kubernetes-map-type", target.get("x-kubernetes-map-type")) == "atomic"
    strategy = frozenset(filter(None, schema.get("x-kubernetes-patch-strategy", "").split(",")))
    return ValueType("struct", _go_name(name), name, is_atomic=atomic, patch_strategy=strategy)


@lru_cache(maxsize=1)
def _own_types_with_merging() -> frozenset[str]:
    """Structs that some field merges in its own way (a Deployment's strategy retains keys)."""
    found = set()
    for schema in all_schemas().values():
        for prop in schema.get("properties", {}).values():
            name = referenced_name(prop)
            if name is not None and "x-kubernetes-patch-strategy" in prop:
                found.add(name)
    return frozenset(found)


def _merging(schema: dict[str, Any]) -> dict[str, Any]:
    strategy = schema.get("x-kubernetes-patch-strategy", "")
    return {
        "list_type": schema.get("x-kubernetes-list-type", "atomic"),
        "map_keys": tuple(schema.get("x-kubernetes-list-map-keys", ())),
        "is_atomic": schema.get("x-kubernetes-map-type") == "atomic",
        "patch_strategy": frozenset(filter(None, strategy.split(","))),
        "merge_key": schema.get("x-kubernetes-patch-merge-key", ""),
    }
