"""Hard constraints: how many matching pods each domain holds, and on which nodes one more would be too many.

A node passes a constraint if the matching pods in its domain, with the pod itself where it matches, exceed those of the
emptiest domain by at most `maxSkew`. State is one array per constraint, indexed by the code of the topology label's
value, so that the filter is a gather.

Two things are as kube-scheduler has them, surprising or not: pods being deleted are not counted, but adding or removing
one counts like any other; and a selector that selects everything counts no pod, but matches the pod itself.

Next: `scoring` for the soft constraints.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kubesched.framework.nodes import MISSING, CodeArray, Column, IntArray, NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.verdicts import BoolArray, Verdicts
from kubesched.plugins.pod_topology_spread.constraints import SpreadConstraint
from kubesched.plugins.pod_topology_spread.inclusion import InclusionPolicies, with_all_keys
from kubesched.plugins.pod_topology_spread.row_counts import RowCounts

REASON_CONSTRAINTS = "node(s) didn't match pod topology spread constraints"
REASON_MISSING_LABEL = f"{REASON_CONSTRAINTS} (missing required label)"

_NO_DOMAIN = 2**31 - 1
"""What the emptiest of no domains holds."""


class ConstraintDomains:
    """The domains of one constraint, and how many matching pods each holds."""

    __slots__ = ("_codes", "_counts", "_eligible", "_minimum", "_populated", "_self_match", "constraint")

    def __init__(
        self,
        constraint: SpreadConstraint,
        column: Column[str],
        eligible: BoolArray,
        row_counts: IntArray,
        self_match: bool,
    ) -> None:
        self.constraint = constraint
        self._codes = column.codes
        self._eligible = eligible
        self._self_match = self_match
        counted = column.codes[eligible]
        n_values = len(column.values)
        # One entry more than there are values: the code `MISSING` finds it, and it stays 0.
        self._counts = np.zeros(n_values + 1, dtype=np.int64)
        self._counts[:-1] = np.bincount(counted, weights=row_counts[eligible], minlength=n_values)
        self._populated = np.zeros(n_values + 1, dtype=np.bool_)
        self._populated[counted] = True
        self._minimum: int | None = None

    def too_many(self, codes: CodeArray) -> BoolArray:
        """Which of these domains could not take the pod."""
        most = self.constraint.max_skew + self._global_minimum() - self._self_match
        found: BoolArray = self._counts[codes] > most
        return found

    def change(self, pod: PodInfo, row: int, by: int) -> None:
        """A pod comes to a row, or leaves it."""
        if self._eligible[row] and self.constraint.selector.matches(pod.labels):
            self._counts[self._codes[row]] += by
            self._minimum = None

    def _global_minimum(self) -> int:
        """Matching pods in the emptiest domain; with fewer domains than asked for, one is taken to be empty."""
        if self._minimum is None:
            held = self._counts[self._populated]
            too_few = len(held) < self.constraint.min_domains
            self._minimum = 0 if too_few else int(held.min(initial=_NO_DOMAIN))
        return self._minimum


class SpreadFilterState:
    """What PreFilter found out for a pod with hard constraints."""

    def __init__(
        self, pod: PodInfo, constraints: Sequence[SpreadConstraint], nodes: NodeTable, row_counts: RowCounts
    ) -> None:
        whole = nodes.whole
        complete = with_all_keys(constraints, whole)
        policies = InclusionPolicies(pod, whole)
        self._domains = [
            ConstraintDomains(
                constraint,
                whole.label(constraint.topology_key),
                complete & policies.included(constraint),
                row_counts.of(constraint.selector),
                constraint.selector.matches(pod.labels),
            )
            for constraint in constraints
        ]

    def change(self, pod: PodInfo, row: int, by: int) -> None:
        """A pod of the same namespace comes to a row, or leaves it."""
        for domains in self._domains:
            domains.change(pod, row, by)

    def verdicts(self, nodes: NodeTable) -> Verdicts:
        """The first constraint that a node does not meet gives the reason."""
        unlabelled = np.zeros(len(nodes), dtype=np.bool_)
        skewed = np.zeros(len(nodes), dtype=np.bool_)
        for domains in self._domains:
            codes = nodes.label(domains.constraint.topology_key).codes
            missing = codes == MISSING
            unlabelled |= missing & ~skewed
            skewed |= domains.too_many(codes) & ~missing & ~unlabelled
        return Verdicts.combine([(REASON_MISSING_LABEL, unlabelled, True), (REASON_CONSTRAINTS, skewed, False)])
