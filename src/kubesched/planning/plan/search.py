"""From proposals to the cheapest mix that the scheduler accepts: verify, repair, improve.

Feasibility is not monotone: one node more can break a placement. So nothing is concluded from a neighbour; whatever
is accepted was judged itself. Where many neighbours are cheaper, they are probed by halves, from the dear end to the
cheap one, since most of the time the dear ones do hold the pods.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from kubesched.k8s.model.meta import PodKey
from kubesched.planning.plan.bounds import CostBound, free_value
from kubesched.planning.plan.judge import Mix, MixJudge, MixVerdict
from kubesched.planning.plan.model import BuyingOption, Ints, PackingModel
from kubesched.planning.plan.packing import by_value, counts_of, is_within_limits

_MOST_REPAIRS = 24
_FEW_REPAIRS = 2
"""For a proposal where there is a plan already."""
_PAIRS_TRIED = 400
TURN_ENDS = (0.35, 0.61, 0.77, 0.87, 0.95)
"""Which share of the nodes is filled in the first turn, in the first two, and so on."""


class StoppedError(Exception):
    """The search is to end now, with what it has: the time is over, or somebody pressed Ctrl-C."""


@dataclass(slots=True)
class MixSearch:
    model: PackingModel
    judge: MixJudge
    bound: CostBound
    n_options: int
    """Of the catalogue."""
    zone_matters: bool = False
    """Whether nodes that differ in the zone alone are different for the pods."""
    most_nodes: int | None = None
    max_types: int | None = None
    least: dict[tuple[str | None, str | None], int] = field(default_factory=dict)
    """How many nodes there must be at least, by (pool, zone); None stands for any."""
    pools: tuple[str, ...] = ()
    """Of each option of the catalogue."""
    turns: int = 1
    """In which nodes are filled; each offer is an option once for every turn, and `n_options` counts all of these."""
    values: Ints = field(init=False)
    best: MixVerdict | None = None
    lost_to_scheduler: int = 0
    """Mixes that hold all pods if these are packed, and on which the scheduler did not place them all."""
    _class_of: dict[PodKey, int] = field(init=False)
    _prices: list[int] = field(init=False)
    _group_of: list[int] = field(init=False)
    _need: int | Fraction = field(init=False)

    def __post_init__(self) -> None:
        self._class_of = {key: c for c, one in enumerate(self.model.classes) for key in one.pods}
        self._prices = [0] * self.n_options
        self._group_of = [-1] * self.n_options
        for group, option in enumerate(self.model.options):
            for member in option.members:
                self._prices[member] = option.price
                self._group_of[member] = group
        self.take_bound(self.bound)

    def take_bound(self, bound: CostBound) -> None:
        """A better one."""
        self.bound = bound
        self.values = np.array(bound.values, dtype=np.int64)
        free = sum((free_value(self.model, room, self.values) for room in self.model.existing), Fraction(0))
        self._need = int(self.values @ self.model.demand) - free

    # -- mixes ---------------------------------------------------------------------------------------------------------

    def cost(self, mix: Mix) -> int:
        return sum(n * p for n, p in zip(mix, self._prices, strict=True))

    def rank(self, mix: Mix) -> tuple[object, ...]:
        """At equal cost: fewer nodes, then fewer types, then more zones, then the order of the catalogue."""
        groups = {self._group_of[o] for o, n in enumerate(mix) if n}
        return self.cost(mix), sum(mix), len(groups), -len(self._zones(mix)), tuple(-n for n in mix)

    def _zones(self, mix: Mix) -> set[str]:
        return {self.zone_of(o) for o, n in enumerate(mix) if n}

    def zone_of(self, option: int) -> str:
        group = self.model.options[self._group_of[option]]
        return group.zones[group.members.index(option)]

    def counts(self, mix: Mix) -> tuple[int, ...]:
        found = [0] * len(self.model.options)
        for option, n in enumerate(mix):
            if n:
                found[self._group_of[option]] += n
        return tuple(found)

    def counts_by_turn(self, mix: Mix) -> list[tuple[int, ...]]:
        starts = range(0, self.n_options, self.n_offers)
        alone = [tuple(n if 0 <= o - start < self.n_offers else 0 for o, n in enumerate(mix)) for start in starts]
        return [self.counts(one) for one in alone]

    def spread_by_turn(self, counts: Sequence[Sequence[int]]) -> Mix | None:
        mix: Mix | None = None
        for turn, one in enumerate(counts):
            mix = self.spread(one, mix, turn=turn)
            if mix is None:
                return None
        return mix

    @property
    def n_offers(self) -> int:
        """Options without regard to the turn."""
        return self.n_options // self.turns

    def spread(self, counts: Sequence[int], base: Mix | None = None, but: str = "", turn: int = 0) -> Mix | None:
        """So many nodes of each kind, over the zones as evenly as can be, on top of `base`, none in zone `but`, all to
        be filled in this turn. None if there are not so many to be had."""
        mix = list(base or (0,) * self.n_options)
        in_zone: dict[str, int] = {}
        for option, n in enumerate(mix):
            if n:
                in_zone[self.zone_of(option)] = in_zone.get(self.zone_of(option), 0) + n
        for group, count in enumerate(counts):
            one = self.model.options[group]
            members = [k for k, member in enumerate(one.members) if member // self.n_offers == turn]
            for _ in range(count):
                choices = [
                    (in_zone.get(one.zones[k], 0), k)
                    for k in members
                    if (not but or one.zones[k] != but)
                    and (one.available[k] is None or self._n_bought(mix, one.members[k]) < (one.available[k] or 0))
                ]
                if not choices:
                    return None
                _, k = min(choices)
                mix[one.members[k]] += 1
                in_zone[one.zones[k]] = in_zone.get(one.zones[k], 0) + 1
        return tuple(mix)

    def in_turn(self, mix: Mix, ends: Sequence[float] = TURN_ENDS) -> Mix:
        """The nodes of the first turn over all turns, so many of each kind in each turn as `ends` say."""
        if self.turns == 1:
            return mix
        found = list(mix)
        for option, n in enumerate(mix[: self.n_offers]):
            found[option] = 0
            for k in range(n):
                turn = int(np.searchsorted(ends, (k + 0.5) / n, side="right"))
                found[option + min(turn, self.turns - 1) * self.n_offers] += 1
        return tuple(found)

    def _n_bought(self, mix: Sequence[int], option: int) -> int:
        """Of the same offer, whatever the turn."""
        return sum(mix[option % self.n_offers :: self.n_offers])

    def is_allowed(self, mix: Mix) -> bool:
        if self.most_nodes is not None and sum(mix) > self.most_nodes:
            return False
        if self.max_types is not None and sum(1 for n in self.counts(mix) if n) > self.max_types:
            return False
        for group in self.model.options:
            for member, available in zip(group.members, group.available, strict=True):
                if available is not None and self._n_bought(mix, member) > available:
                    return False
        if any(self._how_many(mix, pool, zone) < n for (pool, zone), n in self.least.items()):
            return False
        return is_within_limits(self.model, self.counts(mix))

    def _how_many(self, mix: Mix, pool: str | None, zone: str | None) -> int:
        return sum(n for o, n in enumerate(mix) if n and self._is_in(o, pool, zone))

    def _is_in(self, option: int, pool: str | None, zone: str | None) -> bool:
        in_pool = pool is None or self.pools[option] == pool
        return in_pool and (zone is None or self.zone_of(option) == zone)

    def completed(self, mix: Mix) -> Mix:
        """With the cheapest nodes that there must be anyway."""
        for (pool, zone), least in self.least.items():
            inside = [m for group in self.model.options for m in group.members if self._is_in(m, pool, zone)]
            missing = least - self._how_many(mix, pool, zone)
            if missing > 0 and inside:
                mix = _changed(mix, min(inside, key=lambda o: (self._prices[o], o)), missing)
        return mix

    def could_hold(self, mix: Mix) -> bool:
        """Whether the machines are worth as much as the pods, by the values of the bound: if not, no scheduler could
        place all pods on them."""
        return sum(n * m for n, m in zip(self.counts(mix), self.bound.most, strict=True)) >= self._need

    # -- verify and repair ---------------------------------------------------------------------------------------------

    def propose(self, mix: Mix) -> bool:
        """Judges a mix, repairs it if need be, and keeps it if it is the best. Whether it is."""
        most = _MOST_REPAIRS if self.best is None else _FEW_REPAIRS
        n_pending: int | None = None
        in_vain: set[int] = set()
        for number in range(most):
            if self.best is not None and self.rank(mix) >= self.rank(self.best.mix):
                return False
            if not self.is_allowed(mix):
                return False
            verdict = self.judge.verdict(mix)
            if verdict.is_yes:
                self.best = verdict
                return True
            self.lost_to_scheduler += 1
            if n_pending is not None and len(verdict.pending) >= n_pending:
                in_vain.update(group for group, n in enumerate(self.counts(mix)) if n)
            n_pending = len(verdict.pending)
            repaired = self.repaired(mix, verdict, 1 + number // 2, in_vain)
            if repaired is None:
                return False
            mix = repaired
        return False

    def repaired(self, mix: Mix, verdict: MixVerdict, times: int, in_vain: Collection[int] = ()) -> Mix | None:
        """With the cheapest nodes on which so many times as many fit as found none; of kinds of which more did not help
        `in_vain`, only if no others could hold the pods."""
        left = np.zeros(len(self.model.classes), dtype=np.int64)
        for key in verdict.pending:
            c = self._class_of.get(key)
            if c is not None:
                left[c] += times
        if not left.any():
            return None
        failed_zone = verdict.failure.removeprefix("zone ") if verdict.failure.startswith("zone ") else ""
        outside = np.array([any(zone != failed_zone for zone in one.zones) for one in self.model.options])
        if failed_zone and not (self.model.most[left > 0][:, outside] > 0).any(axis=1).all():
            return None
        worth = np.maximum(self.values.astype(np.float64), 1.0)
        others = outside & ~np.isin(np.arange(len(outside)), list(in_vain))
        added = by_value(self.model, worth, left, among=others) if in_vain else None
        if added is None:
            added = by_value(self.model, worth, left, among=outside)
        if added is None:
            return None
        return self.spread(counts_of(self.model, added), mix, but=failed_zone, turn=self.turns - 1)

    # -- improve -------------------------------------------------------------------------------------------------------

    def improve(self) -> None:
        """Drops nodes, and exchanges them for cheaper ones, as long as the scheduler accepts it."""
        if self.best is None:
            return
        while self._step():
            pass
        self.even_out()

    def even_out(self) -> None:
        """The same machines in more zones, if the scheduler accepts that, too."""
        assert self.best is not None
        even = self.spread_by_turn(self.counts_by_turn(self.best.mix))
        if even is not None:
            self._try(even)

    def _step(self) -> bool:
        assert self.best is not None
        if self.cost(self.best.mix) <= self.bound.cost:
            return False
        start = self.best
        near = (mix for mix in set(self._neighbours(start.mix)) if self._is_worth_a_trial(mix))
        cheaper = sorted(near, key=self.rank, reverse=True)
        # By halves: a yes leads to the cheaper half, a no to the dearer one.
        low, high = 0, len(cheaper)
        while low < high:
            middle = (low + high) // 2
            if self._try(cheaper[middle]):
                low = middle + 1
            else:
                high = middle
        if self.best is start:
            return any(self._try(mix) for mix in cheaper[: self._patience])
        return True

    @property
    def _patience(self) -> int:
        """How many neighbours are tried one by one when the halves gave nothing; fewer where a trial is dear."""
        return max(4, 200_000 // max(1, self.model.n_pods))

    def _is_worth_a_trial(self, mix: Mix) -> bool:
        assert self.best is not None
        return self.rank(mix) < self.rank(self.best.mix) and self.is_allowed(mix) and self.could_hold(mix)

    def judged(self, mix: Mix) -> bool:
        """Whether the scheduler accepts a mix; it is kept if it is the best."""
        if not self.is_allowed(mix) or not self.could_hold(mix):
            return False
        verdict = self.judge.verdict(mix)
        if verdict.is_yes and (self.best is None or self.rank(mix) < self.rank(self.best.mix)):
            self.best = verdict
        return verdict.is_yes

    def _try(self, mix: Mix) -> bool:
        if not self._is_worth_a_trial(mix):
            return False
        verdict = self.judge.verdict(mix)
        if verdict.is_yes:
            self.best = verdict
        return verdict.is_yes

    def _neighbours(self, mix: Mix) -> Iterator[Mix]:
        """One node less; one exchanged for a cheaper one; two for one; one for two cheaper ones."""
        present = [o for o, n in enumerate(mix) if n]
        offers = [member for group in self.model.options for member in group.members]
        for o in present:
            less = _changed(mix, o, -1)
            yield less
            for other in offers:
                if self._may_replace(o, other) and self._prices[other] <= self._prices[o]:
                    yield _changed(less, other, 1)
        n_pairs = 0
        for a, o in enumerate(present):
            for other in present[a:]:
                if o == other and mix[o] < 2:
                    continue
                less = _changed(_changed(mix, o, -1), other, -1)
                together = self._prices[o] + self._prices[other]
                for one in offers:
                    if self._prices[one] <= together and self._prices[one] > max(self._prices[o], self._prices[other]):
                        yield _changed(less, one, 1)
                        n_pairs += 1
            if n_pairs > _PAIRS_TRIED:
                break
        firsts = [member for group in self.model.options for member in (group.members[0], self._last_turn_of(group))]
        firsts = list(dict.fromkeys(firsts))
        n_pairs = 0
        for o in sorted(present, key=lambda o: -self._prices[o]):
            less = _changed(mix, o, -1)
            for a, one in enumerate(firsts):
                for two in firsts[a:]:
                    if self._prices[one] + self._prices[two] < self._prices[o]:
                        yield _changed(_changed(less, one, 1), two, 1)
                        n_pairs += 1
            if n_pairs > _PAIRS_TRIED:
                break

    def _last_turn_of(self, group: BuyingOption) -> int:
        return group.members[0] + (self.turns - 1) * self.n_offers

    def _may_replace(self, old: int, new: int) -> bool:
        """Where zones do not matter, it is enough to stay in the zone, or to take the first that has it; and to stay in
        the turn, or to be filled last."""
        if old % self.n_offers == new % self.n_offers or new // self.n_offers not in (
            old // self.n_offers,
            self.turns - 1,
        ):
            return False
        if self.zone_matters or self.zone_of(old) == self.zone_of(new):
            return True
        group = self.model.options[self._group_of[new]]
        return self.zone_of(old) not in group.zones and new % self.n_offers == group.members[0]


def _changed(mix: Mix, option: int, by: int) -> Mix:
    return (*mix[:option], mix[option] + by, *mix[option + 1 :])
