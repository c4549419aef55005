"""The scheduling cycle, in its order: PreFilter, Filter, PostFilter and Score, Reserve and Unreserve.

PreFilter looks up the pod's claims and checks them against their DeviceClasses. Filter finds the nodes where allocated
claims can be used and the others can be allocated. Score prefers nodes that satisfy an earlier subrequest of a
`firstAvailable` list. Reserve takes the devices; Unreserve gives them back, and PostFilter deallocates a claim that
keeps the pod off every node.

Next: `allocator` for the search behind Filter, `binding` for PreBind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

import msgspec
import numpy as np

from kubesched.framework.groups import GroupCycle
from kubesched.framework.nodes import NodeTable, matching_nodes
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import NodeStatuses, Scores
from kubesched.framework.status import OK, Status
from kubesched.framework.verdicts import ACCEPT_ALL, BoolArray, Verdicts
from kubesched.k8s.model import selectors
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.resource import (
    FINALIZER,
    FIRST_AVAILABLE_MAX_SIZE,
    AllocationResult,
    DeviceClass,
    DeviceRequest,
    ResourceClaim,
)
from kubesched.k8s.model.scheduling import PodGroup
from kubesched.scheduler.plugins.dynamic_resources import binding, requests
from kubesched.scheduler.plugins.dynamic_resources.allocator import Allocator, SharedDevices
from kubesched.scheduler.plugins.dynamic_resources.claim_book import ClaimBook, identity
from kubesched.scheduler.plugins.dynamic_resources.effects import (
    ClaimRequest,
    DeallocateClaim,
    DeleteResourceClaim,
    RemoveReservation,
)
from kubesched.scheduler.plugins.dynamic_resources.outcomes import (
    Abandoned,
    AllocationError,
    Broken,
    Found,
    NotFound,
    Outcome,
)
from kubesched.scheduler.plugins.dynamic_resources.requests import SPECIAL_CLAIM_NAME, ExtendedDemand, Order
from kubesched.scheduler.plugins.dynamic_resources.state import (
    ClaimNotReadyError,
    DynamicResourcesState,
    PodClaim,
    claims_of,
    group_claims_of,
    is_reserved_for,
    is_reserved_for_group,
)

# -- PreFilter ---------------------------------------------------------------------------------------------------------


def may_need_devices(pod: PodInfo, classes: Mapping[str, DeviceClass]) -> bool:
    """Says no quickly for most pods."""
    if pod.spec.resource_claims:
        return True
    return bool(classes) and any(map(requests.is_class_backed_name, pod.resources.requests))


@dataclass(slots=True)
class GroupAllocations:
    """The claims that were allocated for pods of a group in its cycle, by identity: its other pods may use them before
    they are written."""

    claims: set[str] = field(default_factory=set)


def allocations_of(group: GroupCycle | None) -> GroupAllocations | None:
    """Of the group's cycle; None outside of one."""
    if group is None:
        return None
    found = group.state.find(GroupAllocations)
    if found is None:
        group.state.put(found := GroupAllocations())
    return found


@dataclass(frozen=True, slots=True)
class GroupRules:
    """What is different for pods of a group."""

    has_claims: bool = False
    """Groups have claims of their own."""
    ignores_place: bool = False
    """Whether what the first pod was given can be used on the others' nodes is not asked, as in v1.36."""


def prepare(
    pod: PodInfo,
    shared: SharedDevices,
    classes: Mapping[str, DeviceClass],
    filter_timeout_s: float,
    of_group: GroupAllocations | None,
    rules: GroupRules,
) -> DynamicResourcesState | Status:
    """The state for the pod's cycle, or why the pod can go nowhere."""
    try:
        found = claims_of(pod.pod, shared.book.get, of_groups=rules.has_claims)
        claims = [PodClaim(claim) for claim in found]
    except ClaimNotReadyError as problem:
        return Status.unresolvable(str(problem))
    demand = _extended_demand(pod, shared.book, classes)
    if demand is not None:
        claims.append(PodClaim(demand.claim, is_special=True))
    for entry in claims:
        if of_group is not None and identity(entry.claim) in of_group.claims and not entry.is_allocated:
            entry.shared = shared.book.pending_allocation(entry.claim)
        rejection = _prepare_claim(entry, shared.book, classes, rules)
        if rejection is not None:
            return rejection
    state = DynamicResourcesState(claims=claims, extended=demand)
    if any(state.to_allocate()):
        state.allocator = Allocator(shared, classes, filter_timeout_s)
    return state


