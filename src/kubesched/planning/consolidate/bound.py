"""What no policy could go below: the cheapest nodes and machines that have enough of every resource, if pods could be
cut into parts. Nodes that may not be drained stay. It holds for any scheduler."""

from __future__ import annotations

from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.planning.catalogue import NANOS
from kubesched.planning.consolidate.state import ConsolidationState

_RESOURCES = (CPU, MEMORY)


def cheapest_possible(state: ConsolidationState) -> int:
    """An hour, in 10⁻⁹ of the currency; the best of a bound for each resource."""
    table = state.world.cluster.table
    movable = set(state.candidates())
    pinned = [name for name in state.world.nodes if name not in movable]
    fixed = sum(map(state.price, pinned))
    best = fixed
    for resource in _RESOURCES:
        has, asked = table.allocatable.get(resource), table.requested.get(resource)
        if has is None or asked is None:
            continue
        rows = [table.rows[name] for name in state.world.nodes]
        kept_rows = [table.rows[name] for name in pinned]
        needed = int(asked.data[rows].sum()) - int(has.data[kept_rows].sum())
        for name in movable:
            needed -= state.asked_by_daemons(name, resource)
        offers = [(state.price(name), int(has.data[table.rows[name]])) for name in movable]
        best = max(best, fixed + _fractional(offers, state.replacements.best_rate(resource), needed))
    return -(-best // NANOS) * NANOS if state.prices.are_counted else best


def _fractional(offers: list[tuple[int, int]], rate: float, needed: int) -> int:
    """The least that so much of a resource costs, from nodes of which a part may be taken and, at `rate`, machines."""
    cost = 0.0
    for price, amount in sorted((one for one in offers if one[1] > 0), key=lambda one: one[0] / one[1]):
        if needed <= 0 or price / amount >= rate:
            break
        taken = min(amount, needed)
        cost += price * taken / amount
        needed -= taken
    return int(cost + (max(0, needed) * rate if needed > 0 and rate != float("inf") else 0.0))
