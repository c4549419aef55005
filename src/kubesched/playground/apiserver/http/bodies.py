"""A request's body into a plain object: JSON, YAML or protobuf, with the real server's messages.

Also finds fields that are given twice. What the object means is for ``verbs/writing.py`` and the kind's schema.

Bindings in the form that schedulers send are the most frequent writes, and are read without the schema; whatever else a
body is, it is read like any other, which finds the words for what is wrong with it.

Large bodies are decoded beside the event loop, so that nobody else waits for them: one thread for YAML, which takes a
thousand times as long for each byte, and one for all else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar

import msgspec

from kubesched.playground.apiserver.body_text import (
    NOTHING_REPEATED,
    Repeated,
    YamlTextError,
    load_yaml,
    read_json,
    repeated_in_json,
    repeated_in_yaml,
)
from kubesched.playground.apiserver.errors import bad_request, unsupported_media_type
from kubesched.playground.apiserver.go_text import json_kind
from kubesched.playground.apiserver.http.answers import JSON, MEDIA_TYPES, PROTOBUF, YAML
from kubesched.playground.apiserver.http.protobuf import MAGIC, ProtobufError, decode_envelope, fields_of
from kubesched.playground.apiserver.served_resource import Object


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


P = ParamSpec("P")
R = TypeVar("R")

LARGE_YAML_BYTES = 16 * 1024
LARGE_BYTES = 256 * 1024
"""From here on decoding takes longer than a change of threads."""

_yaml = ThreadPoolExecutor(1, "decoding YAML")
_others = ThreadPoolExecutor(1, "decoding")


async def decoded(data: bytes, content_type: str, decode: Callable[P, R], *arguments: P.args, **more: P.kwargs) -> R:
    """What ``decode`` makes of these arguments, in which ``data`` is."""
    is_yaml = "yaml" in content_type and data.lstrip()[:1] != b"{"
    if len(data) < (LARGE_YAML_BYTES if is_yaml else LARGE_BYTES):
        return decode(*arguments, **more)
    executor = _yaml if "yaml" in content_type else _others
    return await asyncio.get_running_loop().run_in_executor(executor, lambda: decode(*arguments, **more))


_SHOWN_BYTES = 30
_TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


@dataclass(slots=True)
class Body:
    """What was sent: the object without its kind and apiVersion, those two, and what is given twice."""

    obj: Object
    kind: str = ""
    api_version: str = ""
    repeated: Repeated = NOTHING_REPEATED


def read_body(data: bytes, content_type: str, kind: str, find_duplicates: bool = True) -> Body:
    """The body of a create or update; ``kind`` is what it must be, for messages ("" for short messages)."""
    media_type = content_type.partition(";")[0].strip().lower() or JSON
    if media_type not in MEDIA_TYPES:
        raise unsupported_media_type(MEDIA_TYPES)
    try:
        obj = _parse(data, media_type)
    except (ValueError, RecursionError) as error:
        raise _unrecognized(kind, str(error), data) from None
    repeated = NOTHING_REPEATED
    if find_duplicates and media_type == JSON:
        repeated = repeated_in_json(data)
    elif find_duplicates and media_type == YAML:
        repeated = repeated_in_yaml(data)
    return _as_body(obj, repeated, kind, data)


def _parse(data: bytes, media_type: str) -> Any:
    if media_type == PROTOBUF:
        try:
            return decode_envelope(data)
        except ProtobufError as error:
            raise ValueError(str(error)) from None
    if media_type == YAML:
        try:
            return _with_sorted_names(load_yaml(data))
        except YamlTextError as error:
            raise ValueError(str(error).removeprefix("error converting YAML to JSON: ")) from None
    try:
        return read_json(data)
    except ValueError as error:
        raise ValueError(f"couldn't get version/kind; json parse error: {error}") from None


def _with_sorted_names(value: Any) -> Any:
    """Told of in this order: YAML becomes JSON with sorted names before anybody looks at it."""
    if isinstance(value, dict):
        return {name: _with_sorted_names(value[name]) for name in sorted(value)}
    return [_with_sorted_names(item) for item in value] if isinstance(value, list) else value


def _as_body(obj: Any, repeated: Repeated, kind: str, data: bytes) -> Body:
    if not isinstance(obj, dict):
        if obj is not None:
            why = f"json: cannot unmarshal {json_kind(obj)} into Go value of type {_TYPE_META}"
            raise _unrecognized(kind, f"couldn't get version/kind; json parse error: {why}", data)
        obj = {}
    found_kind, version = obj.pop("kind", None) or "", obj.pop("apiVersion", None) or ""
    for name, value in (("Kind", found_kind), ("APIVersion", version)):
        if not isinstance(value, str):
            json_name = name[:1].lower() + name[1:] if name == "Kind" else "apiVersion"
            why = f"json: cannot unmarshal {json_kind(value)} into Go struct field .{json_name} of type string"
            raise _unrecognized(kind, f"couldn't get version/kind; json parse error: {why}", data)
    return Body(obj, found_kind, version, repeated)


def _unrecognized(kind: str, why: str, data: bytes) -> Exception:
    if not kind:
        return bad_request(why)
    return bad_request(f"the object provided is unrecognized (must be of type {kind}): {why} ({_summary(data)})")


def _summary(data: bytes) -> str:
    if not data:
        return "<empty>"
    more = " ..." if len(data) > _SHOWN_BYTES else ""
    shown = data[:_SHOWN_BYTES]
    return (shown.decode(errors="replace") if data[:1] == b"{" else shown.hex()) + more
