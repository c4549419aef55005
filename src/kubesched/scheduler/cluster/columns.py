"""Columns that grow: numbers by row, interned values by row, and codes of rows with the same amounts.

A row that leaves is filled with the last one, so that live rows are always 0 … n-1 and a column is a plain slice. Whole
columns are read as NumPy arrays (`data`); a single number costs a fraction of that through `cells`, the same memory as
plain Python numbers.

Rows with the same amount code have the same of every resource, allocatable and requested: what follows from the amounts
of one of them holds for all. Pods with the same resources take a row from one code to the next, always the same; once
that was seen, the amounts are not read again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from kubesched.framework.nodes import MISSING
from kubesched.k8s.model.requests import PodResources

Value = TypeVar("Value", bound=Hashable)

_FIRST_CAPACITY = 16


class NumberColumn:
    """One number per row, in an array that doubles when it is full. `data` and `cells` are replaced when it grows."""

    __slots__ = ("_fill", "cells", "data")

    def __init__(self, dtype: DTypeLike, fill: int = 0, capacity: int = _FIRST_CAPACITY) -> None:
        self._fill = fill
        self.data: NDArray[Any] = np.full(max(capacity, _FIRST_CAPACITY), fill, dtype=dtype)
        self.cells: memoryview[int] = self.data.data

    def reserve(self, n: int) -> None:
        """Grows to hold rows 0 … n-1."""
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


_MOST_KNOWN = 65_536

_Step = tuple[int, int, int]
"""(number, +1 or -1 pod, which pod's resources)"""


class AmountCodes:
    """A code per row, worked out on demand. `amounts` gives all amounts of a row."""

    __slots__ = ("_amounts", "_by_amounts", "_n_codes", "_next", "_taken", "codes")

    def __init__(self, amounts: Callable[[int], tuple[int, ...]]) -> None:
        self._amounts = amounts
        self.codes = NumberColumn(np.int64, fill=MISSING)
        self._by_amounts: dict[tuple[int, ...], int] = {}
        self._n_codes = 0
        self._next: dict[_Step, tuple[int, PodResources]] = {}
        """Where a step leads. The resources are kept so that nothing else gets their id."""
        self._taken: dict[int, tuple[_Step, PodResources]] = {}
        """By row: the step to the amounts whose number is not known yet, if it was a single one."""

    def code(self, row: int) -> int:
        code = self.codes.cells[row]
        if code == MISSING:
            amounts = self._amounts(row)
            known = self._by_amounts.get(amounts)
            code = self._new_code(amounts) if known is None else known
            self.codes.cells[row] = code
            step = self._taken.pop(row, None)
            if step is not None:
                if len(self._next) >= _MOST_KNOWN:
                    self._next.clear()
                self._next[step[0]] = code, step[1]
        return code

    def pod_counted(self, row: int, resources: PodResources, sign: int) -> None:
        """A pod came to the row, or left it."""
        cells = self.codes.cells
        code = cells[row]
        if code == MISSING:
            self._taken.pop(row, None)
            return
        step = code, sign, id(resources)
        known = self._next.get(step)
        if known is None:
            cells[row] = MISSING
            self._taken[row] = step, resources
        else:
            cells[row] = known[0]

    def forget(self, row: int) -> None:
        """The node changed, or another one has the row."""
        self.codes.cells[row] = MISSING
        self._taken.pop(row, None)

    def move(self, source: int, target: int) -> None:
        """The last row fills a hole."""
        self.codes.move(source, target)
        self._taken.pop(source, None)
        self._taken.pop(target, None)

    def _new_code(self, amounts: tuple[int, ...]) -> int:
        """No number is ever used again, so that the amounts that had one may be forgotten."""
        if len(self._by_amounts) >= _MOST_KNOWN:
            self._by_amounts.clear()
        code = self._by_amounts[amounts] = self._n_codes
        self._n_codes += 1
        return code
