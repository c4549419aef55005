"""Small cases to the end: every mix that is cheaper than the best one and could hold the pods at all is judged.

A cut gives each class a value: what the machines of a mix can hold at most must be worth what the pods are. The values
of the bound are one cut; sums of a resource, numbers of large pods and numbers of each class are others. A mix that
passes all cuts and all limits goes to the judge, the cheapest first; the first yes is the optimum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import ceil, comb, prod

import numpy as np

from kubesched.planning.plan.bounds import best_machine, free_value, surrogate_weights
from kubesched.planning.plan.model import Bools, Ints, PackingModel
from kubesched.planning.plan.packing import is_within_limits
from kubesched.planning.plan.search import MixSearch

MOST_MIXES = 20_000
_MOST_STEPS = 400_000
_MOST_CUTS = 40


@dataclass(frozen=True, slots=True)
class Cut:
    values: tuple[int, ...]
    """(n_classes,)"""
    weights: tuple[tuple[int, ...], ...]
    most: tuple[int, ...]
    """(n_options,) what a machine holds at most"""
    need: int
    """What all have to hold together."""


def cuts_of(model: PackingModel, values: Ints) -> list[Cut]:
    """The values of the bound first; then those that whole numbers of machines often trip over."""
    wanted: dict[tuple[int, ...], None] = {tuple(values.tolist()): None}
    patterns = {model.fits[c].tobytes() for c in range(len(model.classes))}
    for column in sorted(patterns):
        inside = np.array(
            [_only_in(model.fits[c], np.frombuffer(column, dtype=np.bool_)) for c in range(len(model.classes))]
        )
        for r in range(len(model.resources)):
            wanted.setdefault(tuple((model.requests[:, r] * inside).tolist()))
            for threshold in sorted(set(model.requests[inside, r].tolist()) - {0}, reverse=True)[:4]:
                wanted.setdefault(tuple(((model.requests[:, r] >= threshold) & inside).astype(np.int64).tolist()))
    for c in range(len(model.classes)):
        wanted.setdefault(tuple(int(k == c) for k in range(len(model.classes))))
    return [cut_of(model, np.array(one, dtype=np.int64)) for one in list(wanted)[:_MOST_CUTS] if any(one)]


def _only_in(fits: Bools, column: Bools) -> bool:
    return bool((~fits | column).all())


def cut_of(model: PackingModel, values: Ints, weights: tuple[tuple[int, ...], ...] | None = None) -> Cut:
    found = tuple(surrogate_weights(model, values.astype(np.float64))) if weights is None else weights
    most = tuple(best_machine(model, o, values, found[o], most_steps=2_000).most for o in range(len(model.options)))
    free = sum((free_value(model, room, values) for room in model.existing), Fraction(0))
    return Cut(tuple(values.tolist()), found, most, max(0, ceil(int(values @ model.demand) - free)))


def mixes_below(
    model: PackingModel, cuts: list[Cut], cost: int, most_nodes: int | None = None
) -> list[tuple[int, ...]] | None:
    """All numbers of each option that cost less, pass every cut and every limit; the cheapest first. None if there are
    too many to tell."""
    walk = _Walk(model, cuts)
    try:
        walk.go(0, cost - 1, 10**9 if most_nodes is None else most_nodes, [0] * len(cuts))
    except _TooManyError:
        return None
    return sorted(walk.found, key=lambda counts: (model.cost(counts), sum(counts), counts))


class _TooManyError(Exception):
    pass


class _Walk:
    """The dear options first; a branch ends where the money that is left cannot fill what a cut still needs."""

    def __init__(self, model: PackingModel, cuts: list[Cut]) -> None:
        self._model = model
        self._cuts = cuts
        self._prices = [int(p) for p in model.price]
        self._order = sorted(range(len(self._prices)), key=lambda o: (-self._prices[o], o))
        self._reach = [self._best_ratios(cut) for cut in cuts]
        self._counts = [0] * len(self._prices)
        self._steps = 0
        self.found: list[tuple[int, ...]] = []

    def _best_ratios(self, cut: Cut) -> list[Fraction]:
        """By position: the most that a unit of money brings among the options from there on."""
        best, found = Fraction(0), []
        for o in reversed(self._order):
            best = max(best, Fraction(cut.most[o], max(1, self._prices[o])))
            found.append(best)
        return [*reversed(found), Fraction(0)]

    def go(self, k: int, money: int, nodes: int, have: list[int]) -> None:
        self._steps += 1
        if self._steps > _MOST_STEPS or len(self.found) >= MOST_MIXES:
            raise _TooManyError
        for held, cut, reach in zip(have, self._cuts, self._reach, strict=True):
            if held < cut.need and held + reach[k] * money < cut.need:
                return
        if k == len(self._order):
            counts = tuple(self._counts)
            if is_within_limits(self._model, counts):
                self.found.append(counts)
            return
        o = self._order[k]
        price = self._prices[o]
        most = min(nodes, money // price if price else 0)
        for n in range(most, -1, -1):
            self._counts[o] = n
            inside = [held + n * cut.most[o] for held, cut in zip(have, self._cuts, strict=True)]
            self.go(k + 1, money - n * price, nodes - n, inside)
        self._counts[o] = 0


def exhaust(search: MixSearch, cuts: list[Cut], most_trials: int) -> tuple[bool, list[tuple[int, ...]]]:
    """Judges every mix that is cheaper than the best one and could hold the pods, in every distribution over zones.
    Whether all were judged, and those that were refused, by the numbers of each option of the model."""
    assert search.best is not None
    below = mixes_below(search.model, cuts, search.cost(search.best.mix), search.most_nodes)
    if below is None or sum(_n_distributions(search, counts) for counts in below) > most_trials:
        return False, []
    refused: list[tuple[int, ...]] = []
    for counts in below:
        for mix in _distributions(search, counts):
            if not search.is_allowed(mix):
                continue
            verdict = search.judge.verdict(mix)
            if verdict.is_yes:
                search.best = verdict
                search.even_out()
                return True, refused
        refused.append(counts)
    return True, refused


def _n_distributions(search: MixSearch, counts: Sequence[int]) -> int:
    return prod(comb(n + len(o.members) - 1, n) for n, o in zip(counts, search.model.options, strict=True))


def _distributions(search: MixSearch, counts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """The even one first, then all others."""
    even = search.spread(counts)
    if even is not None:
        yield even
    parts = [list(_parts(n, len(one.members))) for n, one in zip(counts, search.model.options, strict=True)]
    for chosen in product(*parts):
        mix = [0] * search.n_options
        for one, part in zip(search.model.options, chosen, strict=True):
            for member, n in zip(one.members, part, strict=True):
                mix[member] = n
        if tuple(mix) != even:
            yield tuple(mix)


def _parts(n: int, k: int) -> Iterator[tuple[int, ...]]:
    """All ways to write n as a sum of k numbers."""
    if k == 1:
        yield (n,)
        return
    for first in range(n, -1, -1):
        for rest in _parts(n - first, k - 1):
            yield first, *rest
