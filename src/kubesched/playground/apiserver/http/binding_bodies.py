"""Bindings in the form that schedulers send, read without the schema: they are the most frequent writes.

Gives None for anything else than a plain Binding; ``exchange.py`` then reads the body like any other and finds the
words for what is wrong with it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kubesched.playground.apiserver.http.negotiation import JSON, PROTOBUF
from kubesched.playground.apiserver.http.protobuf.envelope import MAGIC
from kubesched.playground.apiserver.http.protobuf.wire import ProtobufError, fields_of
from kubesched.playground.apiserver.kinds.kind import Object


class _BoundMetadata(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815 - as JSON writes it
    creationTimestamp: None = None  # noqa: N815
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class _BoundTarget(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    kind: str = ""
    name: str = ""
    apiVersion: str = ""  # noqa: N815


class _PlainBinding(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    kind: str
    apiVersion: str  # noqa: N815
    metadata: _BoundMetadata
    target: _BoundTarget


_decode = msgspec.json.Decoder(_PlainBinding).decode

# numbers of the fields in protobuf
_METADATA_FIELDS = {1: "name", 3: "namespace", 5: "uid", 6: "resourceVersion"}
_PLAIN_METADATA = frozenset({*_METADATA_FIELDS, 2, 4, 7, 8})  # and those that client-go sends although they are empty


def plain_binding(data: bytes, content_type: str) -> Object | None:
    """Metadata and target of a Binding."""
    if content_type == JSON:
        return _from_json(data)
    return _from_protobuf(data) if content_type == PROTOBUF else None


def _from_json(data: bytes) -> Object | None:
    try:
        read = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    if read.kind != "Binding" or read.apiVersion != "v1":
        return None
    given = read.metadata
    metadata: dict[str, Any] = {
        "name": given.name,
        "namespace": given.namespace,
        "uid": given.uid,
        "resourceVersion": given.resourceVersion,
        "labels": given.labels,
        "annotations": given.annotations,
    }
    return {"metadata": metadata, "target": {"kind": read.target.kind, "name": read.target.name}}


def _from_protobuf(data: bytes) -> Object | None:
    try:
        return _read_envelope(data)
    except (ProtobufError, UnicodeDecodeError, AttributeError, TypeError):  # the last two: a number in place of a text
        return None


def _read_envelope(data: bytes) -> Object | None:
    if not data.startswith(MAGIC):
        return None
    outer: dict[int, Any] = dict(fields_of(data[len(MAGIC) :]))
    names: dict[int, Any] = dict(fields_of(outer.get(1, b"")))
    if (names.get(1), names.get(2)) != (b"v1", b"Binding"):
        return None
    binding: dict[int, Any] = dict(fields_of(outer.get(2, b"")))
    metadata: dict[int, Any] = dict(fields_of(binding.get(1, b"")))
    target: dict[int, Any] = dict(fields_of(binding.get(2, b"")))
    if not _PLAIN_METADATA.issuperset(metadata):
        return None
    return {
        "metadata": {name: metadata.get(number, b"").decode() for number, name in _METADATA_FIELDS.items()},
        "target": {"kind": target.get(1, b"").decode(), "name": target.get(3, b"").decode()},
    }
