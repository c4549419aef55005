"""How many pods of a group nodes have room for: by the largest amounts that any of them asks for, and by the smallest.

However they are spread, no node is full before it holds as many as it has room for pods of which each asks for the most
of everything; and they take no more room together than the smallest of them would.
"""

from __future__ import annotations

import numpy as np

from kubesched.framework.group_room import GroupRoom
from kubesched.framework.nodes import IntArray
from kubesched.scheduler.plugins.node_resources_fit.filtering import PodDemands


def bound_by_amounts(room: GroupRoom) -> bool:
    """False where a pod takes something else than it asks for, or devices may stand for a resource."""
    asked: dict[str, dict[int, int]] = {}
    """By resource: which amounts are asked for, by how many pods."""
    for kind in room.kinds:
        for demand in kind.cycle.get(PodDemands).demands:
            if demand.has_devices or kind.pod.resources.requests.get(demand.resource, 0) != demand.amount:
                return False
            by_amount = asked.setdefault(demand.resource, {})
            by_amount[demand.amount] = by_amount.get(demand.amount, 0) + kind.n_pods
    nodes, n_pods = room.nodes, room.n_pods
    places = nodes.allowed_pods - nodes.pod_counts
    room.limit_rows(places, places)
    is_open = room.high > 0
    for resource, by_amount in asked.items():
        if not all(_takes_no_more(kind.pod.resources.requests.get(resource, 0), by_amount) for kind in room.kinds):
            return False
        free = np.where(is_open, np.maximum(nodes.allocatable(resource) - nodes.requested(resource), 0), 0)
        is_asked_by_all = sum(by_amount.values()) == n_pods
        room.limit_rows(free // max(by_amount), free // min(by_amount) if is_asked_by_all else None)
        if len(by_amount) > 1 or not is_asked_by_all:
            _bound_together(room, by_amount, free)
    return True


def _bound_together(room: GroupRoom, by_amount: dict[int, int], free: IntArray) -> None:
    """All pods together take no more than is free; and those that ask for much fit only where that much is free."""
    amounts = sorted(by_amount)
    smallest = np.repeat(amounts, [by_amount[amount] for amount in amounts])
    n_modest = room.n_pods - len(smallest)
    taken = np.searchsorted(np.cumsum(smallest), room.parts.sums(free), side="right")
    room.limit_parts(taken.astype(np.int64) + n_modest)
    n_larger = 0
    for amount in reversed(amounts):
        n_larger += by_amount[amount]
        room.limit_parts(np.minimum(room.parts.sums(free // amount), n_larger) + (room.n_pods - n_larger))


def _takes_no_more(amount: int, by_amount: dict[int, int]) -> bool:
    """What a pod takes without asking for it (a resource that is not checked) is no amount that others ask for."""
    return amount == 0 or amount in by_amount
