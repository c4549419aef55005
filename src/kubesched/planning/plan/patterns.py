"""The pattern bound: Gilmore and Gomory's column generation, with HiGHS (scipy).

The cheapest fractional mix of patterns that covers all pods gives each class a value. A machine whose best pattern is
worth more than it costs brings a new pattern; if there is none, the values prove a lower bound. They prove one at any
time, if scaled so that no machine is worth more than it costs (Farley), so stopping early stays right.

The bound is worked out in whole numbers from the values alone (`bounds`), not taken from the solver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from kubesched.planning.plan.bounds import CostBound, best_machine, cost_bound, surrogate_weights
from kubesched.planning.plan.model import Floats, Ints, PackingModel
from kubesched.planning.plan.packing import Packing, decreasing, fill
from kubesched.planning.solving import linear_program

_MOST_ROUNDS = 100
_NEAR_ENOUGH = 1e-4
_TRUST = 0.7
"""The share of the best known values in those that machines are priced by."""
_PRICING_STEPS = 3_000
_FIRST_OPTIONS = 4
_MIXES = 6
"""In how many ways the resources are weighed when patterns are looked for quickly."""
_COLUMNS_KEPT = 3_000
_STALLED_ROUNDS = 12


def has_solver() -> bool:
    """Whether the extra `plan` is installed."""
    try:
        import scipy.optimize  # noqa: F401
    except ImportError:
        return False
    return True


@dataclass(slots=True)
class Columns:
    """Patterns found so far, each once."""

    model: PackingModel
    options: list[int] = field(default_factory=list)
    patterns: list[Ints] = field(default_factory=list)
    _known: set[tuple[int, bytes]] = field(default_factory=set)

    def add(self, option: int, pattern: Ints) -> bool:
        key = option, pattern.tobytes()
        if key in self._known or not pattern.any():
            return False
        self._known.add(key)
        self.options.append(option)
        self.patterns.append(pattern)
        return True

    def first(self, n: int) -> Columns:
        return Columns(self.model, self.options[:n], self.patterns[:n])

    @property
    def matrix(self) -> Floats:
        """(n_classes, n_columns)"""
        return np.array(self.patterns, dtype=np.float64).reshape(len(self.patterns), len(self.model.classes)).T

    @property
    def prices(self) -> Floats:
        return self.model.price[self.options].astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Master:
    """A solved linear program: how many nodes of each column, and what a pod and a limit are worth."""

    shares: Floats
    values: Floats
    limit_values: Floats
    cost: float


@dataclass(frozen=True, slots=True, eq=False)
class PatternAnswer:
    bound: CostBound
    columns: Columns
    master: Master


def pattern_bound(
    model: PackingModel,
    starts: Sequence[Packing],
    first: CostBound,
    *,
    goes_on: Callable[[], bool] = lambda: True,
    told: Callable[[float], None] = lambda _gap: None,
) -> PatternAnswer | None:
    """The best bound that column generation finds, `first` being one that is known. None if the linear program has no
    answer (limits that are too small). `goes_on` is asked between rounds.

    Machines are priced between the values of the best bound and those of the linear program: the latter alone jump
    about, and few of the patterns that they ask for are of any use.
    """
    columns = Columns(model)
    _first_columns(model, columns, starts)
    best, stalled, share = first, 0, _TRUST
    master = solve_master(model, columns)
    if master is None:
        return None
    before, chance = inf, np.random.default_rng(0)
    weights: dict[int, Floats] = {}
    for _ in range(_MOST_ROUNDS):
        gap = (master.cost - best.cost) / max(1.0, master.cost)
        told(gap)
        if gap < _NEAR_ENOUGH or stalled >= _STALLED_ROUNDS or len(columns.options) > _COLUMNS_KEPT or not goes_on():
            break
        values = _between(best.values, master.values, share)
        limit_values = _between(best.limit_values, master.limit_values, share)
        bound, n_new = _price(model, columns, master, values, limit_values, chance, weights)
        if bound.cost > best.cost:
            best, stalled = bound, 0
        elif not n_new and share == 0.0:
            break
        elif master.cost < before * (1 - _NEAR_ENOUGH):
            before, stalled = master.cost, 0
        else:
            stalled += 1
        share = _TRUST if n_new else max(0.0, share - _TRUST / 2)
        if n_new:
            solved = solve_master(model, columns)
            if solved is None:  # the solver gave up: what is known stays true
                break
            master = solved
    return PatternAnswer(best, columns, master)


def _between(known: Sequence[int], wanted: Floats, share: float) -> Ints:
    return np.floor(share * np.array(known, dtype=np.float64) + (1 - share) * wanted).astype(np.int64)


def _first_columns(model: PackingModel, columns: Columns, starts: Sequence[Packing]) -> None:
    for packing in starts:
        for filled in packing:
            columns.add(filled.option, np.array(filled.pattern, dtype=np.int64))
    order = decreasing(model)
    for option in range(len(model.options)):
        columns.add(option, fill(model, option, model.demand, order))
        columns.add(option, fill(model, option, model.demand, order[::-1]))
    for c in range(len(model.classes)):
        possible = np.flatnonzero(model.most[c] > 0)
        alone = np.minimum(model.most[c, possible], max(1, int(model.demand[c])))
        for option in possible[np.argsort(model.price[possible] / alone, kind="stable")[:_FIRST_OPTIONS]].tolist():
            pattern = np.zeros(len(model.classes), dtype=np.int64)
            pattern[c] = min(int(model.most[c, option]), max(1, int(model.demand[c])))
            columns.add(option, pattern)


def solve_master(model: PackingModel, columns: Columns) -> Master | None:
    """Columns cover all pods, together with what is free on the nodes that are there, within the limits."""
    matrix, n_columns, n_classes = columns.matrix, len(columns.options), len(model.classes)
    rooms = [(room, np.flatnonzero(room.most > 0)) for room in model.existing]
    n_free = sum(len(inside) for _, inside in rooms)
    scale = max(1.0, float(columns.prices.max(initial=0.0)))
    cost = np.concatenate([columns.prices / scale, np.zeros(n_free)])
    cover = np.zeros((n_classes, n_columns + n_free))
    cover[:, :n_columns] = matrix
    upper: list[tuple[float, float | None]] = [(0, None)] * n_columns
    blocks, sides = [], []
    at = n_columns
    for room, inside in rooms:
        block = np.zeros((len(room.capacity), n_columns + n_free))
        whole = np.maximum(room.capacity, 1)
        for k, c in enumerate(inside.tolist()):
            cover[c, at + k] = 1.0
            block[:, at + k] = model.requests[c] / whole
            upper.append((0, float(room.most[c])))
        blocks.append(block)
        sides.append(np.minimum(room.capacity, 1).astype(np.float64))
        at += len(inside)
    limits = np.zeros((len(model.limits), n_columns + n_free))
    for r, row in enumerate(model.limits):
        limits[r, :n_columns] = row.coefficients[columns.options]
    rows = np.vstack([-cover, *blocks, limits])
    right = np.concatenate([-model.demand.astype(np.float64), *sides, [float(row.most) for row in model.limits]])
    found = linear_program(cost, A_ub=rows, b_ub=right, bounds=upper)
    if found.status != 0:
        return None
    marginals = -scale * np.asarray(found.ineqlin.marginals)
    n_limits = len(model.limits)
    limit_values = marginals[len(marginals) - n_limits :] if n_limits else np.zeros(0)
    values = marginals[:n_classes].clip(min=0)
    return Master(np.asarray(found.x)[:n_columns], values, limit_values.clip(min=0), scale * float(found.fun))


def fluid_counts(model: PackingModel) -> Floats | None:
    """(n_options,) how many machines, not whole, would do at the least cost if pods could be divided at will: what fits
    is a matter of sums. None if the solver has no answer."""
    from scipy.sparse import coo_array, vstack

    n_options, n_resources = model.capacity.shape
    classes, options = np.nonzero((model.most > 0) & (model.demand > 0)[:, np.newaxis])
    n_pairs = len(classes)
    prices = model.price / max(1, int(model.price.max(initial=1)))
    room = np.maximum(model.capacity, 1)
    pairs, resources = np.nonzero(model.requests[classes])
    machines, amounts = np.nonzero(np.ones((n_options, n_resources)))
    data = np.concatenate(
        [
            model.requests[classes[pairs], resources] / room[options[pairs], resources],
            -np.minimum(model.capacity[machines, amounts], 1).astype(np.float64),
            np.ones(n_pairs),
        ]
    )
    rows = np.concatenate([options[pairs] * n_resources + resources, machines * n_resources + amounts])
    columns = np.concatenate([n_options + pairs, machines])
    split = len(rows)
    shape = (n_options * n_resources, n_options + n_pairs)
    within = coo_array((data[:split], (rows, columns)), shape=shape)
    cover = coo_array((data[split:], (classes, n_options + np.arange(n_pairs))), shape=(len(model.demand), shape[1]))
    limits = [np.append(row.coefficients, np.zeros(n_pairs)) for row in model.limits]
    found = linear_program(
        np.append(prices, np.zeros(n_pairs)),
        A_ub=vstack([within, *(coo_array(row[np.newaxis, :]) for row in limits)]),
        b_ub=np.append(np.zeros(shape[0]), [float(row.most) for row in model.limits]),
        A_eq=cover,
        b_eq=np.where(np.isin(np.arange(len(model.demand)), classes), model.demand, 0).astype(np.float64),
    )
    return np.asarray(found.x)[:n_options] if found.status == 0 else None


def _machine_prices(model: PackingModel, limit_values: Floats) -> Floats:
    """What a machine costs with what it takes of the limits."""
    prices = model.price.astype(np.float64)
    for row, value in zip(model.limits, limit_values, strict=True):
        prices = prices + value * row.coefficients
    return prices


def _price(
    model: PackingModel,
    columns: Columns,
    master: Master,
    values: Ints,
    limit_values: Ints,
    chance: np.random.Generator,
    starts: dict[int, Floats],
) -> tuple[CostBound, int]:
    """Looks for patterns that are worth more than their machine costs, first as one fills a suitcase, then exactly
    where that is needed for the bound; and the bound that follows from the values."""
    prices = _machine_prices(model, master.limit_values)
    n_new = price_quickly(model, columns, master, values, chance)
    weights = surrogate_weights(model, values.astype(np.float64), starts)
    machine_prices = np.maximum(_machine_prices(model, limit_values.astype(np.float64)), 1.0)
    most = [best_machine(model, o, values, weights[o], most_steps=0).most for o in range(len(model.options))]
    scale = 1.0
    for option in sorted(range(len(most)), key=lambda o: -most[o] / machine_prices[o]):
        if most[option] / machine_prices[option] <= scale * (1 + _NEAR_ENOUGH / 2):
            break
        slack = max(1, int(machine_prices[option] * _NEAR_ENOUGH / 2))
        found = best_machine(model, option, values, weights[option], slack=slack, most_steps=_PRICING_STEPS)
        most[option] = min(most[option], found.most)
        scale = max(scale, most[option] / machine_prices[option])
        pattern = np.array(found.pattern, dtype=np.int64)
        if float(master.values @ pattern) > prices[option] * (1 + 1e-6):
            n_new += columns.add(option, pattern)
    return cost_bound(model, values, limit_values, most, weights), n_new


def price_quickly(
    model: PackingModel, columns: Columns, master: Master, values: Ints, chance: np.random.Generator
) -> int:
    """Patterns that are worth more than their machine costs, as one fills a suitcase; how many are new."""
    prices = _machine_prices(model, master.limit_values)
    mixes, n_new = chance.dirichlet(np.ones(len(model.resources)), _MIXES), 0
    for option in range(len(model.options)):
        for pattern in _greedy_patterns(model, option, values, mixes):
            if float(master.values @ pattern) > prices[option] * (1 + 1e-6):
                n_new += columns.add(option, pattern)
    return n_new


def _greedy_patterns(model: PackingModel, option: int, values: Ints, mixes: Floats) -> list[Ints]:
    shares = model.requests / np.maximum(model.capacity[option], 1)
    found = []
    for size in (shares.max(axis=1), *(shares @ weights for weights in mixes)):
        order = np.argsort(-(values / np.maximum(size, 1e-12)), kind="stable").tolist()
        found.append(fill(model, option, model.demand, [c for c in order if values[c] > 0]))
    return found
