"""Lower bounds from values: whatever a pod of each class is taken to be worth, a bound follows, in whole numbers.

If no machine holds more value than it costs, then no set of machines that holds all pods costs less than the pods are
worth together. What fits on nodes that are there is subtracted. Limits on what may be bought enter with a value each:
a machine then costs what it takes of the limit, too, and the limit's value times its size is given back. A proof
consists of the values; everything else is worked out from them (`certificate`).

The most valuable pods that one node can hold are found by branch and bound (`best_pattern`): exact, in whole numbers,
without a solver. Pods are tried in the order of their value for what they take, where `weights` make one amount of all
resources. That one amount also gives the bound: whatever fits on the node fits in it, so no branch whose bound is too
low can hold a better answer. Any weights are valid; good ones make it fast.

The simplest values come from prices of the resources such that no machine is worth more than it costs
(`u · capacity <= price`): the best such prices are a small linear program, solved here by the simplex method
(`best_prices`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, gcd

import numpy as np

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


@dataclass(frozen=True, slots=True)
class BestPattern:
    pattern: tuple[int, ...]
    """(n_classes,)"""
    value: int
    """Of the pattern."""
    most: int
    """No pattern is worth more. Equal to `value` unless the search was cut, or asked to be near enough."""


def best_pattern(
    values: Sequence[int],
    requests: Sequence[Sequence[int]],
    capacity: Sequence[int],
    most: Sequence[int],
    weights: Sequence[int],
    *,
    most_steps: int = 20_000,
    slack: int = 0,
) -> BestPattern:
    """`most` has for each class how many pods may be there at all. Branches that could gain at most `slack` are not
    looked at. After `most_steps`, what is left counts with its bound."""
    n = len(values)
    used = [c for c in range(n) if most[c] > 0 and values[c] > 0]
    sizes = {c: sum(w * a for w, a in zip(weights, requests[c], strict=True)) for c in used}
    order = sorted(used, key=lambda c: (sizes[c] > 0, -values[c] / sizes[c] if sizes[c] else 0.0, c))
    search = _Search(
        [values[c] for c in order],
        [[(r, a) for r, a in enumerate(requests[c]) if a > 0] for c in order],
        [sizes[c] for c in order],
        [most[c] for c in order],
        list(capacity),
        most_steps,
        slack,
    )
    search.run(sum(w * a for w, a in zip(weights, capacity, strict=True)))
    pattern = [0] * n
    for c, x in zip(order, search.best, strict=True):
        pattern[c] = x
    return BestPattern(tuple(pattern), search.best_value, max(search.best_value, search.skipped))


class _Search:
    __slots__ = (
        "_capacity",
        "_most",
        "_needs",
        "_sizes",
        "_slack",
        "_steps",
        "_values",
        "best",
        "best_value",
        "skipped",
    )

    def __init__(
        self,
        values: list[int],
        needs: list[list[tuple[int, int]]],
        sizes: list[int],
        most: list[int],
        capacity: list[int],
        most_steps: int,
        slack: int,
    ) -> None:
        self._values = values
        self._needs = needs
        self._sizes = sizes
        self._most = most
        self._capacity = capacity
        self._steps = most_steps
        self._slack = slack
        self.best = [0] * len(values)
        self.best_value = 0
        self.skipped = 0
        """The highest bound of a branch that was not looked at."""

    def run(self, room: int) -> None:
        self._descend(0, 0, room, [0] * len(self._values))

    def bound(self, k: int, room: int) -> int:
        """No more value than this comes from the classes from `k` on, in so much room; rounded up."""
        total = 0
        for value, size, most in zip(self._values[k:], self._sizes[k:], self._most[k:], strict=True):
            whole = size * most
            if whole <= room:
                total += value * most
                room -= whole
            else:
                return total - (-value * room // size)
        return total

    def _descend(self, k: int, value: int, room: int, chosen: list[int]) -> None:
        if value > self.best_value:
            self.best_value = value
            self.best = chosen.copy()
        if k == len(self._values):
            return
        capacity, needs, size, worth = self._capacity, self._needs[k], self._sizes[k], self._values[k]
        x = self._most[k]
        for r, a in needs:
            x = min(x, capacity[r] // a)
        for r, a in needs:
            capacity[r] -= x * a
        while True:
            reach = value + x * worth + self.bound(k + 1, room - x * size)
            if reach <= self.best_value + self._slack or self._steps <= 0:
                self.skipped = max(self.skipped, reach)
                if self._steps > 0:
                    break  # fewer of this class reach no further
            else:
                self._steps -= 1
                chosen[k] = x
                self._descend(k + 1, value + x * worth, room - x * size, chosen)
            if x == 0:
                break
            x -= 1
            for r, a in needs:
                capacity[r] += a
        chosen[k] = 0
        for r, a in needs:
            capacity[r] += x * a


_MOST_PIVOTS = 500
_TINY = 1e-12


def resource_prices(model: PackingModel) -> Floats:
    """(n_resources,) what a unit of each resource is worth, such that no machine has more than it costs."""
    if not len(model.options) or not len(model.classes):
        return np.zeros(len(model.resources))
    capacity = model.capacity.astype(np.float64)
    scale = np.maximum(capacity.max(axis=0), 1.0)
    total = (model.demand @ model.requests - _free(model)).clip(min=0) / scale
    found: Floats = best_prices(capacity / scale, model.price.astype(np.float64), total) / scale
    return found


def _free(model: PackingModel) -> Ints:
    free = np.zeros(model.requests.shape[1], dtype=np.int64)
    for room in model.existing:
        free += room.capacity
    return free


def best_prices(capacity: Floats, price: Floats, total: Floats) -> Floats:
    """(n_resources,) u >= 0 with `capacity @ u <= price` for which `total @ u` is largest: the simplex method, from
    u = 0, with a tableau of options by resources."""
    n_options, n_resources = capacity.shape
    rows = np.hstack([capacity, price[:, np.newaxis]])
    goal = np.append(total, 0.0)
    basis = [-1] * n_options
    columns = list(range(n_resources))
    for pivot_number in range(_MOST_PIVOTS):
        gains = np.flatnonzero(goal[:-1] > 1e-9)
        if not len(gains):
            break
        # The largest gain first; by the smallest number once it has taken long, so that it ends.
        enters = int(gains[np.argmax(goal[gains])]) if pivot_number < _MOST_PIVOTS // 2 else int(gains[0])
        positive = rows[:, enters] > _TINY
        if not positive.any():
            break
        ratios = np.full(n_options, np.inf)
        ratios[positive] = rows[positive, -1] / rows[positive, enters]
        leaves = int(np.argmin(ratios))
        _pivot(rows, goal, leaves, enters)
        basis[leaves], columns[enters] = columns[enters], basis[leaves]
    found = np.zeros(n_resources)
    for position, variable in enumerate(basis):
        if 0 <= variable < n_resources:
            found[variable] = max(0.0, rows[position, -1])
    return found


def _pivot(rows: Floats, goal: Floats, r: int, c: int) -> None:
    element = rows[r, c]
    row = rows[r] / element
    column = rows[:, c].copy()
    rows -= np.outer(column, row)
    rows[:, c] = -column / element
    rows[r] = row
    rows[r, c] = 1.0 / element
    factor = goal[c]
    goal -= factor * row
    goal[c] = -factor / element
