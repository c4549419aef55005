"""The type of a custom resource, from its definition's schema: how server-side apply walks its objects.

Follows the schema's own words: ``x-kubernetes-list-type``, ``x-kubernetes-list-map-keys``, ``x-kubernetes-map-type``.
What keeps unknown fields is walked without a schema. ``openapi/struct_types.py`` has the types of built-in kinds.
"""

from __future__ import annotations

from typing import Any

from kubesched.playground.apiserver.kinds.kind import Object
from kubesched.playground.apiserver.openapi.struct_types import ANY, FieldType, ValueType, struct_type

_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_STRING = ValueType("string")


def custom_type(schema: Object) -> ValueType:
    """The type of whole objects; their metadata is that of all kinds."""
    if not schema.get("properties"):
        return ANY
    of = _type(schema)
    if of.form != "struct" or of.own_fields is None:
        return ANY
    head = {"apiVersion": _STRING, "kind": _STRING, "metadata": struct_type(_OBJECT_META)}
    of.own_fields |= {name: _field(name, inner) for name, inner in head.items()}
    return of


def _type(schema: Object) -> ValueType:
    if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-int-or-string"):
        return ANY
    atomic = schema.get("x-kubernetes-map-type") == "atomic"
    match schema.get("type"):
        case "object" if schema.get("properties"):
            fields = {name: _field(name, _type(part), part) for name, part in schema["properties"].items()}
            return ValueType("struct", own_fields=fields, is_atomic=atomic)
        case "object":
            others = schema.get("additionalProperties")
            return ValueType("map", element=_type(others) if isinstance(others, dict) else ANY, is_atomic=atomic)
        case "array":
            return ValueType(
                "list",
                element=_type(schema.get("items") or {}),
                list_type=schema.get("x-kubernetes-list-type", "atomic"),
                map_keys=tuple(schema.get("x-kubernetes-list-map-keys", ())),
            )
        case "string" | "integer" | "number" | "boolean" as form:
            return ValueType(form)
    return ANY


def _field(name: str, of: ValueType, schema: dict[str, Any] | None = None) -> FieldType:
    default = schema.get("default") if schema else None
    return FieldType(name, of, is_pointer=True, omits_empty=True, omits_zero=False, default=default)
