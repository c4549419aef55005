"""Stored objects into answers, in the form that the client wants: JSON, YAML, protobuf; whole, metadata, or a table.

Accept is read as the real server does, with its refusals, but for protobuf: who takes JSON, too, gets JSON, which is at
hand. JSON of plain objects is put together from stored bytes without decoding them.

Tables are what kubectl prints: columns of the kind, one row per object. Rows carry the object's metadata, the whole
object or nothing, as includeObject asks. The first event of a watch brings the columns, the later ones do not.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
from aiohttp import web

from kubesched.playground.apiserver.body_text import dump_yaml
from kubesched.playground.apiserver.errors import StatusError, unclassified
from kubesched.playground.apiserver.http.protobuf import encode_envelope
from kubesched.playground.apiserver.kinds.serving import DEFAULT_COLUMNS
from kubesched.playground.apiserver.served_resource import Object, ServedResource, TableColumn
from kubesched.playground.apiserver.storage.store import Stored
from kubesched.playground.apiserver.verbs import writing
from kubesched.playground.apiserver.verbs.read import ListPage

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
MEDIA_TYPES = (JSON, YAML, PROTOBUF)

_STREAMS = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")
TRANSFORMS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The chosen form; ``transform`` is "" for the object as it is, ``version`` that of meta.k8s.io for a transform."""

    media_type: str = JSON
    transform: str = ""
    version: str = "v1"


def not_acceptable(is_collection: bool) -> StatusError:
    offered = ", ".join(MEDIA_TYPES + _STREAMS if is_collection else MEDIA_TYPES)
    message = f"406: Not Acceptable\n\nAvailable representations: {offered}"
    return StatusError(406, "NotAcceptable", message, {})


def only_accepted(offered: tuple[str, ...] = MEDIA_TYPES) -> StatusError:
    return StatusError(406, "NotAcceptable", f"only the following media types are accepted: {', '.join(offered)}")


@lru_cache(maxsize=256)
def choose(accept: str, transforms: tuple[str, ...] = TRANSFORMS, is_collection: bool = True) -> Wanted:
    """The first clause that can be served; protobuf only if no other can."""
    if not accept.strip():
        return Wanted()
    known, takes_protobuf = False, False
    for media_type, parameters in accepted(accept):
        if media_type == "*/*":
            media_type = JSON
        if media_type not in MEDIA_TYPES:
            continue
        known = True
        wanted = _as_wanted(media_type, parameters, transforms)
        if wanted is not None and media_type != PROTOBUF:
            return wanted
        takes_protobuf = takes_protobuf or (wanted is not None and not wanted.transform)
    if takes_protobuf:
        return Wanted(PROTOBUF)
    raise only_accepted() if known else not_acceptable(is_collection)


def _as_wanted(media_type: str, parameters: dict[str, str], transforms: tuple[str, ...]) -> Wanted | None:
    """None when the clause asks for a transform that does not exist here."""
    transform = parameters.get("as", "")
    if not transform:
        return Wanted(media_type)
    group, version = parameters.get("g", ""), parameters.get("v", "")
    if transform not in transforms:
        return None
    if transform == "APIGroupDiscoveryList":
        return Wanted(media_type, transform, version) if version == "v2" else None
    if group != "meta.k8s.io" or version not in ("v1", "v1beta1"):
        return None
    return Wanted(media_type, transform, version)


def accepted(accept: str) -> list[tuple[str, dict[str, str]]]:
    """Media types with their parameters, by falling quality."""
    found: list[tuple[float, int, str, dict[str, str]]] = []
    for at, clause in enumerate(accept.split(",")):
        media_type, *rest = (part.strip() for part in clause.split(";"))
        parameters = dict(_parameter(part) for part in rest if part)
        found.append((-_quality(parameters.pop("q", "1")), at, media_type.lower(), parameters))
    return [(media_type, parameters) for _, _, media_type, parameters in sorted(found, key=lambda f: f[:2])]


def _parameter(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name.strip().lower(), value.strip().strip('"')


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0


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


def column_definitions(resource: ServedResource) -> list[dict[str, Any]]:
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


def table_row(resource: ServedResource, obj: Object, include: str, version: str) -> dict[str, Any]:
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
        "columnDefinitions": column_definitions(resource),
        "rows": [table_row(resource, obj, include, version) for obj in objects] or _no_rows(resource),
    }


_MOST_WARNING_LETTERS, _LONGEST_CUT_WARNING = 4096, 256  # as kube-apiserver bounds them

_encode = msgspec.json.Encoder().encode


