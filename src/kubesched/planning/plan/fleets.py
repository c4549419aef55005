"""Fleets: machines in fixed proportions, as many as the scheduler needs, and those that a rehearsal finds.

A scheduler that spreads pods leaves room on every machine, about as much as a large pod takes that comes late. On a
large machine that is a smaller share, so what is cheapest for a packing is not what is cheapest for a scheduler. Each
machine is therefore taken to be smaller by a share of the largest pod that may go there, and a linear program says in
which proportions to buy then; for several shares. How large the fleet has to be is asked of the scheduler, by halves.

One placement after another costs the judge what thousands of sums cost in a rehearsal of the scheduler's scores: all
fleets, and all orders in which the pods arrive, go forward together, one pod each at a time. What counts is what fits
and the scores of resources (LeastAllocated or whatever is configured, BalancedAllocation, soft taints of later turns),
ties by chance. Rules between pods of different nodes, nodes that are there and other scores are left out, so a
rehearsal only proposes; nothing is concluded from it.

The search keeps to a budget a little below the cheapest fleet that is known, changes fleets at random, and prefers
those that leave least; where none leaves anything, that is the next fleet to beat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from math import ceil

import numpy as np

from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.planning.plan import packing
from kubesched.planning.plan.judge import Mix
from kubesched.planning.plan.model import Floats, Ints, PackingModel
from kubesched.planning.plan.patterns import fluid_counts, has_solver
from kubesched.planning.plan.scoring import RehearsedScores
from kubesched.planning.plan.search import TURN_ENDS, MixSearch

_SPARE_PERCENT = (45, 20, 100, 70, 30, 8, 0)
"""Of the largest pod: how much room is left on each machine. What is most often best comes first."""
_SPARE_PERCENT_IN_TURN = (0, 8, 20, 45)
"""Where nodes are filled one after another, only the last ones have room left."""
_FINEST = 0.001
"""Of the cost: smaller differences between fleets are not looked for."""
_GROWTH = 1.06
_MOST_STEPS_UP = 40
_SINGLE_TYPES = 3
"""Kinds of machines of which alone a fleet is made."""


class FleetSearch:
    def __init__(
        self, search: MixSearch, left: PackingModel, told: Callable[[str], None], *, fills_evenly: bool = True
    ) -> None:
        """`left` has the pods that find no room on the nodes that are there."""
        is_tight = search.turns > 1 or not fills_evenly
        self._spare_percent = _SPARE_PERCENT_IN_TURN if is_tight else _SPARE_PERCENT
        self._search = search
        self._left = left
        self._told = told
        self._cheapest = int(left.price.min()) if len(left.price) else 0
        self.directions: list[Floats] = []
        """Numbers of machines, not whole, in the proportions that were tried."""
        self._untried = self._fleets() if left.demand.any() and len(left.options) else iter(())

    def first(self) -> None:
        """Until there is a plan."""
        for fleet in self._untried:
            if self._smallest(fleet):
                self._told("a fleet")
                return

    def all_directions(self) -> list[Floats]:
        """Also those that were not tried yet."""
        waiting = list(self._untried)
        self._untried = iter(waiting)
        return self.directions

    def rest(self) -> None:
        """All other proportions."""
        for fleet in self._untried:
            if self._smallest(fleet):
                self._told("a fleet")

    def _fleets(self) -> Iterator[Floats]:
        """(n_options,) numbers of machines, not whole, that would do if the scheduler left as much room as assumed."""
        known = self.directions
        alone = self._of_single_types()
        yield from islice(alone, 1)  # what others are compared with
        for percent in self._spare_percent:
            fleet = self._fleet(self._left.with_room_to_spare(percent))
            if fleet is not None and self._search.zone_matters:
                fleet = self._over_zones(fleet)
            if fleet is not None and not any(np.allclose(_direction(fleet), _direction(one)) for one in known):
                known.append(fleet)
                yield fleet
        yield from alone

    def _fleet(self, model: PackingModel) -> Floats | None:
        if has_solver():
            return fluid_counts(model)
        values = np.maximum(self._search.values.astype(np.float64), 1.0)
        packed = packing.by_value(model, values)
        return None if packed is None else np.array(packing.counts_of(model, packed), dtype=np.float64)

    def without_large_ones(self) -> Iterator[Floats]:
        """As if there were no machines larger than some size: on more and smaller ones, pods of which a node holds one
        find more nodes, and where nodes are filled one after another, less is lost on the last."""
        model = self._left
        cpu = model.capacity[:, model.resources.index(CPU)] if CPU in model.resources else model.capacity[:, 0]
        for size in sorted(set(cpu.tolist()), reverse=True)[1:]:
            small = cpu <= size
            fits = model.fits & small
            without = ~((model.most > 0) & small).any(axis=1)
            fits[without] = model.fits[without]
            fleet = self._fleet(replace(model, fits=fits))
            if fleet is not None:
                yield fleet

    def _over_zones(self, fleet: Floats) -> Floats:
        """As much in each zone, where the same machine is offered in several of them."""
        alike: dict[tuple[int, bytes], list[int]] = {}
        for option, price in enumerate(self._left.price.tolist()):
            alike.setdefault((price, self._left.capacity[option].tobytes()), []).append(option)
        even = fleet.copy()
        for members in alike.values():
            even[members] = fleet[members].mean()
        return even

    def _of_single_types(self) -> Iterator[Floats]:
        model = self._left.with_room_to_spare(_SPARE_PERCENT[0])
        total = model.demand @ model.requests
        holds_all = np.flatnonzero(((model.most > 0) | (model.demand == 0)[:, np.newaxis]).all(axis=0))
        sizes = {o: float((total / np.maximum(model.capacity[o], 1)).max()) for o in holds_all.tolist()}
        for option in sorted(sizes, key=lambda o: ceil(sizes[o]) * int(model.price[o]))[:_SINGLE_TYPES]:
            fleet = np.zeros(len(model.options))
            fleet[option] = sizes[option]
            yield self._over_zones(fleet) if self._search.zone_matters else fleet

    # -- how large -----------------------------------------------------------------------------------------------------

    def _smallest(self, fleet: Floats) -> bool:
        """Looks for the smallest fleet of these proportions that the scheduler accepts and that is cheaper than what is
        known. Whether there is one."""
        search, before = self._search, self._search.best
        prices = self._left.price.astype(np.float64)
        unit = float(fleet @ prices)
        guess = unit
        if search.best is None:
            guess = self._large_enough(fleet, unit)
        if search.best is None:
            return False
        low, high = float(search.bound.cost), float(search.cost(search.best.mix))
        step = max(_FINEST * high, 0.9 * self._cheapest)
        probe = min(guess, high - step)
        refused: Mix | None = None
        while low < probe < high:
            mix = self.sized(fleet, probe)
            if mix is not None and search.judged(mix):
                high = min(probe, float(search.cost(mix)))
            else:
                if probe >= float(search.cost(search.best.mix)) - 1.5 * step:
                    break  # not even a little cheaper than what is known
                low, refused = probe, mix or refused
            probe = (low + high) / 2 if high - low > 2 * step else high - step
            if high - low <= step:
                break
        if refused is not None:
            search.propose(refused)
        return search.best is not before

    def _large_enough(self, fleet: Floats, unit: float) -> float:
        """Grows the fleet until the scheduler accepts it; gives its cost."""
        scale = 1.0
        for _ in range(_MOST_STEPS_UP):
            mix = self.sized(fleet, unit * scale)
            if mix is None or self._search.judged(mix):
                break
            scale *= _GROWTH
        return unit * scale / _GROWTH

    def sized(self, fleet: Floats, cost: float, turn_ends: Sequence[float] = TURN_ENDS) -> Mix | None:
        """In whole machines, for so much: what is cut off is made up for by those of which most is cut off."""
        prices = self._left.price.astype(np.float64)
        wanted = fleet * (cost / float(fleet @ prices))
        counts = np.floor(wanted + 1e-9)
        missing = float((wanted - counts) @ prices)
        for option in np.argsort(-(wanted - counts), kind="stable").tolist():
            if counts[option] < wanted[option] - 1e-9 and prices[option] <= missing + self._cheapest / 2:
                counts[option] += 1
                missing -= prices[option]
        mix = self._search.spread([int(n) for n in counts])
        return None if mix is None else self._search.completed(self._search.in_turn(mix, turn_ends))


def _direction(fleet: Floats) -> Floats:
    found: Floats = fleet / max(1e-12, float(np.linalg.norm(fleet)))
    return found


_NO_TAINT = 100
"""TaintToleration's score of a node that has the fewest soft taints."""
_CELLS = 6_000_000
"""Fleets times orders times classes times nodes that are kept at once."""
_MOST_FLEETS = 48
_FEW_ORDERS = 2
_KEPT = 6
"""What does best with few orders is rehearsed with all."""
_TURN_ENDS = (TURN_ENDS, (0.85,), (0.7, 0.9), (0.5, 0.8), (0.4, 0.7, 0.9))
_HALVINGS = 7
_PATTERNS_OF_CHANCE = 61
_STEP = 0.004
"""Of the cost, by which a fleet is to be cheaper."""
_STALLED = 30
_MOST_ROUNDS = 600
_PARENTS = 8
_CHECKS = 2
"""How often a fleet that leaves nothing is rehearsed again, with other ties."""
_PLACEMENTS = 150_000_000
"""Pods, times fleets, times orders, that are placed at most."""


