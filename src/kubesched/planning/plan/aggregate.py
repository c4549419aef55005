"""The simplest lower bound: what all pods ask for together, at the best price for it. NumPy alone.

Prices `u` of the resources such that no machine is worth more than it costs (`u · capacity <= price`) make the sum of
what the pods ask for a bound on what any set of machines costs that holds them. The best such prices are a small linear
program, solved here by the simplex method. The bound is then recomputed in whole numbers, so that rounding makes
it lower at worst.
"""

from __future__ import annotations

import numpy as np

from kubesched.planning.plan.model import Floats, Ints, PackingModel

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
