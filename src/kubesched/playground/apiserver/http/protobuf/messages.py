"""A protobuf message as the JSON object it stands for, by the field numbers of the kind's schema.

Go always sends fields that are no pointers, also when empty: such zeros are left out again, as JSON leaves them out.
Quantities, times and int-or-strings get their JSON form. ``envelope.py`` finds the kind.
"""

from __future__ import annotations

import base64
import struct
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from kubesched.playground.apiserver.http.protobuf.wire import ProtobufError, fields_of, signed
from kubesched.playground.apiserver.openapi import schema_table
from kubesched.playground.apiserver.openapi.struct_types import FieldType, ValueType, struct_fields, struct_type

_DEEPEST = 64
_SCHEMA_PROPS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"


class _NumberedField(NamedTuple):
    """What a field number means; ``inlined`` names the schema of a struct whose fields belong to the outer object."""

    field: FieldType | None
    inlined: str = ""


@lru_cache(maxsize=2048)
def _numbered(schema: str, outer: str) -> dict[int, _NumberedField]:
    """``outer`` is the struct whose object gets the fields: the schema table has no entry for an inlined struct."""
    known = struct_fields(outer)
    found: dict[int, _NumberedField] = {}
    for entry in schema_table.layout(schema):
        if entry.is_inline:
            found[entry.number] = _NumberedField(None, entry.name)
        elif entry.name in known:
            found[entry.number] = _NumberedField(known[entry.name])
    return found


def decode_message(data: bytes, of: ValueType, depth: int = 0) -> dict[str, Any]:
    """The object of a struct type."""
    return _decoded(data, of.schema, of.schema, depth)


def _decoded(data: bytes, schema: str, outer: str, depth: int) -> dict[str, Any]:
    if depth > _DEEPEST:
        raise ProtobufError("proto: message nested too deep")
    obj: dict[str, Any] = {}
    numbered = _numbered(schema, outer)
    for number, value in fields_of(data):
        entry = numbered.get(number)
        if entry is None:
            continue
        if entry.field is None:
            obj.update(_decoded(_bytes(value), entry.inlined, outer, depth + 1))
        else:
            _put(obj, entry.field, value, depth)
    return obj


def _put(obj: dict[str, Any], field: FieldType, value: int | bytes, depth: int) -> None:
    of, name = field.type, field.name
    if of.form == "list":
        assert of.element is not None
        obj.setdefault(name, []).append(_value(value, of.element, depth))
        return
    if of.form == "map":
        assert of.element is not None
        key, item = _map_entry(_bytes(value), of.element, depth)
        obj.setdefault(name, {})[key] = item
        return
    decoded = _value(value, of, depth)
    is_zero = decoded in ("", 0, False, None) and not isinstance(decoded, dict)
    if is_zero and not field.is_pointer and (field.omits_empty or decoded is None):
        return
    obj[name] = decoded


def _map_entry(data: bytes, element: ValueType, depth: int) -> tuple[str, Any]:
    key, item = "", _zero(element)
    for number, value in fields_of(data):
        if number == 1:
            key = text(value)
        elif number == 2:
            item = _wrapped_list(_bytes(value)) if element.form == "list" else _value(value, element, depth)
    return key, item


def _wrapped_list(data: bytes) -> list[str]:
    """A list of strings that is a map's value is a message with the strings in field 1."""
    return [text(value) for number, value in fields_of(data) if number == 1]


def _zero(of: ValueType) -> Any:
    return {"struct": {}, "list": [], "integer": 0, "boolean": False, "quantity": "0"}.get(of.form, "")


def _value(value: int | bytes, of: ValueType, depth: int) -> Any:
    match of.form:
        case "struct":
            return decode_message(_bytes(value), of, depth + 1)
        case "string":
            return text(value)
        case "integer":
            return signed(_integer(value))
        case "boolean":
            return bool(_integer(value))
        case "number":
            return struct.unpack("<d", _exactly(value, 8))[0]
        case "bytes":
            return base64.b64encode(_bytes(value)).decode()
        case "quantity":
            return _first(_bytes(value)) or "0"
        case "int-or-string":
            return _int_or_string(_bytes(value))
        case "time" | "micro-time":
            return _time(_bytes(value), of.form == "micro-time")
    if of.schema.startswith(_SCHEMA_PROPS + "Or"):
        return _schema_or_other(_bytes(value), of.schema, depth)
    return _json(_bytes(value))


def _schema_or_other(data: bytes, name: str, depth: int) -> Any:
    """Within schemas of custom resources: a schema, or a list of them, or a boolean, or a list of names."""
    found = list(fields_of(data))
    is_bool = name.endswith("Bool")
    for number, value in found:
        if number == (2 if is_bool else 1):
            return decode_message(_bytes(value), struct_type(_SCHEMA_PROPS), depth + 1)
    if is_bool:
        return any(number == 1 and bool(value) for number, value in found)
    if name.endswith("StringArray"):
        return [text(value) for _, value in found]
    return [decode_message(_bytes(value), struct_type(_SCHEMA_PROPS), depth + 1) for _, value in found]


def _int_or_string(data: bytes) -> int | str:
    found = dict(fields_of(data))
    if found.get(1, 0) == 1:
        return text(found.get(3, b""))
    return signed(_integer(found.get(2, 0)))


def _time(data: bytes, has_micros: bool) -> str | None:
    found = dict(fields_of(data))
    if not found:
        return None
    seconds, nanos = signed(_integer(found.get(1, 0))), signed(_integer(found.get(2, 0)))
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        raise ProtobufError(f"time out of range: {seconds}") from None
    micros = f".{nanos // 1000:06d}" if has_micros else ""
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + micros + "Z"


def _json(data: bytes) -> Any:
    """Raw JSON within a message (managed fields, raw extensions)."""
    raw = dict(fields_of(data)).get(1, b"")
    try:
        return msgspec.json.decode(_bytes(raw)) if raw else None
    except msgspec.DecodeError as error:
        raise ProtobufError(f"invalid JSON within protobuf: {error}") from None


def _first(data: bytes) -> str:
    return text(dict(fields_of(data)).get(1, b""))


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ProtobufError("proto: wrong wireType = 0")
    return value


def _exactly(value: int | bytes, length: int) -> bytes:
    data = _bytes(value)
    if len(data) != length:
        raise ProtobufError("proto: wrong wireType = 2")
    return data


def _integer(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise ProtobufError("proto: wrong wireType = 2")
    return value


def text(value: int | bytes) -> str:
    """The string of a field."""
    try:
        return _bytes(value).decode()
    except UnicodeDecodeError:
        raise ProtobufError("proto: invalid UTF-8 in a string") from None