class Rehearsal:
    def __init__(
        self,
        model: PackingModel,
        arrivals: Sequence[Sequence[PodKey]],
        turns: int,
        scores: RehearsedScores | None = None,
    ) -> None:
        """`arrivals` are the orders in which the pods come."""
        self._scores = scores or RehearsedScores()
        classes = {key: c for c, one in enumerate(model.classes) for key in one.pods}
        self._sequences = np.array([[classes[key] for key in order if key in classes] for order in arrivals])
        self._requests = model.requests.astype(np.float64)
        self._capacity = model.capacity.astype(np.float64)
        self._fits = model.fits
        self._n_options = len(model.options)
        self._turns = turns
        scored = [model.resources.index(name) for name in (CPU, MEMORY)]
        self._scored = np.array(scored)
        total = np.maximum(model.demand @ model.requests, 1)[scored]
        self._worth = (model.requests[:, scored] / total).max(axis=1)
        self.n_placements = 0

    def most_fleets(self, n_nodes: int) -> int:
        n_orders, n_classes = len(self._sequences), len(self._requests)
        return max(1, min(_MOST_FLEETS, _CELLS // max(1, n_orders * n_classes * n_nodes)))

    def best(self, fleets: Sequence[Ints], chance: int) -> list[tuple[float, Ints]]:
        """Those that leave least, the best first: what does well for few orders is tried with all."""
        if len(self._sequences) > _FEW_ORDERS:
            few = np.argsort(self.left(fleets, chance, _FEW_ORDERS), kind="stable")[:_KEPT]
            fleets = [fleets[k] for k in few.tolist()]
        left = self.left(fleets, chance)
        return [(float(left[k]), fleets[k]) for k in np.argsort(left, kind="stable").tolist()]

    def left(self, fleets: Sequence[Ints], chance: int, most_orders: int | None = None) -> Floats:
        """(n_fleets,) which share of the demand finds no node, over all orders. A fleet has (turns x options) numbers
        of nodes; `chance` decides ties."""
        orders = self._sequences[:most_orders]
        n_orders = len(orders)
        state = _State(self, fleets, n_orders, chance)
        sequences = np.tile(orders, (len(fleets), 1))
        left = np.zeros(len(sequences))
        for step in range(sequences.shape[1]):
            state.place(sequences[:, step], step, left)
        self.n_placements += sequences.size
        total: Floats = left.reshape(len(fleets), n_orders).sum(axis=1)
        return total


class _State:
    """What is used on each node of each fleet, and what each class scores there: (fleets x orders, classes, nodes)."""

    def __init__(self, rehearsal: Rehearsal, fleets: Sequence[Ints], n_orders: int, chance: int) -> None:
        self._requests, self._scored, self._worth = rehearsal._requests, rehearsal._scored, rehearsal._worth
        self._how = rehearsal._scores
        n_nodes, n_rows = max(1, *(int(fleet.sum()) for fleet in fleets)), len(fleets) * n_orders
        n_options = rehearsal._n_options
        self._capacity = np.zeros((n_rows, n_nodes, self._requests.shape[1]))
        self._early = np.zeros((n_rows, n_nodes), dtype=np.float32)
        fits = np.zeros((n_rows, n_nodes, len(self._requests)), dtype=np.bool_)
        for k, fleet in enumerate(fleets):
            numbers = np.repeat(np.arange(len(fleet)), fleet)
            options, turns = numbers % n_options, numbers // n_options
            of_fleet = slice(k * n_orders, (k + 1) * n_orders)
            self._capacity[of_fleet, : len(numbers)] = rehearsal._capacity[options]
            fits[of_fleet, : len(numbers)] = rehearsal._fits[:, options].T
            last = int(turns.max(initial=0))
            if last:
                self._early[of_fleet, : len(numbers)] = _NO_TAINT * rehearsal._scores.taints * (last - turns) / last
        self._used = np.zeros_like(self._capacity)
        self._fits = fits
        self._scores = np.empty((n_rows, len(self._requests), n_nodes), dtype=np.float32)
        rows = np.arange(n_rows)
        for node in range(n_nodes):
            self._rate(rows, np.full(n_rows, node))
        self._chance = np.random.default_rng(chance).random((_PATTERNS_OF_CHANCE, n_nodes), dtype=np.float32) * 0.99
        self._rows = rows

    def place(self, classes: Ints, step: int, left: Floats) -> None:
        """One pod in each row; what finds no node is added to `left`."""
        scores = self._scores[self._rows, classes]
        nodes = (scores + self._chance[step % _PATTERNS_OF_CHANCE]).argmax(axis=1)
        found = scores[self._rows, nodes] >= 0
        if not found.all():
            left[~found] += self._worth[classes[~found]]
        rows, nodes = self._rows[found], nodes[found]
        self._used[rows, nodes] += self._requests[classes[found]]
        self._rate(rows, nodes)

    def _rate(self, rows: Ints, nodes: Ints) -> None:
        """What each class scores on one node of each of these rows; -2 where it has no room."""
        used, capacity = self._used[rows, nodes][:, np.newaxis, :], self._capacity[rows, nodes][:, np.newaxis, :]
        after = used + self._requests
        has_room = (after <= capacity).all(axis=2) & self._fits[rows, nodes]
        whole = np.maximum(capacity[..., self._scored], 1e-9)
        share, before = after[..., self._scored] / whole, used[..., self._scored] / whole
        how = self._how
        gained = np.floor(100 - 50 * np.abs(share[..., 0] - share[..., 1]))
        gained -= np.floor(100 - 50 * np.abs(before[..., 0] - before[..., 1]))
        scores = how.fit * how.of_use(share) + how.balanced * (50 + (50 + gained) // 2)
        scores += self._early[rows, nodes][:, np.newaxis]
        self._scores[rows, :, nodes] = np.where(has_room, scores, -2)


@dataclass(slots=True)
class RehearsedSearch:
    """Proposes fleets that hold all pods in the rehearsal, each cheaper than the one before."""

    search: MixSearch
    rehearsal: Rehearsal
    goes_on: Callable[[], bool]
    told: Callable[[str], None] = lambda _text: None
    _prices: Ints = field(init=False)
    _random: np.random.Generator = field(init=False)
    _n_groups: int = field(init=False)

    def __post_init__(self) -> None:
        self._n_groups = len(self.search.model.options)
        self._prices = np.tile(self.search.model.price, self.search.turns)
        self._random = np.random.default_rng(0)

    def run(self, fleets: FleetSearch, starts: Sequence[Mix]) -> None:
        """Until neither the rehearsal nor the scheduler finds anything cheaper, or the time is over."""
        parents = [*self._sized(fleets), *(self._fleet(mix) for mix in starts)]
        while self.search.best is not None and self.goes_on():
            before = self.search.best
            chain = self._cheaper(parents)
            for fleet in reversed(chain):
                mix = self._mix(fleet)
                if mix is not None and self.search.propose(mix):
                    break
            self.told("rehearsed")
            if not chain or self.search.best is before:
                return
            parents = [self._fleet(self.search.best.mix), *reversed(chain[-_PARENTS:])]

    def _sized(self, fleets: FleetSearch) -> list[Ints]:
        """The smallest fleets that leave nothing, by halves, over proportions and shares of the turns; the best of each
        step go on. Proposes the smallest."""
        search = self.search
        assert search.best is not None
        ends = _TURN_ENDS if search.turns > 1 else ((),)
        directions = [*fleets.all_directions(), *fleets.without_large_ones()]
        pairs: list[tuple[Floats, Sequence[float]]] = [(one, end) for one in directions for end in ends]
        low, high = float(search.bound.cost), float(search.cost(search.best.mix))
        found: list[Ints] = []
        for number in range(_HALVINGS):
            if not pairs or not self.goes_on() or high - low < _STEP / 2 * high:
                break
            cost = (low + high) / 2
            made = [(pair, fleets.sized(pair[0], cost, pair[1])) for pair in pairs]
            sized = [(pair, self._fleet(mix)) for pair, mix in made if mix is not None and search.is_allowed(mix)]
            if not sized:
                break
            left: list[float] = []
            n_fleets = self.rehearsal.most_fleets(int(max(fleet.sum() for _, fleet in sized)))
            for start in range(0, len(sized), n_fleets):
                left += self.rehearsal.left([fleet for _, fleet in sized[start : start + n_fleets]], number).tolist()
            order = sorted(range(len(sized)), key=lambda k: (left[k], k))
            if left[order[0]] == 0:
                high = cost
                found += [sized[k][1] for k in order if left[k] == 0]
                pairs = [sized[k][0] for k in order[: max(4, sum(one == 0 for one in left))]]
            else:
                low = cost
                pairs = [sized[k][0] for k in order[: max(4, len(order) // 2)]]
        found.sort(key=lambda fleet: int(fleet @ self._prices))
        for fleet in found[:2]:
            mix = self._mix(fleet)
            if mix is not None and search.propose(mix):
                self.told("rehearsed sizes")
                break
        return found[:_PARENTS]

    def _cheaper(self, parents: Sequence[Ints]) -> list[Ints]:
        """Fleets that leave nothing in the rehearsal, each cheaper than the one before."""
        assert self.search.best is not None
        known = self._fleet(self.search.best.mix)
        cost, stalled, chain = self.search.cost(self.search.best.mix), 0, list[Ints]()
        tried: list[tuple[float, int, Ints]] = [(1.0, n, fleet) for n, fleet in enumerate([known, *parents])]
        for number in range(_MOST_ROUNDS):
            if stalled >= _STALLED or not self.goes_on() or self.rehearsal.n_placements > _PLACEMENTS:
                break
            budget = cost - max(int(self._prices.min()), int(cost * _STEP))
            if budget < self.search.bound.cost:
                break
            n_fleets = self.rehearsal.most_fleets(int(known.sum()) + 1)
            choices = [self._changed(self._parent(tried), budget) for _ in range(n_fleets)]
            fleets = [one for one in choices if one is not None]
            if not fleets:
                break
            rated = self.rehearsal.best(fleets, number)
            stalled += 1
            for left, fleet in rated:
                if left > 0:
                    break
                if self._holds(fleet, number):
                    known, cost, stalled, tried = fleet, int(fleet @ self._prices), 0, []
                    chain.append(known)
                    break
            tried += [(left, number, fleet) for left, fleet in rated]
            tried = [*sorted(tried, key=lambda one: one[:2])[:_PARENTS], (1.0, number, known)]
        return chain

    def _holds(self, fleet: Ints, number: int) -> bool:
        return not any(self.rehearsal.left([fleet], 1000 + number * _CHECKS + k).any() for k in range(_CHECKS))

    def _parent(self, tried: Sequence[tuple[float, int, Ints]]) -> Ints:
        return tried[int(self._random.integers(len(tried)))][2]

    def _changed(self, fleet: Ints, budget: int) -> Ints | None:
        """With some machines fewer, some moved to another turn, and others for the money that is left."""
        random, changed = self._random, fleet.copy()
        for _ in range(int(random.integers(1, 4))):
            present = np.flatnonzero(changed)
            if not len(present):
                break
            one = int(random.choice(present))
            n = int(random.integers(1, max(2, int(changed[one]) // 3 + 1)))
            changed[one] -= n
            if self.search.turns > 1 and random.random() < 0.5:
                changed[one % self._n_groups + self._n_groups * int(random.integers(self.search.turns))] += n
        while (excess := int(changed @ self._prices) - budget) > 0:
            one = int(random.choice(np.flatnonzero(changed)))
            changed[one] -= min(int(changed[one]), max(1, excess // (4 * int(self._prices[one]))))
        money = budget - int(changed @ self._prices)
        for _ in range(20):
            like_known = random.random() < 0.5 and changed.any()
            one = int(random.choice(np.flatnonzero(changed)) if like_known else random.integers(len(changed)))
            most = money // int(self._prices[one])
            if most:
                n = int(random.integers(1, most + 1))
                changed[one] += n
                money -= n * int(self._prices[one])
        return changed if changed.any() else None

    # -- fleets and mixes ----------------------------------------------------------------------------------------------

    def _fleet(self, mix: Mix) -> Ints:
        return np.array(self.search.counts_by_turn(mix), dtype=np.int64).reshape(-1)

    def _mix(self, fleet: Ints) -> Mix | None:
        mix = self.search.spread_by_turn(fleet.reshape(self.search.turns, -1).tolist())
        return None if mix is None else self.search.completed(mix)
