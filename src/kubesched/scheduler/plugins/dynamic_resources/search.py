"""The search for devices: the first solution, in the order of claims, requests, alternatives and devices.

It tries every device for every request and backtracks where that leads nowhere. Within a request, devices are tried in
their order only, not in all permutations. Steps are coroutines on a stack of their own, so that claims for hundreds of
devices do not need hundreds of Python frames: each yields the next step and is sent its end. `Tentative` keeps track of
the devices being tried, and of how to take that back.

Next: `device_checks` says whether a device will do.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from kubesched.k8s.model.resource import ALLOCATION_RESULTS_MAX_SIZE
from kubesched.scheduler.plugins.dynamic_resources import device_checks
from kubesched.scheduler.plugins.dynamic_resources.claim_book import Consumed
from kubesched.scheduler.plugins.dynamic_resources.device_checks import CounterAccount, RunningConstraint
from kubesched.scheduler.plugins.dynamic_resources.offers import NodeOffer
from kubesched.scheduler.plugins.dynamic_resources.outcomes import (
    CANNOT_ALLOCATE,
    INVALID_POOLS,
    AllocationError,
    Found,
    NotFound,
    Pick,
    SearchBudget,
)
from kubesched.scheduler.plugins.dynamic_resources.requests import Want, WantedClaim

# -- devices being tried -----------------------------------------------------------------------------------------------


_NOTHING: Consumed = {}


class Place(NamedTuple):
    """What a device is for, by number: claim, request, alternative."""

    claim: int
    request: int
    alternative: int


@dataclass(slots=True)
class Undo:
    """What `take` changed, so that `put_back` can change it back."""

    place: Place
    want: Want
    device: int
    reserved_counters: bool = False
    n_constraints: int = 0
    marked: bool = False
    consumed: Consumed | None = None
    was_consuming: bool = False
    picked: bool = False
    broken_constraint: bool = False
    """The device was refused because of a constraint; there is nothing to put back."""


class Tentative:
    """Devices tried so far. `picks` has them by claim."""

    def __init__(self, claims: Sequence[WantedClaim], offer: NodeOffer) -> None:
        self.picks: list[list[Pick]] = [[] for _ in claims]
        self._offer = offer
        self._users: dict[int, set[int]] = {}
        """Claims that have a device to themselves."""
        self._consuming: dict[int, Consumed] = {}
        self._accounts: dict[int, CounterAccount] = {}
        self._constraints: list[list[RunningConstraint]] = [
            [running for entry in wanted.constraints if (running := device_checks.start_constraint(entry)) is not None]
            for wanted in claims
        ]

    def is_free(self, place: Place, want: Want, device: int) -> bool:
        """Admin access goes to devices in use as well, but to each only once for a claim."""
        users = self._users.get(device)
        if want.admin_access:
            return not users or place.claim not in users
        return not users and not self._offer.is_dedicated[device]

    def has_room(self, want: Want, device: int) -> bool:
        published = self._offer.devices[device]
        if not published.capacity and not want.capacity:
            return True
        consuming = self._consuming.get(device, _NOTHING)
        return device_checks.has_room(want.capacity, published.capacity, self._consumed(device) or _NOTHING, consuming)

    def take(self, place: Place, want: Want, device: int) -> Undo | None:
        """Marks the device as used for this; None if it cannot be."""
        published = self._offer.devices[device]
        if not self._may_be_used(place, want, device):
            return None
        undo = Undo(place, want, device)
        if published.counters and not (published.is_shareable and self._is_shared_already(device)):
            if not self._account(device).reserve(published):
                return None
            undo.reserved_counters = True
        if device_checks.is_kept_away(published, want):
            self.put_back(undo)
            return None
        if not self._add_to_constraints(undo):
            self.put_back(undo)
            return Undo(place, want, device, broken_constraint=True)
        if not published.is_shareable:
            self._users.setdefault(device, set()).add(place.claim)
            undo.marked = True
        if not self.has_room(want, device):
            self.put_back(undo)
            return None
        self._pick(undo)
        return undo

    def put_back(self, undo: Undo) -> None:
        """Undoes what was done, in the opposite order."""
        place, want, device = undo.place, undo.want, undo.device
        published = self._offer.devices[device]
        if undo.picked:
            self.picks[place.claim].pop()
        if undo.consumed is not None:
            self._consume(device, undo.consumed, -1)
            if not undo.was_consuming:
                del self._consuming[device]
        if undo.marked:
            self._users[device].discard(place.claim)
        for running in reversed(self._constraints[place.claim][: undo.n_constraints]):
            running.remove(want.request_name, want.subrequest_name, published)
        if undo.reserved_counters:
            self._account(device).release(published)

    def _may_be_used(self, place: Place, want: Want, device: int) -> bool:
        if want.admin_access:
            if self._offer.devices[device].is_shareable:
                return True
            return place.claim not in self._users.get(device, ())
        return not self._users.get(device) and not self._offer.is_dedicated[device]

    def _add_to_constraints(self, undo: Undo) -> bool:
        want, published = undo.want, self._offer.devices[undo.device]
        for running in self._constraints[undo.place.claim]:
            if not running.add(want.request_name, want.subrequest_name, published):
                return False
            undo.n_constraints += 1
        return True

    def _pick(self, undo: Undo) -> None:
        place, want, device = undo.place, undo.want, undo.device
        published = self._offer.devices[device]
        written: tuple[tuple[str, str], ...] = ()
        if published.is_shareable:
            consumed = device_checks.consumption(want.capacity, published.capacity)
            undo.was_consuming = device in self._consuming
            undo.consumed = {name: amount.nanos for name, amount in consumed.items()}
            self._consume(device, undo.consumed, +1)
            written = tuple((name, str(amount)) for name, amount in consumed.items())
        self.picks[place.claim].append(
            Pick(device, place.request, place.alternative, written or None, published.is_shareable)
        )
        undo.picked = True

    def _consumed(self, device: int) -> Consumed | None:
        """What allocated claims use of the device; None if it is not shared."""
        pool, index = self._offer.places[device]
        return self._offer.usages[pool].consumed.get(self._offer.views[pool].devices[index].name)

    def _consume(self, device: int, amounts: Consumed, sign: int) -> None:
        using = self._consuming.setdefault(device, {})
        for name, nanos in amounts.items():
            using[name] = using.get(name, 0) + sign * nanos

    def _is_shared_already(self, device: int) -> bool:
        return device in self._consuming or self._consumed(device) is not None

    def _account(self, device: int) -> CounterAccount:
        pool, _ = self._offer.places[device]
        account = self._accounts.get(pool)
        if account is None:
            account = self._accounts[pool] = CounterAccount(self._offer.views[pool], self._offer.usages[pool])
        return account


# -- the search --------------------------------------------------------------------------------------------------------


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
            is_selected = device_checks.is_selected(want, self._offer.devices[device], claim_key, self._budget)
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
