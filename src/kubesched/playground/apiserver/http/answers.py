"""Stored objects into answers: the object, a list, metadata only, a table; as JSON or YAML.

JSON of plain objects is put together from stored bytes without decoding them. ``app.py`` chooses by ``negotiation.py``.
"""

from __future__ import annotations

import unicodedata
from typing import Any

import msgspec
from aiohttp import web

from kubesched.playground.apiserver.errors import StatusError, unclassified
from kubesched.playground.apiserver.http import tables
from kubesched.playground.apiserver.http.negotiation import JSON, PROTOBUF, YAML, Wanted, choose
from kubesched.playground.apiserver.http.protobuf.encoding import encode_envelope
from kubesched.playground.apiserver.kinds.kind import ServedResource
from kubesched.playground.apiserver.storage.store import Stored
from kubesched.playground.apiserver.verbs import writing
from kubesched.playground.apiserver.verbs.read import ListPage
from kubesched.playground.apiserver.yaml_text import dump_yaml

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
        return _encode(tables.table(resource, [obj], metadata, include, wanted.version))
    if wanted.transform == "PartialObjectMetadataList":
        raise _not_in_this_form(f"{wanted.transform}, but the requested object is not a list", resource, resource.kind)
    return _encode(tables.partial_metadata(obj, wanted.version))


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
        return _encode(tables.table(resource, objects, metadata, include, wanted.version))
    items_json = [tables.partial_metadata(obj, wanted.version) for obj in objects]
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
