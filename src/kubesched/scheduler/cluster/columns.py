"""Columns that grow: numbers by row, and interned values by row.

A row that leaves is filled with the last one, so that live rows are always 0 … n-1 and a column is a plain slice.
Whole columns are read as NumPy arrays (`data`); a single number costs a fraction of that through `cells`, the same
memory as plain Python numbers.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kubesched.framework.nodes import MISSING

Value = TypeVar("Value", bound=Hashable)

_FIRST_CAPACITY = 16


class NumberColumn:
    """One number per row, in an array that doubles when it is full. `data` and `cells` are made anew when it grows."""

    __slots__ = ("_fill", "cells", "data")

    def __init__(self, dtype: DTypeLike, fill: int = 0, capacity: int = _FIRST_CAPACITY) -> None:
        self._fill = fill
        self.data: NDArray[Any] = np.full(max(capacity, _FIRST_CAPACITY), fill, dtype=dtype)
        self.cells: memoryview[int] = self.data.data

    def reserve(self, n: int) -> None:
        """Makes room for rows 0 … n-1."""
        capacity = len(self.data)
        if n <= capacity:
            return
        grown = np.full(max(n, 2 * capacity), self._fill, dtype=self.data.dtype)
        grown[:capacity] = self.data
        self.data = grown
        self.cells = grown.data

    def move(self, source: int, target: int) -> None:
        """Puts the source row's number in the target row and clears the source."""
        cells = self.cells
        cells[target] = cells[source]
        cells[source] = self._fill


class ValueColumn(Generic[Value]):
    """One value per row, kept as a code; rows without a value have the code `MISSING`."""

    __slots__ = ("_codes_by_value", "codes", "values")

    def __init__(self, capacity: int = _FIRST_CAPACITY) -> None:
        self.codes = NumberColumn(np.intp, fill=MISSING, capacity=capacity)
        self.values: list[Value] = []
        self._codes_by_value: dict[Value, int] = {}

    def code_of(self, value: Value) -> int:
        """The code of a value, `MISSING` if no row ever had it."""
        return self._codes_by_value.get(value, MISSING)

    def set(self, row: int, value: Value | None) -> None:
        self.codes.data[row] = MISSING if value is None else self.intern(value)

    def intern(self, value: Value) -> int:
        code = self._codes_by_value.get(value)
        if code is None:
            code = self._codes_by_value[value] = len(self.values)
            self.values.append(value)
        return code
