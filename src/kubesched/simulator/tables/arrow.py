"""Arrow's C data interface, by hand: a table as the capsules that dataframe libraries ask for.

https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html

Structures are given away; whoever has them calls their `release` when done. What a structure points at is kept in
`_kept` under the number in its `private_data` until then.

Next: `arrow_structs` for the structures.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kubesched.simulator.tables.arrow_structs import (
    ArrowArray,
    ArrowArrayStream,
    ArrowSchema,
    GetLastError,
    GetNext,
    GetSchema,
    ReleaseArray,
    ReleaseSchema,
    ReleaseStream,
    in_capsule,
)

TEXT_FORMAT = "u"
_NUMPY_TYPES = {"l": np.int64, "g": np.float64}


@dataclass(frozen=True, slots=True)
class ColumnBuffers:
    """`buffers` in Arrow's order; None where one is not needed."""

    n_missing: int
    buffers: tuple[NDArray[Any] | None, ...]


def column_buffers(arrow_format: str, values: Sequence[Any]) -> ColumnBuffers:
    is_there = np.array([value is not None for value in values], dtype=np.bool_)
    n_missing = len(values) - int(is_there.sum())
    bitmap = np.packbits(is_there, bitorder="little") if n_missing else None
    if arrow_format == TEXT_FORMAT:
        return ColumnBuffers(n_missing, (bitmap, *_texts(values)))
    filled = [0 if value is None else value for value in values]
    return ColumnBuffers(n_missing, (bitmap, np.array(filled, dtype=_NUMPY_TYPES[arrow_format])))


def _texts(values: Sequence[str | None]) -> tuple[NDArray[Any], NDArray[Any]]:
    """(n + 1 offsets, all bytes)."""
    encoded = [(value or "").encode() for value in values]
    offsets = np.zeros(len(values) + 1, dtype=np.int32)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return offsets, np.frombuffer(b"".join(encoded) or b"\0", dtype=np.uint8)


_NULLABLE = 2
_ROW_FORMAT = b"+s"
_NO_NAME = b""
_OK = 0

_kept: dict[int, Any] = {}
_numbers = count(1)


@dataclass(slots=True)
class _Batch:
    """Columns with their Arrow formats; given out once."""

    formats: Mapping[str, str]
    columns: Mapping[str, Sequence[object]]
    n_rows: int
    is_given: bool = False


def export_schema(formats: Mapping[str, str]) -> object:
    """The capsule `arrow_schema` for columns of these formats."""
    schema = ArrowSchema()
    _fill_schema(schema, formats)
    return in_capsule(schema)


def export_stream(formats: Mapping[str, str], columns: Mapping[str, Sequence[object]], n_rows: int) -> object:
    """The capsule `arrow_array_stream` with all rows in one batch."""
    stream = ArrowArrayStream()
    stream.get_schema, stream.get_next, stream.get_last_error = _get_schema, _get_next, _get_last_error
    stream.release = _release_stream
    stream.private_data = _keep(_Batch(formats, columns, n_rows))
    return in_capsule(stream)


def n_kept() -> int:
    """How many structures are out and not released: none, once nobody reads a table any more."""
    return len(_kept)


def _clear(structure: ctypes.Structure) -> None:
    """A reader's structure may have anything in it."""
    ctypes.memset(ctypes.addressof(structure), 0, ctypes.sizeof(structure))


def _keep(what: object) -> int:
    number = next(_numbers)
    _kept[number] = what
    return number


# -- the stream --------------------------------------------------------------------------------------------------------


def _give_schema(stream: Any, out: Any) -> int:
    _fill_schema(out.contents, _kept[stream.contents.private_data].formats)
    return _OK


def _give_next(stream: Any, out: Any) -> int:
    batch = _kept[stream.contents.private_data]
    if batch.is_given:
        out.contents.release = ReleaseArray()  # no function: there is no more
    else:
        batch.is_given = True
        _fill_array(out.contents, batch)
    return _OK


def _give_last_error(_: Any) -> None:
    """Nothing can go wrong."""


def _end_stream(stream: Any) -> None:
    _kept.pop(stream.contents.private_data, None)
    stream.contents.release = ReleaseStream()


# -- schemas -----------------------------------------------------------------------------------------------------------


def _fill_schema(schema: ArrowSchema, formats: Mapping[str, str]) -> None:
    """A row of columns: a struct in Arrow's words."""
    _clear(schema)
    children = []
    for name, arrow_format in formats.items():
        texts = arrow_format.encode(), name.encode()
        child = ArrowSchema(format=texts[0], name=texts[1], flags=_NULLABLE, release=_release_schema)
        child.private_data = _keep(texts)
        children.append(child)
    pointers = (ctypes.POINTER(ArrowSchema) * len(children))(*map(ctypes.pointer, children))
    schema.format, schema.name = _ROW_FORMAT, _NO_NAME
    schema.n_children = len(children)
    schema.children = ctypes.cast(pointers, ctypes.POINTER(ctypes.POINTER(ArrowSchema)))
    schema.release = _release_schema
    schema.private_data = _keep((children, pointers))


def _end_schema(schema: Any) -> None:
    _release_children(schema.contents)
    schema.contents.release = ReleaseSchema()


# -- arrays ------------------------------------------------------------------------------------------------------------


def _fill_array(array: ArrowArray, batch: _Batch) -> None:
    children = [_column(batch.formats[name], values, batch.n_rows) for name, values in batch.columns.items()]
    pointers = (ctypes.POINTER(ArrowArray) * len(children))(*map(ctypes.pointer, children))
    buffers = (ctypes.c_void_p * 1)(None)  # every row is there
    _clear(array)
    array.length = batch.n_rows
    array.n_buffers, array.n_children = 1, len(children)
    array.buffers = ctypes.cast(buffers, ctypes.POINTER(ctypes.c_void_p))
    array.children = ctypes.cast(pointers, ctypes.POINTER(ctypes.POINTER(ArrowArray)))
    array.release = _release_array
    array.private_data = _keep((children, pointers, buffers))


def _column(arrow_format: str, values: Sequence[object], n_rows: int) -> ArrowArray:
    found = column_buffers(arrow_format, values)
    addresses = [None if buffer is None else buffer.ctypes.data for buffer in found.buffers]
    buffers = (ctypes.c_void_p * len(addresses))(*addresses)
    column = ArrowArray(length=n_rows, null_count=found.n_missing, n_buffers=len(addresses), release=_release_array)
    column.buffers = ctypes.cast(buffers, ctypes.POINTER(ctypes.c_void_p))
    column.private_data = _keep((found, buffers))
    return column


def _end_array(array: Any) -> None:
    _release_children(array.contents)
    array.contents.release = ReleaseArray()


def _release_children(structure: Any) -> None:
    """A child without `release` was moved: it belongs to somebody else now."""
    for position in range(structure.n_children):
        child = structure.children[position]
        if child.contents.release:
            child.contents.release(child)
    _kept.pop(structure.private_data, None)


# Kept here for good, because structures hold only their addresses.
_get_schema = GetSchema(_give_schema)
_get_next = GetNext(_give_next)
_get_last_error = GetLastError(_give_last_error)
_release_stream = ReleaseStream(_end_stream)
_release_schema = ReleaseSchema(_end_schema)
_release_array = ReleaseArray(_end_array)
