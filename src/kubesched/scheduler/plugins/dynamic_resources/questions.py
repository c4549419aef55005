"""What the claims of a pod ask of a node, without what is their own: devices of classes, selectors, counts.

Pods that ask the same have the same answers on nodes that are offered the same. Claims that are allocated already, or
about to be, ask more than that, and so does everybody where devices are offered to many nodes at once: for their pods
`scheduling_cycle` looks at all nodes.

Next: `allocator`, which searches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kubesched.framework.nodes import NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import Scores
from kubesched.framework.status import PluginFault
from kubesched.framework.verdicts import Verdicts
from kubesched.k8s.model.resource import DeviceClass, ResourceClaim
from kubesched.scheduler.plugins.dynamic_resources import requests, scheduling_cycle
from kubesched.scheduler.plugins.dynamic_resources.allocator import Allocator, SharedDevices
from kubesched.scheduler.plugins.dynamic_resources.outcomes import CANNOT_ALLOCATE, Abandoned, Broken, Found, Outcome
from kubesched.scheduler.plugins.dynamic_resources.requests import Order
from kubesched.scheduler.plugins.dynamic_resources.state import (
    ClaimNotReadyError,
    DynamicResourcesState,
    PodClaim,
    claims_of,
)


@dataclass(frozen=True, slots=True, eq=False)
class AskingPod:
    """A pod, its claims, and what they ask."""

    pod: PodInfo
    claims: tuple[ResourceClaim, ...]
    order: Order

    def state(self, allocator: Allocator) -> DynamicResourcesState:
        """The state of its cycle, if it is answered for all that ask the same."""
        claims = [PodClaim(claim) for claim in self.claims]
        return DynamicResourcesState(claims, allocator=allocator, orders={None: self.order}, is_of_class=True)


@dataclass(slots=True, eq=False)
class AskedDevices:
    """What all pods of a class ask for."""

    order: Order
    place: int
    """How far the log of nodes that are offered something else was read."""
    n_offers_to_all: int
    """How often all nodes were offered something else, then."""

    def outcome(self, allocator: Allocator, nodes: NodeTable, row: int) -> Outcome:
        """On a node of the whole table."""
        return _judged(allocator.answer_on(self.order, nodes, row))

    def verdicts(self, allocator: Allocator, nodes: NodeTable) -> Verdicts:
        outcomes, own = allocator.answers(self.order, nodes)
        is_found = np.zeros(len(outcomes), dtype=np.bool_)
        for number in np.unique(own).tolist():
            is_found[number] = isinstance(_judged(outcomes[number]), Found)
        return Verdicts.reject(~is_found[own], CANNOT_ALLOCATE, unresolvable=True)

    def scores(self, allocator: Allocator, nodes: NodeTable) -> Scores:
        """Raw scores; 0 where nothing can be allocated."""
        if not is_prioritized(self.order):
            return np.zeros(len(nodes), dtype=np.int64)
        outcomes, own = allocator.answers(self.order, nodes)
        of_outcome = np.array([scheduling_cycle.score_outcome(self.order, outcome) for outcome in outcomes], np.int64)
        scores: Scores = of_outcome[own]
        return scores


def find_question(
    pod: PodInfo,
    shared: SharedDevices,
    classes: Mapping[str, DeviceClass],
    allocator: Allocator,
    *,
    of_groups: bool = False,
) -> AskingPod | None:
    """None if the claims ask for more than can be said in general. `shared` must be fresh."""
    if shared.inventory.problem is not None or shared.inventory.floating or requests.find_demand(pod, classes)[1]:
        return None
    try:
        claims = tuple(claims_of(pod.pod, shared.book.get, of_groups=of_groups))
    except ClaimNotReadyError:
        return None
    for claim in claims:
        if claim.status.allocation is not None or shared.book.is_pending(claim):
            return None
        if scheduling_cycle.check_requests(claim, classes) is not None:
            return None
    return AskingPod(pod, claims, allocator.order(claims)) if claims else None


def is_prioritized(order: Order) -> bool:
    return any(wanted.is_prioritized for wanted in order.claims)


def _judged(outcome: Outcome) -> Outcome:
    if isinstance(outcome, Broken | Abandoned):
        raise PluginFault("what comes of a node cannot be said for all pods")
    return outcome
