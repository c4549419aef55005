"""The search for devices: the first solution, in the order of claims, requests, alternatives and devices.

It tries every device for every request and goes back where that leads nowhere. Within a request only combinations in
the order of the devices are tried, not all their permutations. Steps are coroutines on a stack of their own, so that
claims for hundreds of devices do not need hundreds of Python frames: each yields the next step and is sent its end.

Next: `tentative` keeps the books of what is being tried; `allocator` runs searches for whole tables of nodes.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from enum import Enum

from kubesched.k8s.model.resource import ALLOCATION_RESULTS_MAX_SIZE
from kubesched.scheduler.plugins.dynamic_resources import selection
from kubesched.scheduler.plugins.dynamic_resources.offers import NodeOffer
from kubesched.scheduler.plugins.dynamic_resources.outcomes import (
    CANNOT_ALLOCATE,
    INVALID_POOLS,
    AllocationError,
    Found,
    NotFound,
    SearchBudget,
)
from kubesched.scheduler.plugins.dynamic_resources.tentative import Place, Tentative
from kubesched.scheduler.plugins.dynamic_resources.wants import Want, WantedClaim

_UNITS_PER_STEP = 5
"""What a step costs, in cost units of CEL."""


class End(Enum):
    """How a step ended."""

    FOUND = "found"
    DEAD_END = "dead end"
    TOO_MANY = "too many"
    """The claim would get more devices than it can hold, whichever they are: other devices do not help."""


Step = Generator["Step", End, End]


@dataclass(frozen=True, slots=True)
class Need:
    """What an alternative comes to on this offer."""

    n_devices: int
    every: tuple[int, ...] = ()
    """The devices, where all that match are wanted."""


class Search:
    """One search, for some claims in one offer."""

    def __init__(self, claims: Sequence[WantedClaim], offer: NodeOffer, budget: SearchBudget) -> None:
        self._claims = claims
        self._offer = offer
        self._budget = budget
        self._tentative = Tentative(claims, offer)
        self._needs: dict[Want, Need] = {}
        self._selectable: dict[tuple[Want, int], bool] = {}
        self._chosen: list[list[int]] = [[0] * len(wanted.requests) for wanted in claims]

    def run(self) -> Found | NotFound:
        """Raises AllocationError, or SearchAbandonedError."""
        for wanted in self._claims:
            self._check(wanted)
        if self._drive(self._next_request(0, 0)) is End.FOUND:
            picks = tuple(tuple(picked) for picked in self._tentative.picks)
            return Found(picks, tuple(tuple(chosen) for chosen in self._chosen))
        if any(view.is_invalid for view in self._offer.views):
            return NotFound(INVALID_POOLS)
        return NotFound(CANNOT_ALLOCATE)

    # -- before the search --------------------------------------------------------------------------------------------

    def _check(self, wanted: WantedClaim) -> None:
        fewest = 0
        for alternatives in wanted.requests:
            for want in alternatives:
                self._needs[want] = self._need(want, wanted)
            fewest += min(self._needs[want].n_devices for want in alternatives)
        if fewest > ALLOCATION_RESULTS_MAX_SIZE:
            raise AllocationError(
                f"claim {wanted.key}: number of requested devices {fewest} exceeds the claim limit of "
                f"{ALLOCATION_RESULTS_MAX_SIZE}"
            )
        for index, constraint in enumerate(wanted.constraints):
            if constraint.match_attribute is None and constraint.distinct_attribute is None:
                raise AllocationError(
                    f"claim {wanted.key}, constraint #{index}: empty constraint (unsupported constraint type?)"
                )

    def _need(self, want: Want, wanted: WantedClaim) -> Need:
        if want.problem is not None:
            raise AllocationError(want.problem)
        if not want.wants_all:
            return Need(want.count)
        every: list[int] = []
        start = 0
        for view in self._offer.views:
            if view.is_unhealthy:
                state = "currently being updated" if view.is_incomplete else "currently invalid"
                raise AllocationError(
                    f"claim {wanted.key}, request {want.name}: asks for all devices, "
                    f"but resource pool {view.pool_id} is {state}"
                )
            end = start + len(view.devices)
            every.extend(
                device
                for device in range(start, end)
                if self._is_selectable(want, device, wanted.key) and self._tentative.has_room(want, device)
            )
            start = end
        return Need(len(every), tuple(every))

    def _is_selectable(self, want: Want, device: int, claim_key: str) -> bool:
        known = self._selectable.get((want, device))
        if known is None:
            is_selected = selection.is_selected(want, self._offer.devices[device], claim_key, self._budget)
            known = is_selected and self._offer.usable[device]
            self._selectable[want, device] = known
        return known

    # -- the search ---------------------------------------------------------------------------------------------------

    def _drive(self, first: Step) -> End:
        stack = [first]
        end: End | None = None
        while stack:
            try:
                following = next(stack[-1]) if end is None else stack[-1].send(end)
            except StopIteration as stopped:
                stack.pop()
                end = stopped.value
            else:
                self._budget.spend(_UNITS_PER_STEP)
                stack.append(following)
                end = None
        assert end is not None
        return end

    def _next_request(self, claim: int, request: int) -> Step:
        if claim == len(self._claims):
            return End.FOUND
        requests = self._claims[claim].requests
        if request == len(requests):
            end = yield self._next_request(claim + 1, 0)
            # Another choice for this claim may leave the next one an alternative that needs fewer devices.
            return End.DEAD_END if end is End.TOO_MANY else end
        if not requests[request][0].parent:
            return (yield self._next_device(Place(claim, request, 0), 0, 0))
        always_too_many = True
        for alternative in range(len(requests[request])):
            end = yield self._next_device(Place(claim, request, alternative), 0, 0)
            if end is End.TOO_MANY:
                continue
            always_too_many = False
            if end is End.FOUND:
                self._chosen[claim][request] = alternative
                return end
        return End.TOO_MANY if always_too_many else End.DEAD_END

    def _next_device(self, place: Place, n_picked: int, start: int) -> Step:
        wanted = self._claims[place.claim]
        want = wanted.requests[place.request][place.alternative]
        need = self._needs[want]
        if want.wants_all and not need.every:
            return End.DEAD_END
        if n_picked >= need.n_devices:
            return (yield self._next_request(place.claim, place.request + 1))
        if len(self._tentative.picks[place.claim]) + need.n_devices - n_picked > ALLOCATION_RESULTS_MAX_SIZE:
            return End.TOO_MANY
        if want.wants_all:
            return (yield self._every_device(place, want, need, n_picked))
        for device in range(start, len(self._offer.devices)):
            self._budget.spend(1)
            if not self._is_candidate(place, want, device, wanted.key):
                continue
            undo = self._tentative.take(place, want, device)
            if undo is None or undo.broken_constraint:
                continue
            end = yield self._next_device(place, n_picked + 1, device + 1)
            if end is End.FOUND:
                return end
            self._tentative.put_back(undo)
            if end is End.TOO_MANY:
                return end
        return End.DEAD_END

    def _every_device(self, place: Place, want: Want, need: Need, n_picked: int) -> Step:
        """The order of "all" does not matter, so there is only one way to try them."""
        device = need.every[n_picked]
        undo = self._tentative.take(place, want, device)
        if undo is None:
            return End.DEAD_END
        if undo.broken_constraint:
            raise AllocationError(
                f"claim {self._claims[place.claim].key}, request {want.name}: cannot add device ",
                device,
                " because a claim constraint would not be satisfied",
            )
        end = yield self._next_device(place, n_picked + 1, 0)
        if end is not End.FOUND:
            self._tentative.put_back(undo)
        return end

    def _is_candidate(self, place: Place, want: Want, device: int, claim_key: str) -> bool:
        return (
            self._tentative.is_free(place, want, device)
            and self._is_selectable(want, device, claim_key)
            and self._tentative.has_room(want, device)
        )