def raw_object(resource: ServedResource, stored: Stored) -> bytes:
    """The object as JSON with kind and apiVersion, in this resource's version."""
    raw = stored.raw if resource.from_stored is None else _encode(writing.load(resource, stored))
    head = f'{{"kind":"{resource.kind}","apiVersion":"{resource.api_version}"'.encode()
    return head + b"," + raw[1:] if len(raw) > 2 else head + b"}"


def raw_item(resource: ServedResource, stored: Stored) -> bytes:
    """The object as an item of a list: only custom resources repeat their kind there."""
    if resource.is_custom:
        return raw_object(resource, stored)
    return stored.raw if resource.from_stored is None else _encode(writing.load(resource, stored))


def object_body(resource: ServedResource, stored: Stored, wanted: Wanted, include: str) -> bytes:
    """One object in the wanted form, as JSON."""
    if not wanted.transform:
        return raw_object(resource, stored)
    obj = writing.load(resource, stored)
    if wanted.transform == "Table":
        metadata = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
        return _encode(table(resource, [obj], metadata, include, wanted.version))
    if wanted.transform == "PartialObjectMetadataList":
        raise _not_in_this_form(f"{wanted.transform}, but the requested object is not a list", resource, resource.kind)
    return _encode(partial_metadata(obj, wanted.version))


def list_metadata(page: ListPage, is_custom: bool) -> dict[str, Any]:
    """Of a list; those of custom resources always have a continue token, if only an empty one."""
    metadata: dict[str, Any] = {"resourceVersion": str(page.revision)}
    if page.token or is_custom:
        metadata["continue"] = page.token
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    return metadata


def list_body(resource: ServedResource, page: ListPage, wanted: Wanted, include: str) -> bytes:
    """A list in the wanted form, as JSON."""
    metadata = list_metadata(page, resource.is_custom and not wanted.transform)
    if not wanted.transform:
        head = f'{{"kind":"{resource.list_kind}","apiVersion":"{resource.api_version}","metadata":'.encode()
        items = b",".join([raw_item(resource, stored) for stored in page.items])
        return b"".join((head, _encode(metadata), b',"items":[', items, b"]}\n"))
    if wanted.transform == "PartialObjectMetadata":
        raise _not_in_this_form(f"{wanted.transform}, but the requested object is a list", resource, resource.list_kind)
    objects = [writing.load(resource, stored) for stored in page.items]
    if wanted.transform == "Table":
        return _encode(table(resource, objects, metadata, include, wanted.version))
    items_json = [partial_metadata(obj, wanted.version) for obj in objects]
    kind = {"kind": "PartialObjectMetadataList", "apiVersion": f"meta.k8s.io/{wanted.version}"}
    return _encode({**kind, "metadata": metadata, "items": items_json or None})


def _not_in_this_form(what: str, resource: ServedResource, kind: str) -> StatusError:
    if resource.is_custom and kind == resource.kind:
        return unclassified("content is not a list")
    group = resource.stored_as.partition(".")[2] if resource.stored_as else resource.group
    package = group.partition(".")[0] or "core"
    if resource.is_custom:
        package, kind = "unstructured", "UnstructuredList"
    return StatusError(406, "NotAcceptable", f"you requested {what} (*{package}.{kind})")


def respond(body: bytes, wanted: Wanted, status: int = 200, warnings: list[str] | None = None) -> web.Response:
    """The response for a JSON body, turned into YAML or protobuf where wanted."""
    if wanted.media_type == YAML:
        body = dump_yaml(msgspec.json.decode(body))
    elif wanted.media_type == PROTOBUF:
        body = encode_envelope(msgspec.json.decode(body))
    response = web.Response(body=body, status=status, content_type=wanted.media_type)
    add_warnings(response, warnings or [])
    return response


def add_warnings(response: web.StreamResponse, warnings: list[str]) -> None:
    """A header for each, within bounds: when all together are too long each is cut, and the last ones are left out."""
    texts = [text for text in dict.fromkeys(warnings) if text]
    written = 0
    if sum(map(len, texts)) > _MOST_WARNING_LETTERS:
        texts = [text[:_LONGEST_CUT_WARNING] for text in texts]
    for text in texts:
        if written >= _MOST_WARNING_LETTERS:
            break
        if any(unicodedata.category(letter) == "Cc" for letter in text):
            continue  # no header can hold it
        written += len(text)
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{quoted}"')


def error_response(error: StatusError, accept: str, warnings: list[str] | None = None) -> web.Response:
    """A refusal in the form that the client reads."""
    try:
        media_type = choose(accept).media_type
    except StatusError:
        media_type = JSON
    response = respond(_encode(error.status()), Wanted(media_type), error.code, warnings)
    if (error.details or {}).get("retryAfterSeconds"):
        response.headers["Retry-After"] = str((error.details or {})["retryAfterSeconds"])
    return response
