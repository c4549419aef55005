"""Hard constraints: how many matching pods each domain holds, and on which nodes one more would be too many.

A node passes a constraint if the matching pods in its domain, with the pod itself where it matches, exceed those of the
emptiest domain by at most `maxSkew`. State is one array per constraint, indexed by the code of the topology label's
value, so that the filter is a gather.

Two things are as kube-scheduler has them, surprising or not: pods being deleted are not counted, but adding or removing
one counts like any other; and a selector that selects everything counts no pod, but matches the pod itself.

Next: `scoring` for the soft constraints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kubesched.framework.caching import PodChange
from kubesched.framework.group_room import GroupRoom, PlacementDomains
from kubesched.framework.nodes import MISSING, CodeArray, Column, IntArray, NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.verdicts import BoolArray, Verdicts
from kubesched.scheduler.plugins.pod_topology_spread.constraints import (
    CountedPods,
    InclusionPolicies,
    RowCounts,
    SpreadConstraint,
    with_all_keys,
)

REASON_CONSTRAINTS = "node(s) didn't match pod topology spread constraints"
REASON_MISSING_LABEL = f"{REASON_CONSTRAINTS} (missing required label)"

_NO_DOMAIN = 2**31 - 1
"""What the emptiest of no domains holds."""


class ConstraintDomains:
    """The domains of one constraint, and how many matching pods each holds."""

    __slots__ = (
        "_codes",
        "_counts",
        "_eligible",
        "_has_unlabelled",
        "_levels",
        "_lowest",
        "_populated",
        "_room",
        "_too_few",
        "constraint",
    )

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
        self._room = constraint.max_skew - self_match
        self._has_unlabelled = bool((column.codes == MISSING).any())
        counted = column.codes[eligible]
        n_values = len(column.values)
        # One entry more than there are values: the code `MISSING` finds it, and it stays 0.
        self._counts = np.zeros(n_values + 1, dtype=np.int64)
        self._counts[:-1] = np.bincount(counted, weights=row_counts[eligible], minlength=n_values)
        self._populated = np.zeros(n_values + 1, dtype=np.bool_)
        self._populated[counted] = True
        held = self._counts[self._populated]
        self._too_few = len(held) < constraint.min_domains
        self._lowest = int(held.min(initial=_NO_DOMAIN))
        self._levels: Counter[int] | None = None

    @property
    def codes(self) -> CodeArray:
        """The domain of each row."""
        return self._codes

    def unlabelled(self, codes: CodeArray) -> BoolArray | None:
        """Which of these nodes are in no domain; None if no node at all is."""
        return codes == MISSING if self._has_unlabelled else None

    def too_many(self, codes: CodeArray) -> BoolArray | None:
        """Which of these domains could not take the pod; None if all of them could."""
        full = self._counts > self._room + self._global_minimum()
        full[MISSING] = False
        return full.take(codes) if full.any() else None

    def change(self, row: int, by: int) -> None:
        """A matching pod comes to a row, or leaves it: one domain moves up or down by one level."""
        if not self._eligible[row]:
            return
        levels = self._levels
        if levels is None:
            levels = self._levels = Counter(self._counts[self._populated].tolist())
        code = self._codes[row]
        before = int(self._counts[code])
        after = before + by
        self._counts[code] = after
        levels[before] -= 1
        levels[after] += 1
        if not levels[before]:
            del levels[before]
        if after < self._lowest or (before == self._lowest and before not in levels):
            self._lowest = after

    def taken(self, room: IntArray) -> IntArray | None:
        """Copies of the pod come until none fits: how many each domain takes (by code), where its nodes have room for
        so many (by row). That is the same in whatever order they come: in the end the emptiest domain is full, and
        the others are full, too, or have as many more as they may. None if a node has room that counts nowhere."""
        if room[~self._eligible].any():
            return None
        n = len(self._counts)
        whole = np.bincount(self._codes[self._eligible], weights=room[self._eligible], minlength=n).astype(np.int64)
        counts = self._counts
        if self._room == self.constraint.max_skew or self.constraint.selector.is_everything:  # copies do not count
            return np.where(counts > self._room + self._global_minimum(), 0, whole)
        full = counts + whole
        lowest = 0 if self._too_few else int(full[self._populated].min(initial=_NO_DOMAIN))
        most: IntArray = np.maximum(np.minimum(full, lowest + self.constraint.max_skew), counts) - counts
        return most

    def limit(self, room: IntArray) -> SpreadLimit | None:
        """For pods of a group that are all counted here, where nodes have room for so many; None if a node has that
        counts nowhere."""
        if room[~self._eligible].any():
            return None
        lowest = 0 if self._too_few else None
        return SpreadLimit(
            self._codes, self._counts, self._populated, self.constraint.max_skew, self._global_minimum(), lowest
        )

    def is_open_to_more(self) -> BoolArray | None:
        """(n_rows,) where the constraint would let a pod in, as things are now; None for everywhere."""
        too_many = self.too_many(self._codes)
        return None if too_many is None else ~too_many

    def is_as_in(self, other: ConstraintDomains) -> bool:
        """Whether the same nodes count."""
        return np.array_equal(self._eligible, other._eligible)

    def _global_minimum(self) -> int:
        """Matching pods in the emptiest domain; with fewer domains than asked for, one is taken to be empty."""
        return 0 if self._too_few else self._lowest


@dataclass(frozen=True, slots=True)
class SpreadLimit:
    """Of pods of a group that all count: how many each domain takes, as long as the placement is full."""

    codes: CodeArray
    counts: IntArray
    """By code, with one entry more for nodes that are in no domain."""
    populated: BoolArray
    max_skew: int
    lowest_now: int
    lowest: int | None
    """What the emptiest domain holds, if that is known whatever comes."""
    is_for_each: ClassVar[bool] = True

    def most(self, domains: PlacementDomains, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray] | None:
        """As `ConstraintDomains.taken`: in the end the emptiest domain has no more room, and the others are full, too,
        or hold as many more as they may."""
        elsewhere = domains.lowest_elsewhere(self.counts, self.populated, _NO_DOMAIN)
        if elsewhere is None:
            return None
        return self._taken(domains, low, elsewhere), self._taken(domains, high, elsewhere)

    def least_most(self, domains: PlacementDomains, low: IntArray) -> IntArray:
        held = self.counts.take(domains.codes)
        return self._up_to(self.lowest_now + self.max_skew, held, low, domains)

    def _taken(self, domains: PlacementDomains, room: IntArray, elsewhere: IntArray) -> IntArray:
        held = self.counts.take(domains.codes)
        if self.lowest is not None:
            return self._up_to(self.lowest + self.max_skew, held, room, domains)
        lowest = elsewhere.copy()
        full = np.where(self.populated.take(domains.codes), held + room, _NO_DOMAIN)
        np.minimum.at(lowest, domains.parts, full)
        return self._up_to(lowest.take(domains.parts) + self.max_skew, held, room, domains)

    def _up_to(self, top: IntArray | int, held: IntArray, room: IntArray, domains: PlacementDomains) -> IntArray:
        taken = np.maximum(np.minimum(held + room, top), held) - held
        return np.where(domains.codes == MISSING, 0, taken)


class SpreadFilterState:
    """What PreFilter found out for a pod with hard constraints."""

    def __init__(
        self, pod: PodInfo, constraints: Sequence[SpreadConstraint], nodes: NodeTable, row_counts: RowCounts
    ) -> None:
        self.constraints = constraints
        whole = nodes.whole
        complete = with_all_keys(constraints, whole)
        policies = InclusionPolicies(pod, whole)
        self._counted = CountedPods(pod.namespace, constraints)
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
        """As if a pod of the same namespace came to a row, or left it."""
        for domains in self._domains:
            if domains.constraint.selector.matches(pod.labels):
                domains.change(row, by)

    def follow(self, changes: Sequence[PodChange]) -> None:
        """Pods did come to rows, or leave them."""
        for numbers, row, by in self._counted.among(changes):
            for number in numbers:
                self._domains[number].change(row, by)

    def bound(self, room: GroupRoom, others: Sequence[SpreadFilterState]) -> bool:
        """What the constraints leave of the room, if they are the same for all pods of the group, and count them all or
        none; `others` is what was found out for the others."""
        if any(other.constraints != self.constraints for other in others):
            return False
        kinds = room.representatives(lambda pod: pod.signature.label_class)
        room.limit_to(with_all_keys(self.constraints, room.nodes))
        for number, domains in enumerate(self._domains):
            if any(not domains.is_as_in(other._domains[number]) for other in others):
                return False
            selector = domains.constraint.selector
            counted = {selector.matches(kind.pod.labels) and not selector.is_everything for kind in kinds}
            if counted == {False}:
                room.limit_to(domains.is_open_to_more())  # it stays so: none of them counts
                continue
            limit = domains.limit(room.high)
            if limit is None or len(counted) > 1:
                return False
            room.limit_domains(limit)
        return True

    @property
    def only_domains(self) -> ConstraintDomains | None:
        """Of the constraint, if there is no other."""
        return self._domains[0] if len(self._domains) == 1 else None

    def verdicts(self, nodes: NodeTable) -> Verdicts:
        """The first constraint that a node does not meet gives the reason."""
        unlabelled: BoolArray | None = None
        skewed: BoolArray | None = None
        for domains in self._domains:
            codes = nodes.label(domains.constraint.topology_key).codes
            unlabelled = _joined(unlabelled, domains.unlabelled(codes), skewed)
            skewed = _joined(skewed, domains.too_many(codes), unlabelled)
        findings = ((REASON_MISSING_LABEL, unlabelled, True), (REASON_CONSTRAINTS, skewed, False))
        return Verdicts.combine((reason, mask, flag) for reason, mask, flag in findings if mask is not None)


def _joined(mask: BoolArray | None, more: BoolArray | None, other: BoolArray | None) -> BoolArray | None:
    """The nodes of the mask, and more of them, as far as they are not among the others."""
    if more is None:
        return mask
    if other is not None:
        more = more & ~other
    return more if mask is None else mask | more
