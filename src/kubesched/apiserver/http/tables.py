"""Objects as the tables that kubectl prints: columns of the kind, one row per object.

Rows carry the object's metadata, the whole object or nothing, as includeObject asks. The first event of a watch
brings the columns, the later ones do not. ``answers.py`` calls this.
"""

from __future__ import annotations

from typing import Any

from kubesched.apiserver.errors import StatusError
from kubesched.apiserver.kinds.kind import Object, ServedResource, TableColumn

_PHASES_AT_THE_END = {
    "Succeeded": {"reason": "Succeeded", "message": "The pod has completed successfully."},
    "Failed": {"reason": "Failed", "message": "The pod failed."},
}
_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
_NAME_DESCRIPTION = (
    "Name must be unique within a namespace. Is required when creating resources, although some "
    "resources may allow a client to "
    "request the generation of an appropriate name automatically. Name is primarily intended for "
    "creation idempotence and "
    "configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
_CREATED_DESCRIPTION = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It "
    "is not guaranteed to be set in "
    "happens-before order across separate operations. Clients may not set this value. It is "
    "represented in RFC3339 form and is in "
    "UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)
_DEFAULT_COLUMNS = (
    TableColumn("Name", lambda obj: obj["metadata"].get("name", ""), format="name", description=_NAME_DESCRIPTION),
    TableColumn(
        "Created At",
        lambda obj: obj["metadata"].get("creationTimestamp"),
        type="date",
        description=_CREATED_DESCRIPTION,
    ),
)


def check_include(include: str) -> str:
    """The includeObject of the query, checked."""
    if include not in ("", "None", "Metadata", "Object"):
        message = f"Invalid value: \"{include}\": must be one of '', 'None', 'Metadata', 'Object'"
        raise StatusError(400, "BadRequest", f"unrecognized includeObject value: {message}")
    return include or "Metadata"


def columns_of(resource: ServedResource) -> tuple[TableColumn, ...]:
    return resource.columns or _DEFAULT_COLUMNS


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


def table(
    resource: ServedResource, objects: list[Object], metadata: dict[str, Any], include: str, version: str
) -> dict[str, Any]:
    """A list as a table."""
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": metadata,
        "columnDefinitions": definitions(resource),
        "rows": [row(resource, obj, include, version) for obj in objects],
    }
