"""PreFilter: the pod's claims, whether they can be used at all, and what has to be allocated.

Next: `filtering`.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Status
from kubesched.k8s.model import selectors
from kubesched.k8s.model.resource import DeviceClass, DeviceRequest, ResourceClaim
from kubesched.scheduler.plugins.dynamic_resources import extended
from kubesched.scheduler.plugins.dynamic_resources.allocator import Allocator
from kubesched.scheduler.plugins.dynamic_resources.claim_book import ClaimBook
from kubesched.scheduler.plugins.dynamic_resources.extended import ExtendedDemand
from kubesched.scheduler.plugins.dynamic_resources.pod_claims import ClaimNotReadyError, claims_of
from kubesched.scheduler.plugins.dynamic_resources.shared_devices import SharedDevices
from kubesched.scheduler.plugins.dynamic_resources.state import DynamicResourcesState, PodClaim


def may_need_devices(pod: PodInfo, classes: Mapping[str, DeviceClass]) -> bool:
    """Says no quickly for most pods."""
    if pod.spec.resource_claims:
        return True
    return bool(classes) and any(map(extended.is_class_backed_name, pod.resources.requests))


def prepare(
    pod: PodInfo, shared: SharedDevices, classes: Mapping[str, DeviceClass], filter_timeout_s: float
) -> DynamicResourcesState | Status:
    """The state for the pod's cycle, or why the pod can go nowhere."""
    try:
        claims = [PodClaim(claim) for claim in claims_of(pod.pod, shared.book.get)]
    except ClaimNotReadyError as problem:
        return Status.unresolvable(str(problem))
    demand = _extended_demand(pod, shared.book, classes)
    if demand is not None:
        claims.append(PodClaim(demand.claim, is_special=True))
    for entry in claims:
        rejection = _prepare_claim(entry, shared.book, classes)
        if rejection is not None:
            return rejection
    state = DynamicResourcesState(claims=claims, extended=demand)
    if any(state.to_allocate()):
        state.allocator = Allocator(shared, classes, filter_timeout_s)
    return state


def _extended_demand(pod: PodInfo, book: ClaimBook, classes: Mapping[str, DeviceClass]) -> ExtendedDemand | None:
    resources, backed = extended.find_demand(pod, classes)
    if not backed:
        return None
    claim = book.made_for_pod(pod.name, pod.pod.metadata.uid) or extended.special_claim(pod)
    return ExtendedDemand(pod.pod, claim, resources, backed)


def _prepare_claim(entry: PodClaim, book: ClaimBook, classes: Mapping[str, DeviceClass]) -> Status | None:
    allocation = entry.claim.status.allocation
    if allocation is not None:
        if allocation.node_selector is not None:
            compiled = selectors.from_node_selector(allocation.node_selector)
            if compiled.errors:
                return Status.error(", ".join(compiled.errors))
            entry.available_on = compiled
        return None
    if book.is_pending(entry.claim):
        return Status.unresolvable(f"resource claim {entry.claim.key} is in the process of being allocated")
    if entry.is_special:
        return None  # what it asks for depends on the node
    return _check_requests(entry.claim, classes)


def _check_requests(claim: ResourceClaim, classes: Mapping[str, DeviceClass]) -> Status | None:
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
