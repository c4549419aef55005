"""The OpenAPI v3 documents: an index, and one document for each group and version with the schemas it needs.

``index`` answers /openapi/v3, ``document`` /openapi/v3/<path>. Documents change only with the kinds served, and their
hash with them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from kubesched.playground.apiserver.kinds.kind import ServedResource
from kubesched.playground.apiserver.openapi import schema_table
from kubesched.playground.apiserver.openapi.custom_documents import custom_schemas
from kubesched.playground.apiserver.openapi.operations import paths_of

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
        schema = schema_table.schemas().get(name)
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
