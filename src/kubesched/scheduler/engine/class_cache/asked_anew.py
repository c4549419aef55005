"""A search for one pod in which plugins take part that do not say what their answers depend on.

What is kept for pods with the same signature narrows the nodes down; these plugins are then asked about the pod
itself, in the order of the search, and about no more nodes than are needed to find enough.

Next: `pod_class`, which keeps the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kubesched.framework.nodes import RowArray
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import Scores
from kubesched.framework.verdicts import ACCEPT_ALL
from kubesched.scheduler.engine.class_cache.pod_class import PodClass
from kubesched.scheduler.engine.filter import ask, going_round
from kubesched.scheduler.engine.plugin_call import PluginError
from kubesched.scheduler.engine.score import score_nodes

_AT_LEAST = 32
"""So many nodes are asked about at once, even if fewer should do."""


class AskingSearch:
    """Answers like the class, for one pod. Raises `PluginError` where only a search without it can tell."""

    def __init__(self, known: PodClass, pod: PodInfo) -> None:
        self._known = known
        self._pod = pod
        self.cycle = known.cycle.fork()

    def search(self, start: int, enough: int, closed: Sequence[int] = ()) -> tuple[RowArray, int]:
        """See `PodClass.search`."""
        known, n = self._known, len(self._known.order)
        candidates, _ = known.search(start, n, closed)
        if not known.layers.fresh.filters:
            found = candidates[: enough + 1]
        else:
            found = self._first_passing(candidates, enough + 1)
        if len(found) <= enough:
            return found, n
        last = found.item(enough - 1)
        return found[:enough], int(np.flatnonzero(going_round(known.order, start, n) == last)[0]) + 1

    def totals(self, rows: RowArray) -> Scores:
        """See `PodClass.totals`."""
        total, steps = self._known.totals(rows), self._known.layers.fresh.scores
        if steps:
            nodes = self._known.nodes.gathered(rows)
            for step in steps:
                total = total + score_nodes(step, self.cycle, self._pod, nodes).weighted
        return total

    def _first_passing(self, candidates: RowArray, wanted: int) -> RowArray:
        """As many are asked about as should do, going by the share of those that passed so far, until enough have."""
        found: list[RowArray] = []
        n_found, begin, size = 0, 0, wanted
        while begin < len(candidates) and n_found < wanted:
            passing = self._passing(candidates[begin : begin + size])
            found.append(passing)
            n_found += len(passing)
            begin += size
            size = _AT_LEAST + (wanted - n_found) * begin // max(n_found, 1)
        return np.concatenate(found)[:wanted] if found else candidates

    def _passing(self, rows: RowArray) -> RowArray:
        for step in self._known.layers.fresh.filters:
            verdicts = ask(step, self.cycle, self._pod, self._known.nodes.gathered(rows))
            if verdicts.errors:
                raise PluginError(step.name, "a node cannot be judged")
            if verdicts is not ACCEPT_ALL:
                rows = rows[~verdicts.rejected]
        return rows
