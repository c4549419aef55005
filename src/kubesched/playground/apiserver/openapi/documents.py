"""The OpenAPI documents: v3, an index and one document for each group and version, and all in one in the older v2.

``index`` answers /openapi/v3, ``document`` /openapi/v3/<path>. Documents change only with the kinds served, and their
hash with them. Their paths have as much as clients read: kubectl looks for the kind of a path, which sorts of patches
it takes, and whether it takes fieldValidation and dryRun.

A custom resource is shown with its definition's own schema and what every object has put in. The older form leaves out
what its readers do not understand: junctors, nullable values, and the insides of what keeps unknown fields.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterable
from typing import Any

from kubesched.playground.apiserver.openapi import schemas
from kubesched.playground.apiserver.served_resource import ServedResource

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
    told = schemas.all_schemas()[_ANY_KIND]["properties"]
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


_NEW, _OLD = "#/components/schemas/", "#/definitions/"


def document_v2(kinds: Iterable[ServedResource]) -> dict[str, Any]:
    """The answer to /openapi/v2."""
    paths: dict[str, Any] = {}
    definitions = {name: _definition(schema) for name, schema in schemas.all_schemas().items()}
    for kind in kinds:
        if kind.is_custom:
            definitions |= custom_schemas(kind, is_v2=True)
        paths |= {path: _path_item(item) for path, item in paths_of(kind).items()}
    bearer = {"description": "Bearer Token authentication", "type": "apiKey", "name": "authorization", "in": "header"}
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "1.36"},
        "paths": dict(sorted(paths.items())),
        "definitions": definitions,
        "securityDefinitions": {"BearerToken": bearer},
        "security": [{"BearerToken": []}],
    }


def _definition(schema: Any) -> Any:
    """A schema in the form of v2: no defaults, plain references, one type where v3 allows two."""
    if isinstance(schema, list):
        return [_definition(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made: dict[str, Any] = {}
    for name, part in schema.items():
        if name == "properties":
            made[name] = {key: _definition(value) for key, value in part.items()}
        elif name == "allOf":
            made |= _definition(part[0])
        elif name == "oneOf":
            made["type"] = "string"
        elif name == "$ref":
            made[name] = part.replace(_NEW, _OLD)
        elif name != "default":
            made[name] = _definition(part)
    return made


def _path_item(item: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, part in item.items():
        made[name] = [_old_parameter(one) for one in part] if name == "parameters" else _old_operation(part)
    return made


def _old_operation(operation: dict[str, Any]) -> dict[str, Any]:
    made = {name: part for name, part in operation.items() if name not in ("requestBody", "responses", "parameters")}
    made["parameters"] = [_old_parameter(one) for one in operation["parameters"]]
    body = operation.get("requestBody")
    if body is not None:
        made["consumes"] = list(body["content"])
        schema = next(iter(body["content"].values()))["schema"]
        made["parameters"].append({"name": "body", "in": "body", "required": True, "schema": _definition(schema)})
    made["responses"] = {code: _answer(answer) for code, answer in operation["responses"].items()}
    return made


def _answer(answer: dict[str, Any]) -> dict[str, Any]:
    made = {"description": answer["description"]}
    if "content" in answer:
        made["schema"] = _definition(next(iter(answer["content"].values()))["schema"])
    return made


def _old_parameter(parameter: dict[str, Any]) -> dict[str, Any]:
    made = {name: part for name, part in parameter.items() if name != "schema"}
    return {**made, **parameter["schema"]}


_INFO = {"title": "Kubernetes", "version": "1.36"}
_BEARER = {
    "BearerToken": {
        "type": "apiKey",
        "description": "Bearer Token authentication",
        "name": "authorization",
        "in": "header",
    }
}


def group_path(resource: ServedResource) -> str:
    """Where the document of a resource's group and version is: "api/v1", "apis/apps/v1"."""
    return f"apis/{resource.group}/{resource.version}" if resource.group else f"api/{resource.version}"


