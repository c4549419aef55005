"""A request's body into a plain object: JSON, YAML or protobuf, with the real server's messages for what cannot be
read.

Also finds fields that are given twice. What the object means is for ``verbs/writing.py`` and the kind's schema.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from kubesched.apiserver.errors import bad_request, unsupported_media_type
from kubesched.apiserver.go_text import json_kind
from kubesched.apiserver.http.negotiation import JSON, MEDIA_TYPES, PROTOBUF, YAML
from kubesched.apiserver.http.protobuf.envelope import ProtobufError, decode_envelope
from kubesched.apiserver.json_text import read_json
from kubesched.apiserver.kinds.kind import Object
from kubesched.apiserver.yaml_text import YamlTextError, load_yaml

_SHOWN_BYTES = 30
_TYPE_META = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


@dataclass(slots=True)
class Body:
    """What was sent: the object without its kind and apiVersion, those two, and the paths of fields given twice."""

    obj: Object
    kind: str = ""
    api_version: str = ""
    duplicates: list[str] = field(default_factory=list)


def read_body(data: bytes, content_type: str, kind: str, find_duplicates: bool = True) -> Body:
    """The body of a create or update; ``kind`` is what it must be, for messages ("" for short messages)."""
    media_type = content_type.partition(";")[0].strip().lower() or JSON
    if media_type not in MEDIA_TYPES:
        raise unsupported_media_type(MEDIA_TYPES)
    try:
        obj = _parse(data, media_type)
    except (ValueError, RecursionError) as error:
        raise _unrecognized(kind, str(error), data) from None
    return _as_body(obj, data if find_duplicates and media_type == JSON else b"", kind, data)


def _parse(data: bytes, media_type: str) -> Any:
    if media_type == PROTOBUF:
        try:
            return decode_envelope(data)
        except ProtobufError as error:
            raise ValueError(str(error)) from None
    if media_type == YAML:
        try:
            return load_yaml(data)
        except YamlTextError as error:
            raise ValueError(f"couldn't get version/kind; json parse error: {error}") from None
    try:
        return read_json(data)
    except ValueError as error:
        raise ValueError(f"couldn't get version/kind; json parse error: {error}") from None


def _as_body(obj: Any, json_text: bytes, kind: str, data: bytes) -> Body:
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
    return Body(obj, found_kind, version, duplicate_fields(json_text) if json_text else [])


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


class _Pairs(list[tuple[str, Any]]):
    """An object with all its fields, also repeated ones."""


def duplicate_fields(data: bytes) -> list[str]:
    """Paths of fields that occur twice in their object, in the order of the text."""
    seen_twice = False

    def check(pairs: list[tuple[str, Any]]) -> None:
        nonlocal seen_twice
        seen_twice = seen_twice or len(pairs) != len({name for name, _ in pairs})

    json.loads(data, object_pairs_hook=check)
    if not seen_twice:
        return []
    found: list[str] = []
    _collect(json.loads(data, object_pairs_hook=_Pairs), "", found)
    return found


def _collect(value: Any, path: str, found: list[str]) -> None:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, inner in value:
            here = f"{path}.{name}" if path else name
            if name in seen and here not in found:
                found.append(here)
            seen.add(name)
            _collect(inner, here, found)
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            _collect(inner, f"{path}[{at}]", found)