def _extended_demand(pod: PodInfo, book: ClaimBook, classes: Mapping[str, DeviceClass]) -> ExtendedDemand | None:
    resources, backed = requests.find_demand(pod, classes)
    if not backed:
        return None
    claim = book.made_for_pod(pod.name, pod.pod.metadata.uid) or requests.special_claim(pod)
    return ExtendedDemand(pod.pod, claim, resources, backed)


def _prepare_claim(
    entry: PodClaim, book: ClaimBook, classes: Mapping[str, DeviceClass], rules: GroupRules
) -> Status | None:
    allocation = entry.claim.status.allocation or entry.shared
    if allocation is not None:
        if allocation.node_selector is not None and not (entry.shared is not None and rules.ignores_place):
            compiled = selectors.from_node_selector(allocation.node_selector)
            if compiled.errors:
                return Status.error(", ".join(compiled.errors))
            entry.available_on = compiled
        return None
    if book.is_pending(entry.claim):
        return Status.unresolvable(f"resource claim {entry.claim.key} is in the process of being allocated")
    if entry.is_special:
        return None  # what it asks for depends on the node
    return check_requests(entry.claim, classes)


def check_requests(claim: ResourceClaim, classes: Mapping[str, DeviceClass]) -> Status | None:
    """What is wrong with the claim's requests on all nodes."""
    for request in claim.spec.devices.requests or ():
        named = _named_classes(request)
        if not named:
            return Status.unresolvable(f"resource claim {claim.key}, request {request.name}: unknown request type")
        for request_name, class_name in named:
            if not class_name:
                return Status.error(f"request {request_name}: unsupported request type")
            if class_name not in classes:
                return Status.unresolvable(f"request {request_name}: device class {class_name} does not exist")
    return None


def _named_classes(request: DeviceRequest) -> list[tuple[str, str]]:
    """The classes that a request names, each with the name of who names it."""
    if request.exactly is not None:
        return [(request.name, request.exactly.device_class_name)]
    return [(f"{request.name}/{sub.name}", sub.device_class_name) for sub in request.first_available or ()]


# -- Filter ------------------------------------------------------------------------------------------------------------


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
        if entry.is_allocated or entry.shared is not None:
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
        ready = binding.is_ready(entry.claim)
    except binding.DeviceBindingError:
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


# -- Score -------------------------------------------------------------------------------------------------------------


def score_nodes(state: DynamicResourcesState, nodes: NodeTable) -> Scores:
    """(n_nodes,) raw scores; 0 where nothing was allocated in this cycle."""
    scores = np.zeros(len(nodes), dtype=np.int64)
    if state.allocator is None:
        return scores
    pages, own = state.sheet.at(nodes.rows)
    allocated = sum(
        _score_allocated(entry.claim, entry.claim.status.allocation or entry.shared) for entry in state.claims
    )
    for number, page in enumerate(state.sheet.pages):
        here = pages == number
        scores[here] = allocated
        if any(wanted.is_prioritized for wanted in page.order.claims):
            for outcome in np.unique(own[here]).tolist():
                scores[here & (own == outcome)] += score_outcome(page.order, page.outcomes[outcome])
    return scores


def score_outcome(order: Order, outcome: Outcome) -> int:
    """What the alternatives that were found are worth."""
    if not isinstance(outcome, Found):
        return 0
    score = 0
    for wanted, picks in zip(order.claims, outcome.picks, strict=True):
        # A subrequest counts as taken when it was given a device.
        taken = {(pick.request, pick.alternative) for pick in picks if wanted.requests[pick.request][0].parent}
        score += sum(FIRST_AVAILABLE_MAX_SIZE - alternative for _, alternative in taken)
    return score


def _score_allocated(claim: ResourceClaim, allocation: AllocationResult | None) -> int:
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


# -- Reserve, Unreserve, PostFilter ------------------------------------------------------------------------------------


def reserve(
    state: DynamicResourcesState,
    pod: PodInfo,
    nodes: NodeTable,
    node_name: str,
    book: ClaimBook,
    of_group: GroupAllocations | None,
) -> Status:
    """Keeps the devices that filtering found on the node, and what other pods of the group have kept."""
    status = _reserve_new(state, pod, nodes, node_name, book)
    if not status.is_success:
        return status
    for entry in state.claims:
        if entry.shared is not None:
            entry.reserved = _allocated(entry.claim, book.pending_allocation(entry.claim) or entry.shared)
            book.hold(entry.reserved, pod.uid)
        if of_group is not None and entry.reserved is not None and not entry.is_special:
            of_group.claims.add(identity(entry.claim))
    return OK