def index(kinds: Iterable[ServedResource]) -> dict[str, Any]:
    """The answer to /openapi/v3."""
    by_path: dict[str, list[ServedResource]] = {}
    for kind in kinds:
        by_path.setdefault(group_path(kind), []).append(kind)
    return {
        "paths": {
            path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={_fingerprint(by_path[path])}"}
            for path in sorted(by_path)
        }
    }


def _fingerprint(kinds: list[ServedResource]) -> str:
    """Of what the document depends on: the names served, the schemas of custom resources, and the table of all others,
    which never changes in a process.
    """
    text = json.dumps([(one.kind, one.plural, sorted(one.subresources), one.verbs, one.custom_schema) for one in kinds])
    return hashlib.sha512(text.encode()).hexdigest().upper()


def document(path: str, kinds: Iterable[ServedResource]) -> dict[str, Any] | None:
    """The document at a path below /openapi/v3/, None if no kind is served there."""
    chosen = [kind for kind in kinds if group_path(kind) == path]
    if not chosen:
        return None
    paths: dict[str, Any] = {}
    for kind in chosen:
        paths |= paths_of(kind)
    schemas = _with_everything_needed(paths, chosen)
    return {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": schemas, "securitySchemes": _BEARER},
    }


def _with_everything_needed(paths: dict[str, Any], kinds: list[ServedResource]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind in kinds:
        if kind.is_custom:
            found |= custom_schemas(kind, is_v2=False)
    waiting = sorted(_references(paths) | _references(found))
    while waiting:
        name = waiting.pop()
        schema = schemas.all_schemas().get(name)
        if name in found or schema is None:
            continue
        found[name] = schema
        waiting += _references(schema)
    return dict(sorted(found.items()))


def _references(node: Any) -> set[str]:
    if isinstance(node, dict):
        found = {node["$ref"].removeprefix("#/components/schemas/")} if isinstance(node.get("$ref"), str) else set()
        return found.union(*(_references(part) for part in node.values()))
    if isinstance(node, list):
        return set().union(*(_references(part) for part in node))
    return set()


_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_LIST = (
    *("allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion"),
    *("resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch"),
)
_DELETE = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_INTEGERS = ("limit", "timeoutSeconds", "gracePeriodSeconds")
_BOOLEANS = ("allowWatchBookmarks", "sendInitialEvents", "watch", "orphanDependents", "force")
_PATCH_TYPES = ("apply-patch+yaml", "json-patch+json", "merge-patch+json", "strategic-merge-patch+json")
_CUSTOM_PATCH_TYPES = _PATCH_TYPES[:-1]
"""Nothing tells how the lists of a custom resource would be merged; kubectl sends what it finds here."""
_TYPES = ("application/json", "application/vnd.kubernetes.protobuf", "application/yaml")
_CUSTOM_TYPES = ("application/json", "application/yaml")


def schema_of(resource: ServedResource) -> str:
    """The name of the schema of the resource's objects; custom ones are named after their group."""
    known = schemas.schema_name(resource.group, resource.version, resource.kind)
    reversed_group = ".".join(reversed(resource.group.split(".")))
    return known or f"{reversed_group}.{resource.version}.{resource.kind}"


def paths_of(resource: ServedResource) -> dict[str, Any]:
    """All paths of one resource, subresources included."""
    root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
    place = f"{root}/namespaces/{{namespace}}" if resource.namespaced else root
    path_names = ("namespace",) if resource.namespaced else ()
    paths: dict[str, Any] = {}
    collection = _collection(resource)
    if collection:
        paths[f"{place}/{resource.plural}"] = {**collection, "parameters": _path_parameters(*path_names)}
    if resource.namespaced and "list" in resource.verbs:
        everywhere = {"get": _operation(resource, "list", "list", _LIST, schema_of(resource) + "List")}
        paths[f"{root}/{resource.plural}"] = {**everywhere, "parameters": _path_parameters()}
    single = _single(resource)
    if single:
        paths[f"{place}/{resource.plural}/{{name}}"] = {**single, "parameters": _path_parameters("name", *path_names)}
    for subresource in sorted(resource.subresources & {"status", "scale", "ephemeralcontainers", "resize"}):
        operations = _readable_and_writable(resource, _subresource_schema(resource, subresource))
        where = f"{place}/{resource.plural}/{{name}}/{subresource}"
        paths[where] = {**operations, "parameters": _path_parameters("name", *path_names)}
    return paths


def _subresource_schema(resource: ServedResource, subresource: str) -> str:
    return "io.k8s.api.autoscaling.v1.Scale" if subresource == "scale" else schema_of(resource)


def _collection(resource: ServedResource) -> dict[str, Any]:
    operations: dict[str, Any] = {}
    if "list" in resource.verbs:
        operations["get"] = _operation(resource, "list", "list", _LIST, schema_of(resource) + "List")
    if "create" in resource.verbs:
        operations["post"] = _operation(resource, "create", "post", _WRITE, schema_of(resource), has_body=True)
    if "deletecollection" in resource.verbs:
        parameters = tuple(dict.fromkeys((*_LIST, *_DELETE)))
        operations["delete"] = _operation(
            resource, "delete collection", "deletecollection", parameters, _META + "Status"
        )
    return operations


def _single(resource: ServedResource) -> dict[str, Any]:
    operations = _readable_and_writable(resource, schema_of(resource))
    if "delete" in resource.verbs:
        operations["delete"] = _operation(resource, "delete", "delete", _DELETE, _META + "Status")
    return operations


def _readable_and_writable(resource: ServedResource, schema: str) -> dict[str, Any]:
    operations: dict[str, Any] = {}
    if "get" in resource.verbs:
        operations["get"] = _operation(resource, "read", "get", (), schema)
    if "update" in resource.verbs:
        operations["put"] = _operation(resource, "replace", "put", _WRITE, schema, has_body=True)
    if "patch" in resource.verbs:
        patch = _operation(resource, "partially update", "patch", (*_WRITE, "force"), schema)
        sorts = _CUSTOM_PATCH_TYPES if resource.is_custom else _PATCH_TYPES
        body = {f"application/{sort}": {"schema": _reference(_META + "Patch")} for sort in sorts}
        operations["patch"] = {**patch, "requestBody": {"content": body, "required": True}}
    return operations


def _operation(
    resource: ServedResource, verb: str, action: str, parameters: tuple[str, ...], schema: str, has_body: bool = False
) -> dict[str, Any]:
    medias = _CUSTOM_TYPES if resource.is_custom else _TYPES
    answer = {"content": {media: {"schema": _reference(schema)} for media in medias}}
    operation: dict[str, Any] = {
        "tags": [f"{(resource.group or 'core').partition('.')[0]}_{resource.version}"],
        "description": f"{verb} {resource.kind}",
        "operationId": _operation_id(resource, action, schema),
        "parameters": [_parameter(name) for name in parameters],
        "responses": {"200": {"description": "OK", **answer}, "401": {"description": "Unauthorized"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {
            "group": resource.group,
            "version": resource.version,
            "kind": resource.kind,
        },
    }
    if has_body:
        operation["requestBody"] = {"content": {"*/*": {"schema": _reference(schema)}}, "required": True}
    return operation


def _operation_id(resource: ServedResource, action: str, schema: str) -> str:
    group = (resource.group or "core").partition(".")[0].capitalize()
    scope = "Namespaced" if resource.namespaced else ""
    kind = resource.kind if schema.endswith((resource.kind, "Status", "List")) else resource.kind + "Scale"
    return f"{action}{group}{resource.version.capitalize()}{scope}{kind}"


def _parameter(name: str) -> dict[str, Any]:
    form = "integer" if name in _INTEGERS else "boolean" if name in _BOOLEANS else "string"
    return {"name": name, "in": "query", "schema": {"type": form, "uniqueItems": True}}


def _path_parameters(*names: str) -> list[dict[str, Any]]:
    schema = {"type": "string", "uniqueItems": True}
    fixed = [{"name": name, "in": "path", "required": True, "schema": schema} for name in names]
    return [*fixed, {"name": "pretty", "in": "query", "schema": schema}]


def _reference(schema: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{schema}"}
