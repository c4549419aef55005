"""Filter: where can the pod's claims be used, or allocated?

Next: `allocator` for the search behind it, `scoring` for what comes after.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from kubesched.framework.nodes import NodeTable
from kubesched.framework.verdicts import ACCEPT_ALL, BoolArray, Verdicts
from kubesched.scheduler.plugins.dynamic_resources import binding_conditions
from kubesched.scheduler.plugins.dynamic_resources.allocator import Allocator
from kubesched.scheduler.plugins.dynamic_resources.claim_book import ClaimBook
from kubesched.scheduler.plugins.dynamic_resources.node_rules import matching_nodes
from kubesched.scheduler.plugins.dynamic_resources.outcomes import Abandoned, Broken, Found, NotFound, Outcome
from kubesched.scheduler.plugins.dynamic_resources.state import DynamicResourcesState, PodClaim
from kubesched.scheduler.plugins.dynamic_resources.wants import Order

LEFT_OVER = "cannot schedule extended resource claim"
CANNOT_FIT = "cannot fit resource"
NOT_AVAILABLE = "resourceclaim not available on the node"

Findings = dict[str, BoolArray]
"""By reason: (n_nodes,) the nodes rejected for it. None of them can be helped by evictions."""


def filter_nodes(state: DynamicResourcesState, nodes: NodeTable, book: ClaimBook) -> Verdicts:
    if not state.claims:
        return ACCEPT_ALL
    findings: Findings = {}
    errors: dict[int, str] = {}
    concerned = np.ones(len(nodes), dtype=np.bool_)
    if state.extended is not None:
        if state.extended.is_left_over:
            return Verdicts.reject(concerned, LEFT_OVER, unresolvable=True)
        unfit = state.extended.unfit(nodes)
        findings[CANNOT_FIT] = unfit
        concerned &= ~unfit
    if state.allocator is not None:
        concerned &= _allocate(state, state.allocator, nodes, concerned, findings, errors)
    unavailable = _find_unavailable(state, nodes, book)
    findings[NOT_AVAILABLE] = concerned & unavailable
    return _verdicts(findings, errors, len(nodes))


def _allocate(
    state: DynamicResourcesState,
    allocator: Allocator,
    nodes: NodeTable,
    concerned: BoolArray,
    findings: Findings,
    errors: dict[int, str],
) -> BoolArray:
    """Notes what came of the search on each node; (n_nodes,) where all claims can be allocated, or need not be."""
    fine = np.zeros(len(nodes), dtype=np.bool_)
    for order, mask in _cases(state, allocator, nodes, concerned):
        if order is None:
            fine |= mask
            continue
        positions = np.flatnonzero(mask)
        part = nodes if len(positions) == len(nodes) else nodes.take(positions)
        outcomes, own = allocator.answers(order, part)
        state.sheet.put(order, outcomes, own, part.rows, len(nodes.whole))
        fine[positions[_flags(outcomes, lambda outcome: isinstance(outcome, Found))[own]]] = True
        for reason in sorted({outcome.reason for outcome in outcomes if isinstance(outcome, NotFound)}):
            hit = positions[_flags(outcomes, partial(_is_for, reason))[own]]
            findings.setdefault(reason, np.zeros(len(nodes), dtype=np.bool_))[hit] = True
        for index in np.flatnonzero(_flags(outcomes, lambda outcome: isinstance(outcome, Broken | Abandoned))[own]):
            at = int(positions[index])
            errors[at] = _explain(outcomes[own[index]], allocator, nodes, at)
    return fine


def _flags(outcomes: list[Outcome], question: Callable[[Outcome], bool]) -> BoolArray:
    """(n_outcomes,) what the question says of each."""
    return np.fromiter(map(question, outcomes), dtype=np.bool_, count=len(outcomes))


def _is_for(reason: str, outcome: Outcome) -> bool:
    return isinstance(outcome, NotFound) and outcome.reason == reason


def _cases(
    state: DynamicResourcesState, allocator: Allocator, nodes: NodeTable, concerned: BoolArray
) -> list[tuple[Order | None, BoolArray]]:
    """What is to be allocated, and (n_nodes,) where it is that: nodes differ in what they offer without devices."""
    if state.extended is None or state.extended.claim.status.allocation is not None:
        return [(_order(state, allocator, None), concerned)]
    kinds, own = state.extended.kinds(nodes)
    cases: list[tuple[Order | None, BoolArray]] = []
    for number, kind in enumerate(kinds):
        mask = concerned & (own == number)
        if mask.any():
            is_served = not kind and not state.has_user_claims
            cases.append((None if is_served else _order(state, allocator, kind), mask))
    return cases


def _order(state: DynamicResourcesState, allocator: Allocator, kind: tuple[str, ...] | None) -> Order:
    order = state.orders.get(kind)
    if order is None:
        claims = [
            state.extended.claim_for(kind)
            if entry.is_special and state.extended is not None and kind is not None
            else entry.claim
            for entry in state.to_allocate()
        ]
        order = state.orders[kind] = allocator.order(claims)
    return order


def _explain(outcome: Outcome, allocator: Allocator, nodes: NodeTable, position: int) -> str:
    """The error as told for one node."""
    if isinstance(outcome, Abandoned):
        return f"node {nodes.names[position]}: timed out trying to allocate devices"
    assert isinstance(outcome, Broken)
    if outcome.device is None:
        return outcome.message
    offer = allocator.offer(nodes.take(np.array([position])))
    return f"{outcome.message}{offer.device_id(outcome.device)}{outcome.rest}"


def _find_unavailable(state: DynamicResourcesState, nodes: NodeTable, book: ClaimBook) -> BoolArray:
    """(n_nodes,) where some allocated claim cannot be used. Remembers which, for PostFilter."""
    if len(state.unavailable) != len(state.claims):
        state.unavailable = [np.zeros(len(nodes.whole), dtype=np.bool_) for _ in state.claims]
    unavailable = np.zeros(len(nodes), dtype=np.bool_)
    for entry, by_row in zip(state.claims, state.unavailable, strict=True):
        if entry.is_allocated:
            mask = _unavailable_claim(entry, nodes, book)
            by_row[nodes.rows] = mask
            unavailable |= mask
    return unavailable


def _unavailable_claim(entry: PodClaim, nodes: NodeTable, book: ClaimBook) -> BoolArray:
    if has_failed(entry, book):
        return np.ones(len(nodes), dtype=np.bool_)
    if entry.available_on is None:
        return np.zeros(len(nodes), dtype=np.bool_)
    return ~matching_nodes(entry.available_on, nodes)


def has_failed(entry: PodClaim, book: ClaimBook) -> bool:
    """Whether the claim's devices did not get ready: then others should be tried."""
    try:
        ready = binding_conditions.is_ready(entry.claim)
    except binding_conditions.DeviceBindingError:
        return True
    return not ready and book.has_timed_out(entry.claim)


def _verdicts(findings: Findings, errors: dict[int, str], n_nodes: int) -> Verdicts:
    verdicts = Verdicts.combine((reason, mask, True) for reason, mask in findings.items())
    if not errors:
        return verdicts
    if verdicts is ACCEPT_ALL:
        nothing = np.zeros((0, n_nodes), dtype=np.bool_)
        return Verdicts((), nothing, np.zeros(n_nodes, dtype=np.bool_), errors)
    return Verdicts(verdicts.reasons, verdicts.bits, verdicts.unresolvable, errors)
