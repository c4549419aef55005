"""Numbers for amounts: rows that have the same number have the same of everything that is counted in amounts.

What is known about one row, as far as it follows from its amounts alone, is then known about all of them. Pods of a
kind take a row from one number to the next, always the same: once that was seen, amounts need not be looked at again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kubesched.framework.nodes import MISSING
from kubesched.k8s.model.requests import PodResources
from kubesched.scheduler.cluster.columns import NumberColumn

_MOST_KNOWN = 65_536

_Step = tuple[int, int, int]
"""(number, +1 or -1 pod, which pod's resources)"""


class AmountCodes:
    """A number by row, found out when somebody asks for it. `amounts` gives all amounts of a row."""

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