def _reserve_new(
    state: DynamicResourcesState, pod: PodInfo, nodes: NodeTable, node_name: str, book: ClaimBook
) -> Status:
    row = nodes.row_of(node_name)
    if state.allocator is None or row is None:
        return OK
    answer = _found_for_class(state, nodes, row) if state.is_of_class else state.sheet.found_at(row)
    if answer is None:
        if all(entry.is_special for entry in state.to_allocate()):
            return OK  # the node itself has all that the pod asks for as extended resources
        return Status.error("claim allocation not found for node")
    found, order = answer
    try:
        results = state.allocator.spell_out(found, order, nodes.whole.take(np.array([row])))
    except AllocationError as error:
        return Status.error(error.message)
    for entry, wanted, result in zip(state.to_allocate(), order.claims, results, strict=True):
        entry.reserved = _allocated(wanted.claim, result)
        book.hold(entry.reserved, pod.uid)
        if entry.is_special and state.extended is not None:
            kind = next(kind for kind, known in state.orders.items() if known is order)
            state.mappings = state.extended.requests(kind or ()).mappings
    return OK


def _found_for_class(state: DynamicResourcesState, nodes: NodeTable, row: int) -> tuple[Found, Order] | None:
    assert state.allocator is not None
    order = state.orders[None]
    outcome = state.allocator.answer_on(order, nodes, row)
    return (outcome, order) if isinstance(outcome, Found) else None


def unreserve(state: DynamicResourcesState, pod: PodInfo, book: ClaimBook) -> list[ClaimRequest]:
    """Frees what `reserve` took, and asks to undo what PreBind wrote."""
    requests: list[ClaimRequest] = []
    for entry in state.claims:
        if entry.reserved is not None and book.release(entry.reserved, pod.uid):
            book.restore(entry.claim.key)
        claim = entry.claim
        if entry.is_special:
            if claim.name != SPECIAL_CLAIM_NAME:
                requests.append(DeleteResourceClaim(claim.key, claim.metadata.uid))
        elif entry.is_allocated and is_reserved_for(claim, pod.uid):
            requests.append(RemoveReservation(claim.key, claim.metadata.uid, pod.uid))
        entry.reserved = None
    return requests


def free_something(
    state: DynamicResourcesState, pod: PodInfo, nodes: NodeTable, statuses: NodeStatuses
) -> tuple[Status, list[ClaimRequest]]:
    """When no node fits: gives up an allocation that keeps the pod away from nodes, if the pod alone uses it."""
    for claim in _unavailable(state, nodes, statuses):
        consumers = claim.status.reserved_for or ()
        if not consumers or (len(consumers) == 1 and consumers[0].uid == pod.uid):
            request = DeallocateClaim(claim.key, claim.metadata.uid, claim.metadata.resource_version)
            return Status.unschedulable("deallocation of ResourceClaim completed"), [request]
    special = state.special
    if special is not None and special.claim.name != SPECIAL_CLAIM_NAME:
        delete = DeleteResourceClaim(special.claim.key, special.claim.metadata.uid)
        return Status.unschedulable("deletion of ResourceClaim completed"), [delete]
    return Status.unschedulable("still not schedulable"), []


def unreserve_for_group(pod: Pod, group: PodGroup, book: ClaimBook) -> tuple[Status, RemoveReservation] | None:
    """When no pod of the group has a node: takes the group out of a claim that an earlier attempt allocated, so that
    other devices can be tried. None if there is no such claim. Raises ClaimNotReadyError."""
    for claim in group_claims_of(group, book.get):
        if claim.status.allocation is not None and is_reserved_for_group(claim, pod):
            request = RemoveReservation(claim.key, claim.metadata.uid, group.metadata.uid or group.key)
            return Status.unresolvable("ResourceClaim unreserved for PodGroup"), request
    return None


def _unavailable(state: DynamicResourcesState, nodes: NodeTable, statuses: NodeStatuses) -> list[ResourceClaim]:
    """The pod's own claims that some node was rejected for."""
    rows = [
        row
        for name, status in statuses.explicit().items()
        if NOT_AVAILABLE in status.reasons and (row := nodes.row_of(name)) is not None
    ]
    if not rows or not state.unavailable:
        return []
    return [
        entry.claim
        for entry, by_row in zip(state.claims, state.unavailable, strict=True)
        if not entry.is_special and entry.is_allocated and by_row[rows].any()
    ]


def _allocated(claim: ResourceClaim, allocation: AllocationResult) -> ResourceClaim:
    """The claim as it will be once this is written."""
    finalizers = claim.metadata.finalizers or ()
    if FINALIZER not in finalizers:
        finalizers = (*finalizers, FINALIZER)
    return msgspec.structs.replace(
        claim,
        metadata=msgspec.structs.replace(claim.metadata, finalizers=finalizers),
        status=msgspec.structs.replace(claim.status, allocation=allocation),
    )
