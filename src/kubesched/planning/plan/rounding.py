"""From the fractional answer of column generation to whole machines.

A dive buys the whole part of the fractional answer, then looks for patterns that suit the pods that are left, and goes
on with these until every pod has a machine. It ends within a few tenths of a percent of the bound. The patterns of the
fractional answer alone, in whole numbers (a mixed integer program), are better only where few machines are bought.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kubesched.planning.plan.model import Ints, PackingModel
from kubesched.planning.plan.packing import FilledNodes, Packing, by_value, counts_of, is_within_limits
from kubesched.planning.plan.patterns import Columns, Master, PatternAnswer, price_quickly, solve_master
from kubesched.planning.solving import integer_program

_MIP_GAP = 1e-3
_MIP_NODES = 2_000
_ROUNDS = 4
"""Of looking for new patterns, after each step of a dive."""
_WHOLE = 0.8
"""If no share is whole, those of at least so much are rounded up together."""


def rounded(model: PackingModel, answer: PatternAnswer, branching_limit_s: float) -> list[Packing]:
    """Packings that hold all pods."""
    values = np.maximum(np.array(answer.bound.values, dtype=np.float64), 1.0)
    found = [by_value(model, values), by_diving(model, answer.columns, answer.master)]
    least = min((model.cost(counts_of(model, one)) for one in found if one is not None), default=None)
    if least is None or least > answer.bound.cost * (1 + _MIP_GAP):
        found.append(by_branching(model, answer.columns, branching_limit_s))
    return [one for one in found if one is not None]


def by_branching(model: PackingModel, columns: Columns, time_limit_s: float) -> Packing | None:
    """The cheapest whole numbers of the columns that cover all pods: a mixed integer program."""
    from scipy.optimize import Bounds, LinearConstraint

    if not columns.options:
        return None
    constraints = [LinearConstraint(columns.matrix, lb=model.demand.astype(np.float64))]
    constraints += [
        LinearConstraint(row.coefficients[columns.options].astype(np.float64), ub=float(row.most))
        for row in model.limits
    ]
    options: dict[str, Any] = {"mip_rel_gap": _MIP_GAP, "node_limit": _MIP_NODES, "time_limit": time_limit_s}
    scale = max(1.0, float(columns.prices.max()))
    found = integer_program(
        columns.prices / scale,
        constraints=constraints,
        integrality=np.ones(len(columns.options)),
        bounds=Bounds(0, np.inf),
        options=options,
    )
    if found.x is None:
        return None
    return _as_packing(columns, np.round(found.x).astype(np.int64))


def by_diving(model: PackingModel, columns: Columns, master: Master) -> Packing | None:
    """The whole part of the fractional answer, then the same for the pods that are left, with patterns for these; None
    if that does not end within the limits."""
    packed: list[FilledNodes] = []
    left, chance, known = model.demand.copy(), np.random.default_rng(1), columns
    while left.any():
        counts = _whole(master, columns)
        packed += _as_packing(columns, counts)
        left = (left - columns.matrix.astype(np.int64) @ counts).clip(min=0)
        if not left.any():
            break
        rest = model.with_demand(left)
        columns = _trimmed(rest, known, columns)
        for _ in range(_ROUNDS):
            solved = solve_master(rest, columns)
            if solved is None:
                return None
            master, n_columns = solved, len(columns.options)
            price_quickly(rest, columns, master, master.values.astype(np.int64), chance)
            if len(columns.options) == n_columns:
                break
        columns = columns.first(len(master.shares))
    packing = tuple(packed)
    return packing if is_within_limits(model, counts_of(model, packing)) else None


def _whole(master: Master, columns: Columns) -> Ints:
    """How many of each pattern are bought now, at least one."""
    counts = np.floor(master.shares + 1e-6).astype(np.int64)
    if not counts.any():
        nearly = master.shares >= _WHOLE
        counts[nearly if nearly.any() else int(np.argmax(master.shares * columns.prices))] = 1
    return counts


def _trimmed(rest: PackingModel, *known: Columns) -> Columns:
    """The patterns of before, without pods that have a machine by now."""
    found = Columns(rest)
    for columns in known:
        for option, pattern in zip(columns.options, columns.patterns, strict=True):
            found.add(option, np.minimum(pattern, rest.demand))
    return found


def _as_packing(columns: Columns, counts: Ints) -> Packing:
    return tuple(
        FilledNodes(columns.options[k], tuple(columns.patterns[k].tolist()), int(counts[k]))
        for k in np.flatnonzero(counts > 0).tolist()
    )
