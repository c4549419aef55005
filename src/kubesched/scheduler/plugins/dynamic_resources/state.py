"""The ResourceClaims that a pod names, and the plugin's state for one cycle, from PreFilter to PreBind.

A pod whose claim does not exist yet, or was generated for another pod, has to wait: `ClaimNotReadyError` says for what.

Next: `scheduling_cycle` fills in the answers, `binding` uses them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import IntArray, RowArray
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model.core import ContainerExtendedResourceRequest, Pod, PodResourceClaim, PodResourceClaimStatus
from kubesched.k8s.model.meta import controller_of
from kubesched.k8s.model.resource import AllocationResult, ResourceClaim, ResourceClaimConsumerReference
from kubesched.k8s.model.scheduling import GROUP, PodGroup
from kubesched.k8s.model.selectors import CompiledNodeSelector
from kubesched.scheduler.plugins.dynamic_resources.allocator import Allocator
from kubesched.scheduler.plugins.dynamic_resources.outcomes import Found, Outcome
from kubesched.scheduler.plugins.dynamic_resources.requests import ExtendedDemand, Order


class ClaimNotReadyError(Exception):
    """The pod cannot be scheduled as its claims are now."""


def claims_of(pod: Pod, find: Callable[[str], ResourceClaim | None], *, of_groups: bool = False) -> list[ResourceClaim]:
    """In the order of the pod's spec. `find` gives a claim by its key. With `of_groups` a claim that was made from a
    template may be its group's. Raises ClaimNotReadyError."""
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
            group = _group_name(pod) if of_groups else ""
            if not group or not _is_owned_by_group(claim, group):
                owner = f"neither Pod nor PodGroup {group} is the owner" if group else "Pod is not owner"
                raise ClaimNotReadyError(f"ResourceClaim {claim.key} was not created for Pod {pod.pod_key} ({owner})")
        found.append(claim)
    return found


def group_claims_of(group: PodGroup, find: Callable[[str], ResourceClaim | None]) -> Iterator[ResourceClaim]:
    """The claims that the group itself names. Raises ClaimNotReadyError."""
    for entry in group.spec.resource_claims or ():
        name, is_generated = _claim_name_in(f"PodGroup {group.key}", entry, group.status.resource_claim_statuses)
        if name is None:
            continue
        key = f"{group.namespace}/{name}"
        claim = find(key)
        if claim is None:
            raise ClaimNotReadyError(f'could not find ResourceClaim "{key}"')
        if not is_generated or _is_owned_by_group(claim, group.name):
            yield claim


def is_reserved_for(claim: ResourceClaim, pod_uid: str) -> bool:
    return any(consumer.uid == pod_uid for consumer in claim.status.reserved_for or ())


_POD_GROUPS = "podgroups"


def is_reserved_for_group(claim: ResourceClaim, pod: Pod) -> bool:
    """For the group that the pod names: it does not know the group's uid."""
    name = _group_name(pod)
    return bool(name) and any(
        (consumer.api_group, consumer.resource, consumer.name) == (GROUP, _POD_GROUPS, name)
        for consumer in claim.status.reserved_for or ()
    )


def consumer_of(pod: Pod, claim: ResourceClaim, group: PodGroup | None) -> ResourceClaimConsumerReference:
    """For whom the claim is reserved: for the pod's group if that names it in the same words, else for the pod."""
    entries = () if group is None else group.spec.resource_claims or ()
    if group is not None and any(
        entry in entries and _claim_name(pod, entry)[0] == claim.name for entry in pod.spec.resource_claims or ()
    ):
        return ResourceClaimConsumerReference(GROUP, _POD_GROUPS, group.name, group.metadata.uid or group.key)
    return ResourceClaimConsumerReference(resource="pods", name=pod.name, uid=pod.metadata.uid or pod.pod_key)


def _group_name(pod: Pod) -> str:
    group = pod.spec.scheduling_group
    return "" if group is None else group.pod_group_name or ""


def _is_owned_by_group(claim: ResourceClaim, name: str) -> bool:
    owner = controller_of(claim.metadata)
    return (
        owner is not None
        and (owner.kind, owner.name) == ("PodGroup", name)
        and owner.api_version.startswith(f"{GROUP}/")
    )


def _claim_name(pod: Pod, entry: PodResourceClaim) -> tuple[str | None, bool]:
    return _claim_name_in(f'pod "{pod.pod_key}"', entry, pod.status.resource_claim_statuses)


def _claim_name_in(
    whose: str, entry: PodResourceClaim, statuses: Sequence[PodResourceClaimStatus] | None
) -> tuple[str | None, bool]:
    """The claim's name (None if none is needed), and whether it was made from a template."""
    if entry.resource_claim_name is not None:
        return entry.resource_claim_name, False
    if entry.resource_claim_template_name is None:
        raise ClaimNotReadyError(f'{whose}, spec.resourceClaim "{entry.name}": none of the supported fields are set')
    for status in statuses or ():
        if status.name == entry.name:
            return status.resource_claim_name, True
    raise ClaimNotReadyError(f"{whose}: ResourceClaim not created yet")


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
    shared: AllocationResult | None = None
    """What a pod of the same group was given in this cycle, if the claim is both's."""
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
        return (entry for entry in self.claims if not entry.is_allocated and entry.shared is None)


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
