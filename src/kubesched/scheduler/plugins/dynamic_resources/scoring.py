"""Score: of subrequests listed in order of preference, the earlier one was found on a node, the better.

Next: `plugin`.
"""

from __future__ import annotations

import numpy as np

from kubesched.framework.nodes import NodeTable
from kubesched.framework.scores import Scores
from kubesched.k8s.model.resource import FIRST_AVAILABLE_MAX_SIZE, ResourceClaim
from kubesched.scheduler.plugins.dynamic_resources.outcomes import Found, Outcome
from kubesched.scheduler.plugins.dynamic_resources.state import DynamicResourcesState
from kubesched.scheduler.plugins.dynamic_resources.wants import Order


def score_nodes(state: DynamicResourcesState, nodes: NodeTable) -> Scores:
    """(n_nodes,) raw scores; 0 where nothing was allocated in this cycle."""
    scores = np.zeros(len(nodes), dtype=np.int64)
    if state.allocator is None:
        return scores
    pages, own = state.sheet.at(nodes.rows)
    allocated = sum(_score_allocated(entry.claim) for entry in state.claims)
    for number, page in enumerate(state.sheet.pages):
        here = pages == number
        scores[here] = allocated
        if any(wanted.is_prioritized for wanted in page.order.claims):
            for outcome in np.unique(own[here]).tolist():
                scores[here & (own == outcome)] += _score(page.order, page.outcomes[outcome])
    return scores


def _score(order: Order, outcome: Outcome) -> int:
    if not isinstance(outcome, Found):
        return 0
    score = 0
    for wanted, picks in zip(order.claims, outcome.picks, strict=True):
        # A subrequest counts as taken when it was given a device.
        taken = {(pick.request, pick.alternative) for pick in picks if wanted.requests[pick.request][0].parent}
        score += sum(FIRST_AVAILABLE_MAX_SIZE - alternative for _, alternative in taken)
    return score


def _score_allocated(claim: ResourceClaim) -> int:
    allocation = claim.status.allocation
    if allocation is None:
        return 0
    taken = {result.request for result in allocation.devices.results or ()}
    return sum(
        FIRST_AVAILABLE_MAX_SIZE - rank
        for request in claim.spec.devices.requests or ()
        if request.exactly is None
        for rank, subrequest in enumerate(request.first_available or ())
        if f"{request.name}/{subrequest.name}" in taken
    )
