"""The books of a search: which devices are being tried for what, and how to take that back.

Next: `search`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from kubesched.scheduler.plugins.dynamic_resources import capacity, constraints, selection
from kubesched.scheduler.plugins.dynamic_resources.constraints import RunningConstraint
from kubesched.scheduler.plugins.dynamic_resources.counters import CounterAccount
from kubesched.scheduler.plugins.dynamic_resources.ledger import Consumed
from kubesched.scheduler.plugins.dynamic_resources.offers import NodeOffer
from kubesched.scheduler.plugins.dynamic_resources.outcomes import Pick
from kubesched.scheduler.plugins.dynamic_resources.wants import Want, WantedClaim

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
            [running for entry in wanted.constraints if (running := constraints.start(entry)) is not None]
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
        return capacity.has_room(want.capacity, published.capacity, self._consumed(device) or _NOTHING, consuming)

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
        if selection.is_kept_away(published, want):
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
            consumed = capacity.consumption(want.capacity, published.capacity)
            undo.was_consuming = device in self._consuming
            undo.consumed = {name: amount.nanos for name, amount in consumed.items()}
            self._consume(device, undo.consumed, +1)
            written = tuple((name, str(amount)) for name, amount in consumed.items())
        self.picks[place.claim].append(
            Pick(device, place.request, place.alternative, written or None, published.is_shareable)
        )
        undo.picked = True

    def _consumed(self, device: int) -> Consumed | None:
        """What allocated claims use of the device; None if nobody shares it."""
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
