"""The paths of an OpenAPI document.

Which operations each served resource has, with parameters and the schema of its objects.

As much as clients read: kubectl looks for the kind of a path, which sorts of patches it takes, and whether it takes
fieldValidation and dryRun.
"""

from __future__ import annotations

from typing import Any

from kubesched.playground.apiserver.openapi import schemas
from kubesched.playground.apiserver.served_resource import ServedResource

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
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
