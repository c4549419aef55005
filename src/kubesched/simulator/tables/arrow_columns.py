"""A column's values as Arrow lays them out in memory: which are there, where texts begin, the values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
