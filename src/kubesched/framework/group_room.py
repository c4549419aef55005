"""How many pods of a group find room in each of many placements: bounds that plugins give before any pod is placed.

Pods of a group are placed one after another, and which node is chosen for which is a matter of scores. Two numbers hold
whatever is chosen: so many pods find a node at least (`low`), and at most (`high`). Where both are the same, so many
pods find one: the first so many, since a pod is turned away only once there are that many.

A filter says by node, or by the domains of a topology, how many of the pods there may be.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.extension_points import Filter
from kubesched.framework.nodes import MISSING, CodeArray, IntArray, NodeTable, RowArray, RowSets
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.verdicts import BoolArray

_MOST_PAIRS = 4_000_000


@dataclass(frozen=True, slots=True)
class GroupKind:
    """Pods of a group with one signature, after PreFilter ran for one of them."""

    pod: PodInfo
    cycle: CycleState
    n_pods: int
    is_open: BoolArray
    """(n_rows,) where one of them could go now, but for filters that may reopen nodes."""


@dataclass(frozen=True, slots=True)
class PlacementDomains:
    """The domains of one topology within the placements: a pair for each placement and each domain that it has nodes
    in."""

    parts: RowArray
    """(n_pairs,) the placement, ascending."""
    codes: CodeArray
    """(n_pairs,) the domain; MISSING for nodes that are in none."""
    pairs: RowArray
    """(n,) the pair of each row of the placements, in their order."""
    n_parts: int

    @property
    def is_by_node(self) -> bool:
        """Whether every node is a domain of its own."""
        return len(self.parts) == len(self.pairs)

    @property
    def is_by_part(self) -> bool:
        """Whether every placement lies within one domain."""
        return len(self.parts) == self.n_parts

    def gather(self, by_row: IntArray) -> IntArray:
        """(n_pairs,) the sum over the nodes of each, of numbers in the order of `pairs`."""
        return np.bincount(self.pairs, weights=by_row, minlength=len(self.parts)).astype(np.int64)

    def sum_up(self, by_pair: IntArray) -> IntArray:
        """(n_parts,)"""
        return np.bincount(self.parts, weights=by_pair, minlength=self.n_parts).astype(np.int64)

    def lowest_elsewhere(self, numbers: IntArray, counts: BoolArray, none: int) -> IntArray | None:
        """(n_parts,) the lowest of the numbers (by code) among the domains that count and that the placement has no
        nodes in; `none` if there are none. None if that takes too long to find out."""
        known = np.flatnonzero(counts)
        found: IntArray = np.full(self.n_parts, none, dtype=np.int64)
        if not len(known):
            return found
        lowest = int(numbers[known].min())
        is_lowest = counts & (numbers == lowest)
        here = self.sum_up((is_lowest.take(self.codes) & (self.codes != MISSING)).astype(np.int64))
        elsewhere = here < int(np.count_nonzero(is_lowest))
        found[elsewhere] = lowest
        rest = np.flatnonzero(~elsewhere)
        if len(rest) * len(numbers) > _MOST_PAIRS:
            return None
        for part in rest.tolist():
            others = counts.copy()
            others[self.codes[self.parts == part]] = False
            if others.any():
                found[part] = int(numbers[others].min())
        return found


class DomainLimit(Protocol):
    """How many pods of a group may be in the domains of one topology."""

    @property
    def codes(self) -> CodeArray:
        """(n_rows,) the domain of each node."""
        ...

    @property
    def is_for_each(self) -> bool:
        """Whether it is said of each domain by itself, not of all of them together."""
        ...

    def most(self, domains: PlacementDomains, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray] | None:
        """(n_pairs,) how many pods each domain takes at least and at most, within the placement, where its nodes have
        room for between `low` and `high` of them. None if that cannot be said."""
        ...

    def least_most(self, domains: PlacementDomains, low: IntArray) -> IntArray:
        """(n_pairs,) how many it takes before it turns one away, whatever becomes of the other domains."""
        ...


Limited = tuple[DomainLimit, PlacementDomains]


@dataclass(frozen=True, slots=True)
class FixedLimit:
    """The same number for every domain; nodes that are in none are not limited."""

    codes: CodeArray
    low: int
    high: int | None
    """None: as many as there is room for."""
    is_for_each: ClassVar[bool] = True

    def most(self, domains: PlacementDomains, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
        is_none = domains.codes == MISSING
        limited = high if self.high is None else np.where(is_none, high, np.minimum(high, self.high))
        return self.least_most(domains, low), limited

    def least_most(self, domains: PlacementDomains, low: IntArray) -> IntArray:
        return np.where(domains.codes == MISSING, low, np.minimum(low, self.low))


@dataclass(frozen=True, slots=True)
class OneDomain:
    """All pods go to one domain; which one is not known."""

    codes: CodeArray
    is_for_each: ClassVar[bool] = False

    def most(self, domains: PlacementDomains, low: IntArray, high: IntArray) -> tuple[IntArray, IntArray]:
        """What a domain takes counts for the placement once only: for the smallest that may be it, or the largest."""
        return _only(domains, np.where(high > 0, low, _FAR), low, np.minimum), _only(domains, high, high, np.maximum)

    def least_most(self, domains: PlacementDomains, low: IntArray) -> IntArray:
        return low if domains.is_by_part else np.zeros_like(low)


_FAR = 2**40


def _only(domains: PlacementDomains, numbers: IntArray, values: IntArray, pick: np.ufunc) -> IntArray:
    """The values of one pair for each placement, that with the lowest or highest number, and 0 for the others."""
    starts = np.flatnonzero(np.diff(domains.parts, prepend=-1))
    picked = pick.reduceat(numbers, starts)
    found = np.zeros_like(values)
    found[starts] = np.where(picked == _FAR, 0, picked)
    return found


class GroupRoom:
    """What filters say, one after another. `low` and `high` are by row, and only ever narrowed."""

    def __init__(self, nodes: NodeTable, kinds: Sequence[GroupKind], parts: RowSets) -> None:
        self.nodes = nodes
        self.kinds = kinds
        self.parts = parts
        self.n_pods = sum(kind.n_pods for kind in kinds)
        every, some = (np.logical_and, np.logical_or)
        n = self.n_pods
        self.low: IntArray = every.reduce([kind.is_open for kind in kinds]).astype(np.int64) * n
        self.high: IntArray = some.reduce([kind.is_open for kind in kinds]).astype(np.int64) * n
        self._most: IntArray | None = None
        self._limits: list[DomainLimit] = []

    # -- what filters say ----------------------------------------------------------------------------------------------

    def limit_rows(self, low: IntArray | int, high: IntArray | int | None) -> None:
        """A node turns no pod away before it has `low` of them, and takes no more than `high`."""
        self.low = np.minimum(self.low, np.maximum(low, 0))
        if high is not None:
            self.high = np.minimum(self.high, np.maximum(high, 0))

    def limit_to(self, is_open: BoolArray | None) -> None:
        """No pod goes to other nodes than these; None: to any."""
        if is_open is not None:
            self.low, self.high = np.where(is_open, self.low, 0), np.where(is_open, self.high, 0)

    def limit_parts(self, high: IntArray) -> None:
        """A placement takes no more than that."""
        self._most = high if self._most is None else np.minimum(self._most, high)

    def limit_domains(self, limit: DomainLimit) -> None:
        self._limits.append(limit)

    def representatives(self, key: Callable[[PodInfo], Hashable]) -> list[GroupKind]:
        """One kind of those that are alike in this, with the number of all their pods."""
        found: dict[Hashable, GroupKind] = {}
        for kind in self.kinds:
            what = key(kind.pod)
            known = found.get(what)
            if known is None:
                found[what] = kind
            else:
                found[what] = GroupKind(known.pod, known.cycle, known.n_pods + kind.n_pods, known.is_open)
        return list(found.values())

    def pairs(self, key: Callable[[PodInfo], Hashable]) -> Iterator[tuple[GroupKind, GroupKind]]:
        """Any two pods that may meet, of each sort once."""
        kinds = self.representatives(key)
        for place, one in enumerate(kinds):
            if one.n_pods > 1:
                yield one, one
            for other in kinds[place + 1 :]:
                yield one, other

    # -- what follows --------------------------------------------------------------------------------------------------

    def bounds(self) -> tuple[IntArray, IntArray]:
        """(n_parts,) how many pods find a node at least, and at most."""
        shared: list[Limited] = [(limit, self._domains(limit.codes)) for limit in self._limits]
        if len(shared) > 1:
            shared = self._narrow_rows(shared)
        rows = self.parts.rows
        low, high = self.low.take(rows), self.high.take(rows)
        least, most = self.parts.sums(self.low), self.parts.sums(self.high)
        within = [(limit, domains) for limit, domains in shared if domains.is_by_part]
        across = [(limit, domains) for limit, domains in shared if not domains.is_by_part]
        if len(across) > 1:
            least = np.zeros_like(least)
        for limit, domains in shared:
            found = limit.most(domains, domains.gather(low), domains.gather(high))
            if found is None:
                least = np.zeros_like(least)
                continue
            its_least = found[0]
            if len(shared) > 1 and domains.is_by_part and (across or len(within) > 1):
                its_least = limit.least_most(domains, domains.gather(low))
            least = np.minimum(least, domains.sum_up(its_least))
            most = np.minimum(most, domains.sum_up(found[1]))
        if self._most is not None:
            most = np.minimum(most, self._most)
        most = np.minimum(most, self._by_kinds())
        return np.minimum(least, most), most

    def _by_kinds(self) -> IntArray:
        """No more of a kind than there is room for where it may go."""
        if len(self.kinds) == 1:
            return np.minimum(self.parts.sums(self.high), self.n_pods)
        total: IntArray = np.zeros(len(self.parts), dtype=np.int64)
        for kind in self.kinds:
            total += np.minimum(self.parts.sums(np.where(kind.is_open, self.high, 0)), kind.n_pods)
        return total

    def _narrow_rows(self, shared: Sequence[Limited]) -> list[Limited]:
        """Limits by node are told first, and the others see what is left of each."""
        others: list[Limited] = []
        rows = self.parts.rows
        for limit, domains in shared:
            if not domains.is_by_node or not limit.is_for_each:
                others.append((limit, domains))
                continue
            low, high = domains.gather(self.low.take(rows)), domains.gather(self.high.take(rows))
            found = limit.most(domains, low, high)
            least = limit.least_most(domains, low) if found is not None else np.zeros_like(low)
            self.low[rows] = least.take(domains.pairs)
            if found is not None:
                self.high[rows] = found[1].take(domains.pairs)
        return others

    def _domains(self, codes: CodeArray) -> PlacementDomains:
        rows, numbers = self.parts.rows, self.parts.numbers
        n_codes = int(codes.max(initial=0)) + 2
        keys = numbers * n_codes + (codes.take(rows).astype(np.int64) + 1)
        known, pairs = np.unique(keys, return_inverse=True)
        return PlacementDomains(known // n_codes, (known % n_codes - 1).astype(codes.dtype), pairs, len(self.parts))


@runtime_checkable
class BoundsGroups(Filter, Protocol):
    """Of a filter whose answers depend on pods of the group that were placed before."""

    def bound_group(self, room: GroupRoom) -> bool:
        """Narrows the room; False if nothing can be said. Where it lets no pod in as things are now, the room has none.

        A filter that may let a pod in later where it does not now, because of the pods of the group that were placed
        meanwhile, has the attribute `reopens`: what it says as things are now is not in the room then."""
        ...
