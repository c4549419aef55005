"""Lower bounds from values: whatever a pod of each class is taken to be worth, a bound follows, in whole numbers.

If no machine holds more value than it costs, then no set of machines that holds all pods costs less than the pods are
worth together. What fits on nodes that are there is subtracted. Limits on what may be bought enter with a value each:
a machine then costs what it takes of the limit, too, and the limit's value times its size is given back.

A proof consists of the values; everything else is worked out from them (`certificate`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, gcd

import numpy as np

from kubesched.planning.plan.aggregate import resource_prices
from kubesched.planning.plan.knapsack import BestPattern, best_pattern
from kubesched.planning.plan.model import Floats, FreeRoom, Ints, PackingModel

_WEIGHT_SCALE = 10**6
_PRICE_SCALE = 10**15
_MOST_STEPS = 20_000


@dataclass(frozen=True, slots=True)
class CostBound:
    cost: int
    """No set of machines that holds all pods costs less, in 10⁻⁹ of the currency."""
    values: tuple[int, ...]
    limit_values: tuple[int, ...]
    weights: tuple[tuple[int, ...], ...]
    """By option: hints for the search for its best pattern."""
    most: tuple[int, ...]
    """By option: no pattern is worth more."""


def surrogate_weights(
    model: PackingModel, values: Floats, starts: dict[int, Floats] | None = None
) -> list[tuple[int, ...]]:
    """(n_options, n_resources) for each option the weights of the resources under which the fractional best pattern
    is worth least: a few steps of descent, from where the last one ended if `starts` remember it. Any weights are
    valid."""
    found = []
    starts = {} if starts is None else starts
    for option in range(len(model.options)):
        capacity = model.capacity[option].astype(np.float64)
        safe = np.maximum(capacity, 1.0)
        sizes = model.requests / safe
        most = np.minimum(model.most[:, option], model.demand).astype(np.float64)
        weights = _descend(values, sizes, most, np.minimum(capacity, 1.0), starts.get(option))
        starts[option] = weights
        found.append(tuple(int(w) for w in np.round(weights * _WEIGHT_SCALE / safe * safe.max())))
    return found


def _descend(values: Floats, sizes: Floats, most: Floats, room: Floats, start: Floats | None) -> Floats:
    n = sizes.shape[1]
    used = (most > 0) & (values > 0)
    values, sizes, most = values[used], sizes[used], most[used]
    binding = [r for r in range(n) if sizes[:, r].any()]
    weights, best, step = np.zeros(n), np.inf, 0.5
    if start is not None:
        weights, step = start, 0.06
        best = _fractional(values, sizes @ weights, most, float(weights @ room))
    else:
        for r in binding:
            trial = np.zeros(n)
            trial[r] = 1.0
            reach = _fractional(values, sizes @ trial, most, float(trial @ room))
            if reach < best:
                best, weights = reach, trial
    while step > 0.01 and binding:
        improved = False
        for r in binding:
            for change in (step, -step):
                trial = weights.copy()
                trial[r] = max(0.0, trial[r] + change)
                if not trial.any():
                    continue
                reach = _fractional(values, sizes @ trial, most, float(trial @ room))
                if reach < best * (1 - 1e-9):
                    best, weights, improved = reach, trial, True
        if not improved:
            step /= 3
    return weights


def _fractional(values: Floats, sizes: Floats, most: Floats, room: float) -> float:
    sizes = np.maximum(sizes, 1e-15)
    order = np.argsort(-(values / sizes), kind="stable")
    v, s, m = values[order], sizes[order], most[order]
    taken = np.cumsum(s * m)
    whole = int(np.searchsorted(taken, room, side="right"))
    total = float(v[:whole] @ m[:whole])
    if whole < len(order):
        before = float(taken[whole - 1]) if whole else 0.0
        total += float(v[whole] * (room - before) / s[whole])
    return total


def best_machine(
    model: PackingModel,
    option: int,
    values: Ints,
    weights: Sequence[int],
    *,
    slack: int = 0,
    most_steps: int = _MOST_STEPS,
) -> BestPattern:
    most = np.minimum(model.most[:, option], model.demand)
    return best_pattern(
        values.tolist(),
        model.requests.tolist(),
        model.capacity[option].tolist(),
        most.tolist(),
        weights,
        most_steps=most_steps,
        slack=slack,
    )


def cost_bound(
    model: PackingModel, values: Ints, limit_values: Ints, most: Sequence[int], weights: Sequence[tuple[int, ...]]
) -> CostBound:
    """Farley's bound from the values, with what each machine's best pattern is worth at most."""
    worth, scale = bound_terms(model, values, limit_values, most)
    cost = Fraction(0) if scale is None else worth / scale
    cost -= sum(int(v) * row.most for v, row in zip(limit_values.tolist(), model.limits, strict=True))
    return CostBound(
        max(0, ceil(cost)),
        tuple(int(v) for v in values),
        tuple(int(v) for v in limit_values),
        tuple(weights),
        tuple(int(m) for m in most),
    )


def bound_terms(
    model: PackingModel, values: Ints, limit_values: Ints, most: Sequence[int]
) -> tuple[Fraction, Fraction | None]:
    """What the pods are worth without what fits on nodes that are there; and by how much too much a machine is worth
    (at least 1). None if a machine costs nothing and holds something."""
    scale = Fraction(1)
    for option, reach in enumerate(most):
        price = int(model.price[option]) + sum(
            int(v) * int(row.coefficients[option]) for v, row in zip(limit_values.tolist(), model.limits, strict=True)
        )
        if reach > 0 and price <= 0:
            return Fraction(0), None
        if reach > 0:
            scale = max(scale, Fraction(reach, price))
    worth = Fraction(sum(int(v) * int(d) for v, d in zip(values.tolist(), model.demand.tolist(), strict=True)))
    return max(
        Fraction(0), worth - sum((free_value(model, room, values) for room in model.existing), Fraction(0))
    ), scale


def free_value(model: PackingModel, room: FreeRoom, values: Ints) -> Fraction:
    """No more value than this fits on the nodes that are there: the least over the resources, each by itself."""
    best: Fraction | None = None
    for r in range(len(model.resources)):
        reach = _fractional_exactly(values, model.requests[:, r], room.most, int(room.capacity[r]))
        best = reach if best is None else min(best, reach)
    return best or Fraction(0)


def _fractional_exactly(values: Ints, sizes: Ints, most: Ints, room: int) -> Fraction:
    items = [(int(v), int(s), int(m)) for v, s, m in zip(values, sizes, most, strict=True) if int(m) > 0 and int(v) > 0]
    total = Fraction(sum(v * m for v, s, m in items if s == 0))
    sized = sorted(((v, s, m) for v, s, m in items if s > 0), key=lambda item: Fraction(-item[0], item[1]))
    for v, s, m in sized:
        if s * m <= room:
            total += v * m
            room -= s * m
        else:
            return total + Fraction(v * room, s)
    return total


def aggregate_bound(model: PackingModel) -> CostBound:
    """The bound from sums alone; NumPy only, milliseconds."""
    prices = resource_prices(model)
    values = np.floor(model.requests @ prices).astype(np.int64)
    largest = float(prices.max(initial=0.0))
    weights = tuple(int(price / largest * _PRICE_SCALE) for price in prices) if largest else (1,) * len(prices)
    most = [best_machine(model, option, values, weights, most_steps=0).most for option in range(len(model.options))]
    limit_values = np.zeros(len(model.limits), dtype=np.int64)
    return cost_bound(model, values, limit_values, most, [weights] * len(model.options))


def rounded_up(model: PackingModel, cost: int) -> int:
    """The least sum of prices that is not below: prices are whole numbers, and so is what divides all of them."""
    common = 0
    for price in model.price.tolist():
        common = gcd(common, int(price))
    return cost if common <= 1 else -(-cost // common) * common
