"""The schemas of custom resources, as the OpenAPI documents show them: kubectl explains and validates by these.

The definition's own schema with what every object has put in. The older form (v2) leaves out what its readers do not
understand: junctors, nullable values, and the insides of what keeps unknown fields.
"""

from __future__ import annotations

import copy
from typing import Any

from kubesched.playground.apiserver.kinds.kind import ServedResource
from kubesched.playground.apiserver.openapi import schema_table
from kubesched.playground.apiserver.openapi.operations import schema_of

Schema = dict[str, Any]

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_KEEP = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_ANY_KIND = "io.k8s.api.core.v1.Namespace"
"""A kind whose first three properties are told as those of all kinds."""
_JUNCTORS = ("allOf", "anyOf", "oneOf", "not")


def custom_schemas(kind: ServedResource, is_v2: bool) -> dict[str, Schema]:
    """The schemas of a custom resource and of its list, by name."""
    name = schema_of(kind)
    prefix = "#/definitions/" if is_v2 else "#/components/schemas/"
    one = _object_schema(copy.deepcopy(kind.custom_schema), prefix, is_v2)
    one["x-kubernetes-group-version-kind"] = [{"group": kind.group, "version": kind.version, "kind": kind.kind}]
    if kind.selectable_paths:
        one["x-kubernetes-selectable-fields"] = [{"fieldPath": path.lstrip(".")} for path in kind.selectable_paths]
    items = {
        "description": f"List of {kind.plural}. More info: "
        "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md",
        "type": "array",
        "items": {"$ref": prefix + name} if is_v2 else {"allOf": [{"$ref": prefix + name}], "default": {}},
    }
    head = _head(prefix, is_v2, "ListMeta")
    many = {
        "description": f"{kind.list_kind} is a list of {kind.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {"apiVersion": head["apiVersion"], "items": items, **head},
        "x-kubernetes-group-version-kind": [{"group": kind.group, "version": kind.version, "kind": kind.list_kind}],
    }
    return {name: one, f"{name}List": many}


def _object_schema(schema: Schema, prefix: str, is_v2: bool) -> Schema:
    if not schema or (is_v2 and schema.get(_KEEP)):
        return {"type": "object"}  # more would be taken for all that there may be
    if is_v2:
        _simplify(schema)
    _embed(schema, prefix, is_v2)
    schema["properties"] = {**(schema.get("properties") or {}), **_head(prefix, is_v2, "ObjectMeta")}
    return schema


def _head(prefix: str, is_v2: bool, metadata: str) -> Schema:
    """What every object begins with."""
    told = schema_table.schemas()[_ANY_KIND]["properties"]
    reference: Schema = {"$ref": f"{prefix}{_META}{metadata}"}
    described = {"description": told["metadata"]["description"]}
    whole = {**reference, **described} if is_v2 else {"allOf": [reference], **described}
    texts = {name: {"description": told[name]["description"], "type": "string"} for name in ("apiVersion", "kind")}
    return {**texts, "metadata": whole}


def _embed(schema: Schema, prefix: str, is_v2: bool) -> None:
    """Objects within the object get what every object has, too."""
    for part in _parts(schema):
        _embed(part, prefix, is_v2)
    if schema.get(_EMBEDDED) and not (is_v2 and schema.get(_KEEP)):
        schema["properties"] = {**(schema.get("properties") or {}), **_head(prefix, is_v2, "ObjectMeta")}
        needed = schema.get("required") or []
        schema["required"] = [*needed, *(name for name in ("kind", "apiVersion") if name not in needed)]


def _simplify(schema: Schema) -> None:
    for name in _JUNCTORS:
        schema.pop(name, None)
    is_nullable = schema.pop("nullable", False)
    is_untyped = is_nullable or "type" not in schema
    if is_nullable:
        schema.pop("type", None)
    if is_untyped or schema.get(_KEEP):
        schema.pop("items", None)
        schema.pop("properties", None)
    if "items" not in schema and schema.get("type") == "array":
        del schema["type"]
    if schema.get(_KEEP) and schema.get("type") == "object":
        del schema["type"]
    nullable = {name for name, part in (schema.get("properties") or {}).items() if part.get("nullable")}
    needed = [name for name in schema.get("required") or () if name not in nullable]
    if "required" in schema and not needed:
        del schema["required"]
    elif needed:
        schema["required"] = needed
    for part in _parts(schema):
        _simplify(part)


def _parts(schema: Schema) -> list[Schema]:
    inner = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return [part for part in inner if isinstance(part, dict)]
