"""Soft constraints: the fewer matching pods there are around a node, the better it is.

The raw score is the number of matching pods in each of the node's domains, weighted so that topologies with few domains
count as much as those with many; `normalize` turns it round. Hosts are counted one by one, other domains as a whole.

Next: `hints` for when a rejected pod deserves another try.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.nodes import MISSING, CodeArray, Column, NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.scores import MAX_NODE_SCORE, Scores
from kubesched.framework.verdicts import BoolArray
from kubesched.plugins.pod_topology_spread.constraints import HOSTNAME_LABEL, SpreadConstraint
from kubesched.plugins.pod_topology_spread.inclusion import InclusionPolicies, with_all_keys
from kubesched.plugins.pod_topology_spread.row_counts import RowCounts

FloatArray = NDArray[np.float64]


class WeightedDomains:
    """The domains of one soft constraint: what a node in each of them scores."""

    __slots__ = ("_by_row", "_scores", "topology_key")

    def __init__(self, constraint: SpreadConstraint, n_domains: int, counts: FloatArray, by_row: bool) -> None:
        weight = np.float64(math.log(n_domains + 2))
        self.topology_key = constraint.topology_key
        self._by_row = by_row
        # maxSkew is added so that small differences weigh less where a larger skew is tolerated.
        self._scores: FloatArray = counts * weight + np.float64(constraint.max_skew - 1)

    def scores(self, nodes: NodeTable) -> FloatArray:
        """(n_nodes,) 0 for nodes without the topology label."""
        codes = nodes.label(self.topology_key).codes
        found = self._scores[nodes.rows] if self._by_row else self._scores[codes]
        return np.where(codes == MISSING, 0.0, found)


class SpreadScoreState:
    """What PreScore found out for a pod with soft constraints."""

    def __init__(
        self,
        pod: PodInfo,
        constraints: Sequence[SpreadConstraint],
        feasible: NodeTable,
        row_counts: RowCounts,
        requires_all: bool,
    ) -> None:
        self._constraints = constraints
        self._requires_all = requires_all
        whole = feasible.whole
        scored = ~self.ignored(feasible)
        counted = with_all_keys(constraints, whole) if requires_all else np.ones(len(whole), dtype=np.bool_)
        policies = InclusionPolicies(pod, whole)
        self._domains: list[WeightedDomains] = []
        for constraint in constraints:
            counts = row_counts.of(constraint.selector).astype(np.float64)
            if constraint.topology_key == HOSTNAME_LABEL:
                self._domains.append(WeightedDomains(constraint, int(scored.sum()), counts, by_row=True))
                continue
            column = whole.label(constraint.topology_key)
            n_domains = _n_distinct(_domain_codes(column, feasible.label(constraint.topology_key).codes[scored]))
            included = counted & policies.included(constraint)
            totals = _totals(column, included, counts)
            self._domains.append(WeightedDomains(constraint, n_domains, totals, by_row=False))

    def ignored(self, nodes: NodeTable) -> BoolArray:
        """(n_nodes,) nodes that get no score, because they lack a topology label that is required."""
        if not self._requires_all:
            return np.zeros(len(nodes), dtype=np.bool_)
        return ~with_all_keys(self._constraints, nodes)

    def scores(self, nodes: NodeTable) -> Scores:
        total = np.zeros(len(nodes), dtype=np.float64)
        for domains in self._domains:
            total += domains.scores(nodes)
        total[self.ignored(nodes)] = 0.0
        return _rounded(total)

    def normalize(self, nodes: NodeTable, scores: Scores) -> Scores:
        ignored = self.ignored(nodes)
        considered = scores[~ignored]
        highest = int(considered.max(initial=0))
        if highest == 0:
            normalized = np.full_like(scores, MAX_NODE_SCORE)
        else:
            normalized = MAX_NODE_SCORE * (highest + int(considered.min()) - scores) // highest
        normalized[ignored] = 0
        return normalized


def _domain_codes(column: Column[str], codes: CodeArray) -> CodeArray:
    """Codes of domains, where no label is a domain too: the same as a label with an empty value."""
    unlabelled = codes == MISSING
    if not unlabelled.any() or "" not in column.values:
        return codes
    return np.where(unlabelled, np.int32(column.values.index("")), codes)


def _n_distinct(codes: CodeArray) -> int:
    if not len(codes):
        return 0
    return int(np.count_nonzero(np.bincount(codes + 1)))


def _totals(column: Column[str], included: BoolArray, counts: FloatArray) -> FloatArray:
    """(n_values + 1,) matching pods in each domain; the last entry is for nodes without the label."""
    n_values = len(column.values)
    codes = _domain_codes(column, column.codes[included])
    domains = np.where(codes == MISSING, n_values, codes)
    return np.asarray(np.bincount(domains, weights=counts[included], minlength=n_values + 1), dtype=np.float64)


def _rounded(numbers: FloatArray) -> Scores:
    """To the nearest integer, halves upwards; numbers are not negative."""
    whole = np.floor(numbers)
    return (whole + (numbers - whole >= 0.5)).astype(np.int64)
