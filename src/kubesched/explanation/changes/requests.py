"""Lower which request to what: the largest requests with which the pod would fit.

Of one resource alone, wherever a node lacks nothing else; of several together only if one alone is never enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from kubesched.explanation.changes.change import Change, ChangeKind, PatchPod, Proposal, Reluctance
from kubesched.explanation.changes.lowering import lower_request
from kubesched.explanation.changes.patches import PatchOperation
from kubesched.explanation.changes.shortfalls import Shortfalls, find_shortfalls
from kubesched.explanation.changes.situation import Situation
from kubesched.explanation.layout import exact, exact_and_readable
from kubesched.framework.nodes import RowArray
from kubesched.k8s.model.requests import PODS
from kubesched.scheduler.plugins.node_resources_fit import NodeResourcesFit

SMALL_CUT, LARGE_CUT = 0.25, 0.6
"""Shares of a request that a program may do without, or hardly."""


def lower_requests(situation: Situation) -> list[Change]:
    if NodeResourcesFit.name not in situation.failures.rejecting():
        return []
    shortfalls = find_shortfalls(situation, situation.failures.only({NodeResourcesFit.name}))
    found = []
    for resource in shortfalls.resources:
        if resource != PODS:
            change = situation.what_if.first_that_helps(_alone(situation, shortfalls, resource))
            found.extend([change] if change is not None else [])
    if not found:
        change = situation.what_if.first_that_helps(_together(situation, shortfalls))
        found.extend([change] if change is not None else [])
    return found


def propose_requests(situation: Situation, row: int) -> Proposal | None:
    """What the pod may ask for on this node; None if it asks for too much of something that cannot be lowered."""
    shortfalls = find_shortfalls(situation, np.array([row]))
    return _lower(situation, row, _targets(shortfalls, 0), float(shortfalls.cost()[0]))


def _alone(situation: Situation, shortfalls: Shortfalls, resource: str) -> Iterator[Proposal]:
    """For nodes that lack this resource only, the one with most of it first."""
    index = shortfalls.resources.index(resource)
    alone = np.flatnonzero(shortfalls.lacks[index] & (shortfalls.lacks.sum(axis=0) == 1))
    tried: set[int] = set()
    for position in alone[np.argsort(-shortfalls.free[index, alone], kind="stable")].tolist():
        target = max(0, int(shortfalls.free[index, position]))
        if target not in tried:
            tried.add(target)
            row = int(shortfalls.rows[position])
            proposal = _lower(situation, row, {resource: target}, float(shortfalls.cost()[position]))
            if proposal is not None:
                yield proposal


def _together(situation: Situation, shortfalls: Shortfalls) -> Iterator[Proposal]:
    """For nodes that lack several, the one first where least has to be given up."""
    cost = shortfalls.cost()
    order: RowArray = np.argsort(cost, kind="stable")
    for position in order.tolist():
        row = int(shortfalls.rows[position])
        proposal = _lower(situation, row, _targets(shortfalls, position), float(cost[position]))
        if proposal is not None:
            yield proposal


def _targets(shortfalls: Shortfalls, position: int) -> dict[str, int]:
    free = shortfalls.free[:, position].tolist()
    lacks = shortfalls.lacks[:, position].tolist()
    return {
        resource: max(0, units)
        for resource, units, is_short in zip(shortfalls.resources, free, lacks, strict=True)
        if is_short
    }


def _lower(situation: Situation, row: int, targets: Mapping[str, int], cost: float) -> Proposal | None:
    pod = situation.pod
    operations: list[PatchOperation] = []
    for resource, units in targets.items():
        lowered = None if resource == PODS else lower_request(pod.pod, resource, units)
        if not lowered:
            return None
        operations.extend(lowered)
    wanted = pod.resources.wanted
    amounts = {name: (wanted.get(name, 0), units) for name, units in targets.items()}
    cut = max((before - after) / max(before, 1) for before, after in amounts.values())
    steps = [
        f"the {name} request from {exact_and_readable(name, before)} to {exact_and_readable(name, after)}"
        for name, (before, after) in amounts.items()
    ]
    return Proposal(
        kind=ChangeKind.REQUESTS,
        description=f"lower {' and '.join(steps)}",
        node=situation.name(row),
        actions=(PatchPod(pod.key, tuple(operations)),),
        details={"requests": {n: {"from": exact(n, old), "to": exact(n, new)} for n, (old, new) in amounts.items()}},
        n_edits=len(targets),
        cost=cost,
        reluctance=_price(cut),
        cost_to_others=f"costs others nothing; the pod gets {cut:.0%} less",
        is_drastic=any(units == 0 for units in targets.values()),
    )


def _price(cut: float) -> Reluctance:
    """By the share of the request that is given up."""
    if cut <= SMALL_CUT:
        return Reluctance.LITTLE
    return Reluctance.MUCH if cut <= LARGE_CUT else Reluctance.HARM
