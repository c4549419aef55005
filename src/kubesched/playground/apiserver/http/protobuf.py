"""Objects as Kubernetes protobuf, in both directions: an envelope of four magic bytes and the kind, and its message.

``decode_envelope`` gives the plain object with kind and apiVersion, as if JSON had been sent; fields have the numbers
of the kind's schema. Go always sends fields that are no pointers, also when empty: such zeros are left out again when
read, as JSON leaves them out, and written for clients that take nothing else than protobuf. Quantities, times and
int-or-strings have forms of their own.

On the wire a message is its numbered fields. ``fields_of`` never reads beyond the data and refuses what is cut off; the
functions beside it write fields.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from kubesched.k8s.model import times
from kubesched.playground.apiserver.openapi import schemas
from kubesched.playground.apiserver.openapi.schemas import (
    FieldType,
    ValueType,
    struct_fields,
    struct_type,
    type_of_kind,
)

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class ProtobufError(ValueError):
    """The data are not the protobuf that they should be."""


def fields_of(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of every field: an integer for varints, the bytes for all else."""
    at, end = 0, len(data)
    while at < end:
        key = data[at]
        if key < 0x80:
            at += 1
        else:
            key, at = _varint(data, at)
        number, form = key >> 3, key & 7
        if number == 0:
            raise ProtobufError("proto: illegal tag 0")
        if form == _BYTES:
            if at < end and data[at] < 0x80:
                length = data[at]
                at += 1
            else:
                length, at = _varint(data, at)
        elif form == _VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        elif form in (_FIXED64, _FIXED32):
            length = 8 if form == _FIXED64 else 4
        else:
            raise ProtobufError(f"proto: wrong wireType = {form}")
        if at + length > end:
            raise ProtobufError("unexpected EOF")
        yield number, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    if at < len(data) and data[at] < 0x80:
        return data[at], at + 1
    value = shift = 0
    while at < len(data):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ProtobufError("proto: integer overflow")
    raise ProtobufError("unexpected EOF")


def signed(value: int) -> int:
    """A varint as the signed 64-bit integer it stands for."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >= 1 << 63 else value


def varint(value: int) -> bytes:
    """An integer as it is sent; negative ones take all ten bytes."""
    if 0 <= value < 0x80:
        return bytes((value,))
    value &= (1 << 64) - 1
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def integer_field(number: int, value: int) -> bytes:
    """A field that holds an integer or a truth."""
    return varint(number << 3 | _VARINT) + varint(value)


def double_field(number: int, value: float) -> bytes:
    """A field that holds a number with fractions."""
    return varint(number << 3 | _FIXED64) + struct.pack("<d", value)


def bytes_field(number: int, value: bytes) -> bytes:
    """A field that holds a text, bytes or a message."""
    return varint(number << 3 | _BYTES) + varint(len(value)) + value


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
    for entry in schemas.layout(schema):
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


MAGIC = b"k8s\x00"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."


def decode_envelope(data: bytes) -> dict[str, Any]:
    """The object that was sent."""
    if not data.startswith(MAGIC):
        raise ProtobufError(
            "provided data does not appear to be a protobuf message, expected prefix "
            f"[{' '.join(str(byte) for byte in MAGIC)}]"
        )
    outer = dict(fields_of(data[len(MAGIC) :]))
    named, message = outer.get(1, b""), outer.get(2, b"")
    if isinstance(named, int) or isinstance(message, int):
        raise ProtobufError("proto: wrong wireType = 0")
    names = dict(fields_of(named))
    api_version, kind = text(names.get(1, b"")), text(names.get(2, b""))
    return {"kind": kind, "apiVersion": api_version, **decode_message(message, type_of(api_version, kind))}


def type_of(api_version: str, kind: str) -> ValueType:
    """The type of a kind's message. Raises ProtobufError."""
    group, _, version = api_version.rpartition("/")
    found = type_of_kind(group, version, kind)
    if found is None and kind in ("DeleteOptions", "Status"):
        return struct_type(_META + kind)
    if found is None:
        raise ProtobufError(f'no kind "{kind}" is registered for version "{api_version}"')
    return found


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
    for entry in sorted(schemas.layout(schema), key=lambda one: one.number):
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
            return bytes_field(number, _write_int_or_string(value))
        case "time" | "micro-time":
            return bytes_field(number, _write_time(value))
    return bytes_field(number, b"" if value is None else bytes_field(1, msgspec.json.encode(value)))


def _write_int_or_string(value: Any) -> bytes:
    is_text = isinstance(value, str)
    number, text = (0, value) if is_text else (value or 0, "")
    return integer_field(1, int(is_text)) + integer_field(2, number) + bytes_field(3, text.encode())


def _write_time(value: str | None) -> bytes:
    if not value:
        return b""
    seconds = int(times.parse_instant(value.partition(".")[0].removesuffix("Z") + "Z"))
    fraction = value.partition(".")[2].removesuffix("Z")
    return integer_field(1, seconds) + integer_field(2, int(fraction.ljust(9, "0")[:9]) if fraction else 0)
