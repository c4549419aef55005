"""Soft constraints: the fewer matching pods in the domains of a node, the higher its score.

The raw score is the number of matching pods in each of the node's domains, weighted so that topologies with few domains
count as much as those with many; `normalize` turns it round. Hosts are counted one by one, other domains as a whole.

Counts are of the whole cluster and follow pods that come and go. How many domains there are, and so their weight, is a
matter of the nodes to be scored: the feasible ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.caching import PodChange
from kubesched.framework.nodes import MISSING, CodeArray, Column, IntArray, NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import MAX_NODE_SCORE, Scores
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model.selectors import HOSTNAME_LABEL
from kubesched.scheduler.plugins.pod_topology_spread.constraints import (
    CountedPods,
    InclusionPolicies,
    RowCounts,
    SpreadConstraint,
    with_all_keys,
)

FloatArray = NDArray[np.float64]
Spread = TypeVar("Spread", FloatArray, Scores)

_SAMPLE = 200
"""Nodes among which every domain of a common topology is met."""


class ScoredDomains:
    """The domains of one soft constraint, and how many matching pods each holds."""

    __slots__ = ("_codes", "_counts", "_included", "_most_domains", "constraint")

    def __init__(
        self, constraint: SpreadConstraint, column: Column[str], included: BoolArray, row_counts: IntArray
    ) -> None:
        self.constraint = constraint
        self._included = included
        # No label is a domain too: the same as a label with an empty value.
        self._codes = column.codes
        if "" in column.values:
            self._codes = np.where(column.codes == MISSING, column.values.index(""), column.codes)
        n_values = len(column.values)
        domains = self._codes[included]
        # One entry more than there are values: the code `MISSING` finds it.
        domains = np.where(domains == MISSING, n_values, domains)
        self._counts: FloatArray = np.zeros(n_values + 1, dtype=np.float64)
        self._counts += np.bincount(domains, weights=row_counts[included], minlength=n_values + 1)
        self._most_domains = _n_distinct(self._codes)

    def change(self, row: int, by: int) -> None:
        if self._included[row]:
            self._counts[self._codes[row]] += by

    def scores(self, nodes: NodeTable, scored: BoolArray | None) -> FloatArray:
        """(n_values + 1,) what a node of each domain scores; 0 for nodes without the topology label."""
        found = _weighted(self._counts, self._n_domains(nodes, scored), self.constraint)
        found[MISSING] = 0.0
        return found

    def spread_out(self, scores: Spread, nodes: NodeTable) -> Spread:
        """(n_nodes,) the scores of the domains that the nodes are in."""
        return scores.take(nodes.label(self.constraint.topology_key).codes)

    def _n_domains(self, nodes: NodeTable, scored: BoolArray | None) -> int:
        """In how many domains these nodes are, without those that are not scored."""
        rows = nodes.rows if scored is None else nodes.rows[scored]
        if _n_distinct(self._codes.take(rows[:_SAMPLE])) == self._most_domains:
            return self._most_domains
        return _n_distinct(self._codes.take(rows))


class ScoredHosts:
    """As `ScoredDomains`, where every node is a domain of its own."""

    __slots__ = ("_counts", "_has_unlabelled", "constraint")

    def __init__(self, constraint: SpreadConstraint, column: Column[str], row_counts: IntArray) -> None:
        self.constraint = constraint
        self._counts = row_counts.astype(np.float64)
        self._has_unlabelled = bool((column.codes == MISSING).any())

    def change(self, row: int, by: int) -> None:
        self._counts[row] += by

    def scores(self, nodes: NodeTable, scored: BoolArray | None) -> FloatArray:
        """(n_nodes,) 0 for nodes without the topology label."""
        n_domains = len(nodes) if scored is None else int(np.count_nonzero(scored))
        counts = self._counts if nodes.whole is nodes else self._counts.take(nodes.rows)
        found = _weighted(counts, n_domains, self.constraint)
        if self._has_unlabelled:
            found[nodes.label(self.constraint.topology_key).codes == MISSING] = 0.0
        return found

    def spread_out(self, scores: Spread, nodes: NodeTable) -> Spread:
        return scores


class SpreadScoreState:
    """What PreScore found out for a pod with soft constraints."""

    def __init__(
        self,
        pod: PodInfo,
        constraints: Sequence[SpreadConstraint],
        nodes: NodeTable,
        row_counts: RowCounts,
        requires_all: bool,
    ) -> None:
        self.constraints = constraints
        whole = nodes.whole
        complete = with_all_keys(constraints, whole) if requires_all else np.ones(len(whole), dtype=np.bool_)
        self._complete = None if complete.all() else complete
        self._counted = CountedPods(pod.namespace, constraints)
        policies = InclusionPolicies(pod, whole)
        self._domains: list[ScoredDomains | ScoredHosts] = []
        for constraint in constraints:
            counts = row_counts.of(constraint.selector)
            column = whole.label(constraint.topology_key)
            if constraint.topology_key == HOSTNAME_LABEL:
                self._domains.append(ScoredHosts(constraint, column, counts))
            else:
                included = complete & policies.included(constraint)
                self._domains.append(ScoredDomains(constraint, column, included, counts))

    def follow(self, changes: Sequence[PodChange]) -> None:
        """Pods came to rows, or left them."""
        for numbers, row, by in self._counted.among(changes):
            for number in numbers:
                self._domains[number].change(row, by)

    def scores(self, nodes: NodeTable) -> Scores:
        """Rounded once all constraints are added up; of a single one, domain by domain."""
        scored = self._scored(nodes)
        first, *others = self._domains
        if others:
            total = first.spread_out(first.scores(nodes, scored), nodes)
            for domains in others:
                total = total + domains.spread_out(domains.scores(nodes, scored), nodes)
            found = _rounded(total)
        else:
            found = first.spread_out(_rounded(first.scores(nodes, scored)), nodes)
        if scored is not None:
            found[~scored] = 0
        return found

    def normalize(self, nodes: NodeTable, scores: Scores) -> Scores:
        scored = self._scored(nodes)
        considered = scores if scored is None else scores[scored]
        highest = int(considered.max()) if len(considered) else 0
        if highest == 0:
            normalized = np.full_like(scores, MAX_NODE_SCORE)
        else:
            normalized = (highest + int(considered.min())) - scores
            normalized *= MAX_NODE_SCORE
            normalized //= highest
        if scored is not None:
            normalized[~scored] = 0
        return normalized

    def _scored(self, nodes: NodeTable) -> BoolArray | None:
        """(n_nodes,) nodes that get a score: those with every topology label, where that is required; None for all."""
        if self._complete is None:
            return None
        return self._complete.take(nodes.rows)


def _weighted(counts: FloatArray, n_domains: int, constraint: SpreadConstraint) -> FloatArray:
    found = counts * math.log(n_domains + 2)
    # maxSkew is added so that small differences weigh less where a larger skew is tolerated.
    found += constraint.max_skew - 1
    return found


def _n_distinct(codes: CodeArray) -> int:
    if not len(codes):
        return 0
    return int(np.count_nonzero(np.bincount(codes + 1)))


def _rounded(numbers: FloatArray) -> Scores:
    """To the nearest integer, halves upwards; numbers are not negative, and not kept."""
    whole = np.floor(numbers)
    numbers -= whole
    whole += numbers >= 0.5
    return whole.astype(np.int64)
