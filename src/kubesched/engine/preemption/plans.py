"""What a dry run found on each node, kept for the next preemptor alike.

Whom to evict from a node depends on the pods there, on those nominated there and on the preemptor's kind. Plans are
made when they are asked for, and forgotten when one of these changes; the choice among them is made on columns.
The answer is that of a dry run from nothing, node by node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kubesched.engine.preemption.candidates import Candidate, started_at_s
from kubesched.engine.preemption.choice import PRIORITY_SHIFT
from kubesched.framework.nodes import RowArray
from kubesched.framework.status import Status
from kubesched.framework.verdicts import BoolArray

_UNKNOWN, _CANDIDATE, _NO_HELP = 0, 1, 2

MakePlan = Callable[[int], Candidate | Status]
"""A dry run on one row."""


class PreemptionPlans:
    """Plans by row, for preemptors of one kind."""

    def __init__(self, names: Sequence[str]) -> None:
        n_rows = len(names)
        self._name_ranks = np.empty(n_rows, dtype=np.intp)
        self._name_ranks[np.argsort(np.array(names))] = np.arange(n_rows)
        self._known = np.zeros(n_rows, dtype=np.int8)
        self._found: list[Candidate | Status | None] = [None] * n_rows
        self._rules = np.zeros((5, n_rows), dtype=np.float64)
        """(rule, row) the smaller the better, in the order in which the rules count."""

    def forget(self, row: int) -> None:
        self._known[row] = _UNKNOWN
        self._found[row] = None

    def search(self, rows: RowArray, enough: int, make: MakePlan) -> RowArray:
        """The rows that are candidates, in this order, until there are enough, one of which breaks no budget."""
        while True:
            known = self._known[rows]
            is_candidate = known == _CANDIDATE
            stop = self._stop(rows, is_candidate, enough)
            unknown = np.flatnonzero(known[:stop] == _UNKNOWN)
            if len(unknown) == 0:
                candidates: RowArray = rows[:stop][is_candidate[:stop]]
                return candidates
            missing = max(enough - int(np.count_nonzero(is_candidate[: unknown[0]])), 1)
            for row in rows[unknown[:missing]].tolist():
                self._keep(row, make(row))

    def failures(self, rows: RowArray) -> list[Status]:
        """Why evictions do not help on those of these rows where they do not."""
        return [found for row in rows.tolist() if isinstance(found := self._found[row], Status)]

    def least_harmful(self, rows: RowArray) -> RowArray:
        """The candidates that no rule tells apart, by node name."""
        left = rows
        for rule in self._rules:
            values = rule[left]
            left = left[values == values.min()]
        by_name: RowArray = left[np.argsort(self._name_ranks[left])]
        return by_name

    def candidate(self, row: int) -> Candidate:
        found = self._found[row]
        assert isinstance(found, Candidate)
        return found

    def _stop(self, rows: RowArray, is_candidate: BoolArray, enough: int) -> int:
        """The number of rows to look at, as far as is known."""
        counts = np.cumsum(is_candidate)
        harmless = np.cumsum(is_candidate & (self._rules[0, rows] == 0))
        done = np.flatnonzero((counts >= enough) & (harmless > 0))
        return int(done[0]) + 1 if len(done) else len(rows)

    def _keep(self, row: int, found: Candidate | Status) -> None:
        self._found[row] = found
        if isinstance(found, Status):
            self._known[row] = _NO_HELP
            return
        self._known[row] = _CANDIDATE
        victims = found.victims
        highest = max(victim.priority for victim in victims)
        self._rules[:, row] = (
            found.n_budget_violations,
            victims[0].priority,
            sum(victim.priority + PRIORITY_SHIFT for victim in victims),
            len(victims),
            -min(started_at_s(victim) for victim in victims if victim.priority == highest),
        )
