"""The schema of a custom resource at work: it drops unknown fields and sets defaults.

Structural schemas as definitions carry them. What keeps unknown fields keeps them, but what it names itself is looked
at all the same; objects within the object keep what every object has. Read ``custom_values.py`` for what is wrong with
values, ``custom_rules.py`` for rules in CEL.

Server-side apply walks objects by the type that the schema's own words give: ``x-kubernetes-list-type``,
``x-kubernetes-list-map-keys``, ``x-kubernetes-map-type``. What keeps unknown fields is walked without a schema.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from kubesched.playground.apiserver.openapi.schemas import ANY, FieldType, ValueType, struct_type
from kubesched.playground.apiserver.served_resource import Object

KEEP = "x-kubernetes-preserve-unknown-fields"
EMBEDDED = "x-kubernetes-embedded-resource"
EVERY_OBJECT_HAS = ("apiVersion", "kind", "metadata")
_KEEPS_ALL: Object = {KEEP: True}


def shape(obj: Object, schema: Object) -> list[str]:
    """Drops what the schema does not know and sets its defaults, in place; returns the paths of what was dropped."""
    unknown: list[str] = []
    _prune(obj, schema, "", unknown, is_object=True)
    set_defaults(obj, schema)
    return unknown


def from_storage(schema: Object) -> Callable[[Object], Object] | None:
    """What is done to stored objects that are read: the schema may be another one than when they were written."""
    if not schema or schema == {"type": "object", KEEP: True}:
        return None

    def read(obj: Object) -> Object:
        shape(obj, schema)
        return obj

    return read


def _prune(value: Any, schema: Object, path: str, unknown: list[str], *, is_object: bool) -> None:
    if isinstance(value, list):
        items = schema.get("items")
        for position, item in enumerate(value if isinstance(items, dict) else ()):
            _prune(item, items or {}, f"{path}[{position}]", unknown, is_object=bool((items or {}).get(EMBEDDED)))
    if not isinstance(value, dict):
        return
    properties = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    keeps = schema.get(KEEP) or others is True or not schema
    for name in list(value):
        inner = f"{path}.{name}" if path else name
        part = properties.get(name, others if isinstance(others, dict) else None)
        if is_object and name in EVERY_OBJECT_HAS:
            continue
        if part is not None:
            _prune(value[name], part, inner, unknown, is_object=bool(part.get(EMBEDDED)))
        elif not keeps:
            del value[name]
            unknown.append(inner)


def set_defaults(value: Any, schema: Object) -> None:
    """Fields that are missing, or null where they must not be, become what the schema says."""
    if isinstance(value, list):
        for item in value if isinstance(schema.get("items"), dict) else ():
            set_defaults(item, schema["items"])
    if not isinstance(value, dict):
        return
    properties = schema.get("properties") or {}
    for name, part in properties.items():
        is_missing = name not in value or (value[name] is None and not part.get("nullable"))
        if "default" in part and is_missing:
            value[name] = copy.deepcopy(part["default"])
        if name in value:
            set_defaults(value[name], part)
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        for name in value:
            if name not in properties:
                if value[name] is None and "default" in others and not others.get("nullable"):
                    value[name] = copy.deepcopy(others["default"])
                set_defaults(value[name], others)


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
