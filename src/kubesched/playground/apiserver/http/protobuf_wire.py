"""The wire format of protobuf: a message as its numbered fields, nothing known of their meaning.

``fields_of`` never reads beyond the data and refuses what is cut off; the functions after it write fields.
``protobuf.py`` gives the fields their names.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

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
