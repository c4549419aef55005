"""The OpenAPI v2 document: all schemas in the older form, for clients that still ask for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubesched.playground.apiserver.kinds.kind import ServedResource
from kubesched.playground.apiserver.openapi import schema_table
from kubesched.playground.apiserver.openapi.custom_documents import custom_schemas
from kubesched.playground.apiserver.openapi.operations import paths_of

_NEW, _OLD = "#/components/schemas/", "#/definitions/"


def document(kinds: Iterable[ServedResource]) -> dict[str, Any]:
    """The answer to /openapi/v2."""
    paths: dict[str, Any] = {}
    definitions = {name: _definition(schema) for name, schema in schema_table.schemas().items()}
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
        made[name] = [_parameter(one) for one in part] if name == "parameters" else _operation(part)
    return made


def _operation(operation: dict[str, Any]) -> dict[str, Any]:
    made = {name: part for name, part in operation.items() if name not in ("requestBody", "responses", "parameters")}
    made["parameters"] = [_parameter(one) for one in operation["parameters"]]
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


def _parameter(parameter: dict[str, Any]) -> dict[str, Any]:
    made = {name: part for name, part in parameter.items() if name != "schema"}
    return {**made, **parameter["schema"]}
