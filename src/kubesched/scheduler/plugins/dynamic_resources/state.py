"""The ResourceClaims that a pod names, and the plugin's state for one cycle, from PreFilter to PreBind.

A pod whose claim does not exist yet, or was generated for another pod, has to wait: `ClaimNotReadyError` says for what.

Next: `scheduling_cycle` fills in the answers, `binding` uses them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import IntArray, RowArray
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model.core import ContainerExtendedResourceRequest, Pod, PodResourceClaim
from kubesched.k8s.model.meta import controller_of
from kubesched.k8s.model.resource import AllocationResult, ResourceClaim
from kubesched.k8s.model.selectors import CompiledNodeSelector
from kubesched.scheduler.plugins.dynamic_resources.allocator import Allocator
from kubesched.scheduler.plugins.dynamic_resources.outcomes import Found, Outcome
from kubesched.scheduler.plugins.dynamic_resources.requests import ExtendedDemand, Order


class ClaimNotReadyError(Exception):
    """The pod cannot be scheduled as its claims are now."""


def claims_of(pod: Pod, find: Callable[[str], ResourceClaim | None]) -> list[ResourceClaim]:
    """In the order of the pod's spec. `find` gives a claim by its key. Raises ClaimNotReadyError."""
    found = []
    for entry in pod.spec.resource_claims or ():
        name, is_generated = _claim_name(pod, entry)
        if name is None:
            continue
        key = f"{pod.namespace}/{name}"
        claim = find(key)
        if claim is None:
            raise ClaimNotReadyError(f'could not find ResourceClaim "{key}"')
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimNotReadyError(f'resourceclaim "{claim.name}" is being deleted')
        if is_generated and not _is_owned_by(claim, pod):
            raise ClaimNotReadyError(
                f"ResourceClaim {claim.key} was not created for Pod {pod.pod_key} (Pod is not owner)"
            )
        found.append(claim)
    return found


def is_reserved_for(claim: ResourceClaim, pod_uid: str) -> bool:
    return any(consumer.uid == pod_uid for consumer in claim.status.reserved_for or ())


def _claim_name(pod: Pod, entry: PodResourceClaim) -> tuple[str | None, bool]:
    """The claim's name (None if none is needed), and whether it was made for this pod from a template."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name, False
    if entry.resource_claim_template_name is None:
        raise ClaimNotReadyError(
            f'pod "{pod.pod_key}", spec.resourceClaim "{entry.name}": none of the supported fields are set'
        )
    for status in pod.status.resource_claim_statuses or ():
        if status.name == entry.name:
            return status.resource_claim_name, True
    raise ClaimNotReadyError(f'pod "{pod.pod_key}": ResourceClaim not created yet')


def _is_owned_by(claim: ResourceClaim, pod: Pod) -> bool:
    owner = controller_of(claim.metadata)
    return owner is not None and owner.uid == pod.metadata.uid


@dataclass(slots=True, eq=False)
class PodClaim:
    """A claim of the pod. `claim` is replaced as the plugin changes it."""

    claim: ResourceClaim
    is_special: bool = False
    """Made by the scheduler for extended resources."""
    available_on: CompiledNodeSelector | None = None
    """Where the claim can be used, if it is allocated and not everywhere."""
    reserved: ResourceClaim | None = None
    """The claim with the allocation that Reserve chose; None if there was nothing to allocate."""

    @property
    def is_allocated(self) -> bool:
        return self.claim.status.allocation is not None

    @property
    def allocation(self) -> AllocationResult | None:
        return None if self.reserved is None else self.reserved.status.allocation


@dataclass(frozen=True, slots=True, eq=False)
class OutcomePage:
    """The outcomes for one order."""

    order: Order
    outcomes: list[Outcome]


@dataclass(slots=True, eq=False)
class AnswerSheet:
    """What filtering found, by row of the node table."""

    pages: list[OutcomePage] = field(default_factory=list)
    _page: NDArray[np.int32] = field(default_factory=lambda: np.full(0, -1, dtype=np.int32))
    _own: NDArray[np.int32] = field(default_factory=lambda: np.full(0, -1, dtype=np.int32))

    def put(self, order: Order, outcomes: list[Outcome], own: IntArray, rows: RowArray, n_rows: int) -> None:
        """`own`: (len(rows),) the number of each row's outcome in `outcomes`."""
        if len(self._own) != n_rows:
            self._page = np.full(n_rows, -1, dtype=np.int32)
            self._own = np.full(n_rows, -1, dtype=np.int32)
        number = next(
            (n for n, page in enumerate(self.pages) if page.order is order and page.outcomes is outcomes), None
        )
        if number is None:
            number = len(self.pages)
            self.pages.append(OutcomePage(order, outcomes))
        self._page[rows] = number
        self._own[rows] = own

    def at(self, rows: RowArray) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """(len(rows),) the number of each row's page, and of its outcome there; -1 where there is none."""
        if not len(self._own):
            return np.full(len(rows), -1, dtype=np.int32), np.full(len(rows), -1, dtype=np.int32)
        return self._page[rows], self._own[rows]

    def found_at(self, row: int) -> tuple[Found, Order] | None:
        if row >= len(self._own) or self._page[row] < 0:
            return None
        page = self.pages[self._page[row]]
        outcome = page.outcomes[self._own[row]]
        return (outcome, page.order) if isinstance(outcome, Found) else None


@dataclass(slots=True, eq=False)
class DynamicResourcesState:
    """Without claims there is nothing to do for the pod."""

    claims: list[PodClaim] = field(default_factory=list)
    extended: ExtendedDemand | None = None
    allocator: Allocator | None = None
    """None when every claim is allocated."""
    orders: dict[tuple[str, ...] | None, Order] = field(default_factory=dict)
    """What is to be allocated, by the resources that a node must provide as devices; None where that is no matter."""
    sheet: AnswerSheet = field(default_factory=AnswerSheet)
    unavailable: list[BoolArray] = field(default_factory=list)
    """By claim: (n_rows,) the rows of the whole table where it is allocated but cannot be used."""
    is_of_class: bool = False
    """Filtering was done for all pods that ask the same, and the sheet is empty."""
    mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    """Set by Reserve: what containers get through the special claim."""

    @property
    def has_user_claims(self) -> bool:
        return any(not entry.is_special for entry in self.claims)

    @property
    def special(self) -> PodClaim | None:
        return next((entry for entry in self.claims if entry.is_special), None)

    def to_allocate(self) -> Iterator[PodClaim]:
        return (entry for entry in self.claims if not entry.is_allocated)


class StateNotFoundError(LookupError):
    """A later extension point was run without PreFilter."""

    def __init__(self) -> None:
        super().__init__("not found")


def state_of(cycle: CycleState) -> DynamicResourcesState:
    """What PreFilter prepared. Raises StateNotFoundError."""
    state = cycle.find(DynamicResourcesState)
    if state is None:
        raise StateNotFoundError
    return state


NO_CLAIMS = DynamicResourcesState()
"""The state of all pods that have nothing to do with devices."""
