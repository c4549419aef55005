"""A plain object as Kubernetes protobuf: the reverse of ``messages.py``, for clients that take nothing else.

Go sends fields that are no pointers also when empty, and so does this; the envelope is that of ``envelope.py``.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import msgspec

from kubesched.k8s.model import times
from kubesched.playground.apiserver.http.protobuf.envelope import MAGIC, type_of
from kubesched.playground.apiserver.http.protobuf.wire import bytes_field, double_field, integer_field
from kubesched.playground.apiserver.openapi import schema_table
from kubesched.playground.apiserver.openapi.struct_types import FieldType, ValueType, struct_fields

_NO_ENCODING = bytes_field(3, b"") + bytes_field(4, b"")


def encode_envelope(obj: dict[str, Any]) -> bytes:
    """An object with its kind and apiVersion. Raises ProtobufError for kinds that have no messages."""
    api_version, kind = obj.get("apiVersion", ""), obj.get("kind", "")
    names = bytes_field(1, api_version.encode()) + bytes_field(2, kind.encode())
    message = encode_message(obj, type_of(api_version, kind))
    return MAGIC + bytes_field(1, names) + bytes_field(2, message) + _NO_ENCODING


def encode_message(obj: dict[str, Any], of: ValueType) -> bytes:
    """The message of a struct type."""
    return b"".join(_fields(obj, of.schema, of.schema))


def _fields(obj: dict[str, Any], schema: str, outer: str) -> Iterator[bytes]:
    """``outer`` is the struct whose object has the fields: an inlined struct has a message, but no own object."""
    known = struct_fields(outer)
    for entry in sorted(schema_table.layout(schema), key=lambda one: one.number):
        if entry.number <= 0:
            continue
        if entry.is_inline:
            yield bytes_field(entry.number, b"".join(_fields(obj, entry.name, outer)))
        elif entry.name in known:
            yield from _field(entry.number, known[entry.name], obj.get(entry.name))


def _field(number: int, field: FieldType, value: Any) -> Iterator[bytes]:
    of = field.type
    if of.form == "list":
        for item in value or ():
            yield _single(number, of.element, item)
    elif of.form == "map":
        for name in sorted(value or {}):
            item = bytes_field(1, name.encode()) + _map_value(of.element, value[name])
            yield bytes_field(number, item)
    elif value is not None or not field.is_pointer:
        yield _single(number, of, value)


def _map_value(of: ValueType | None, value: Any) -> bytes:
    if of is not None and of.form == "list":
        return bytes_field(2, b"".join(bytes_field(1, text.encode()) for text in value or ()))
    return _single(2, of, value)


def _single(number: int, of: ValueType | None, value: Any) -> bytes:
    match of.form if of is not None else "any":
        case "struct":
            assert of is not None
            return bytes_field(number, encode_message(value or {}, of))
        case "string":
            return bytes_field(number, (value or "").encode())
        case "integer" | "boolean":
            return integer_field(number, int(value or 0))
        case "number":
            return double_field(number, value or 0.0)
        case "bytes":
            return bytes_field(number, base64.b64decode(value or ""))
        case "quantity":
            return bytes_field(number, bytes_field(1, str(value or "0").encode()))
        case "int-or-string":
            return bytes_field(number, _int_or_string(value))
        case "time" | "micro-time":
            return bytes_field(number, _time(value))
    return bytes_field(number, b"" if value is None else bytes_field(1, msgspec.json.encode(value)))


def _int_or_string(value: Any) -> bytes:
    is_text = isinstance(value, str)
    number, text = (0, value) if is_text else (value or 0, "")
    return integer_field(1, int(is_text)) + integer_field(2, number) + bytes_field(3, text.encode())


def _time(value: str | None) -> bytes:
    if not value:
        return b""
    seconds = int(times.parse_instant(value.partition(".")[0].removesuffix("Z") + "Z"))
    fraction = value.partition(".")[2].removesuffix("Z")
    return integer_field(1, seconds) + integer_field(2, int(fraction.ljust(9, "0")[:9]) if fraction else 0)
