"""Reserve and Unreserve: the chosen devices are taken from now on, or free again. PostFilter frees them for good.

Next: `binding` writes down what was reserved.
"""

from __future__ import annotations

import msgspec
import numpy as np

from kubesched.framework.nodes import NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import NodeStatuses
from kubesched.framework.status import OK, Status
from kubesched.k8s.model.resource import FINALIZER, AllocationResult, ResourceClaim
from kubesched.scheduler.plugins.dynamic_resources.claim_book import ClaimBook
from kubesched.scheduler.plugins.dynamic_resources.effects import (
    ClaimRequest,
    DeallocateClaim,
    DeleteResourceClaim,
    RemoveReservation,
)
from kubesched.scheduler.plugins.dynamic_resources.extended import SPECIAL_CLAIM_NAME
from kubesched.scheduler.plugins.dynamic_resources.filtering import NOT_AVAILABLE
from kubesched.scheduler.plugins.dynamic_resources.outcomes import AllocationError
from kubesched.scheduler.plugins.dynamic_resources.pod_claims import is_reserved_for
from kubesched.scheduler.plugins.dynamic_resources.state import DynamicResourcesState


def reserve(state: DynamicResourcesState, nodes: NodeTable, node_name: str, book: ClaimBook) -> Status:
    """Keeps the devices that filtering found on the node."""
    row = nodes.row_of(node_name)
    if state.allocator is None or row is None:
        return OK
    answer = state.sheet.found_at(row)
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
        book.hold(entry.reserved)
        if entry.is_special and state.extended is not None:
            kind = next(kind for kind, known in state.orders.items() if known is order)
            state.mappings = state.extended.requests(kind or ()).mappings
    return OK


def unreserve(state: DynamicResourcesState, pod: PodInfo, book: ClaimBook) -> list[ClaimRequest]:
    """Frees what `reserve` took, and asks to undo what PreBind wrote."""
    requests: list[ClaimRequest] = []
    for entry in state.claims:
        if entry.reserved is not None and book.release(entry.reserved):
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
        if not entry.is_special and by_row[rows].any()
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
