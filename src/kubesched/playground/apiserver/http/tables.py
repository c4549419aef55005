"""Objects as the tables that kubectl prints: columns of the kind, one row per object.

Rows carry the object's metadata, the whole object or nothing, as includeObject asks. The first event of a watch
brings the columns, the later ones do not. ``answers.py`` calls this.
"""

from __future__ import annotations

from typing import Any

from kubesched.playground.apiserver.errors import StatusError
from kubesched.playground.apiserver.kinds.kind import Object, ServedResource, TableColumn
from kubesched.playground.apiserver.kinds.table_columns import DEFAULT_COLUMNS

_PHASES_AT_THE_END = {
    "Succeeded": {"reason": "Succeeded", "message": "The pod has completed successfully."},
    "Failed": {"reason": "Failed", "message": "The pod failed."},
}
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def check_include(include: str) -> str:
    """The includeObject of the query, checked."""
    if include not in ("", "None", "Metadata", "Object"):
        message = f"Invalid value: \"{include}\": must be one of '', 'None', 'Metadata', 'Object'"
        raise StatusError(400, "BadRequest", f"unrecognized includeObject value: {message}")
    return include or "Metadata"


def columns_of(resource: ServedResource) -> tuple[TableColumn, ...]:
    return resource.columns or DEFAULT_COLUMNS


def definitions(resource: ServedResource) -> list[dict[str, Any]]:
    return [
        {
            "name": column.name,
            "type": column.type,
            "format": column.format,
            "description": column.description,
            "priority": column.priority,
        }
        for column in columns_of(resource)
        if column.name
    ]


def row(resource: ServedResource, obj: Object, include: str, version: str) -> dict[str, Any]:
    """One object as a row."""
    shown: dict[str, Any] = {"cells": [column.value(obj) for column in columns_of(resource)]}
    ended = _PHASES_AT_THE_END.get(obj.get("status", {}).get("phase", "")) if resource.kind == "Pod" else None
    if ended is not None:
        shown["conditions"] = [{"type": "Completed", "status": "True", **ended}]
    return {**shown, "object": _row_object(resource, obj, include, version)}


def _row_object(resource: ServedResource, obj: Object, include: str, version: str) -> dict[str, Any] | None:
    if include == "None":
        return None
    if include == "Object":
        return {"kind": resource.kind, "apiVersion": resource.api_version, **obj}
    return partial_metadata(obj, version)


def partial_metadata(obj: Object, version: str) -> dict[str, Any]:
    """The object's metadata alone."""
    metadata = _internal_metadata(obj["metadata"])
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": metadata}


def _internal_metadata(metadata: Object) -> Object:
    """Such answers are made from the internal form, which keeps a daemon set's old template generation elsewhere."""
    annotations = metadata.get("annotations", {})
    if _TEMPLATE_GENERATION not in annotations:
        return metadata
    rest = {name: value for name, value in annotations.items() if name != _TEMPLATE_GENERATION}
    shown = {name: value for name, value in metadata.items() if name != "annotations"}
    return {**shown, "annotations": rest} if rest else shown


def _no_rows(resource: ServedResource) -> list[Any] | None:
    """Kinds for which the real server has no printer have no list of rows when it would be empty."""
    return None if columns_of(resource)[-1].name == "Created At" else []


def table(
    resource: ServedResource, objects: list[Object], metadata: dict[str, Any], include: str, version: str
) -> dict[str, Any]:
    """A list as a table."""
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": metadata,
        "columnDefinitions": definitions(resource),
        "rows": [row(resource, obj, include, version) for obj in objects] or _no_rows(resource),
    }
