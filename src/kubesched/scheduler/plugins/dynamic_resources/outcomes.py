"""What a search for devices can come to.

Devices go by their number in the offer, so that one outcome holds for all nodes with such an offer.

Next: `search` produces these, `allocation` spells them out for a node.
"""

from __future__ import annotations

from dataclasses import dataclass

CANNOT_ALLOCATE = "cannot allocate all claims"
INVALID_POOLS = "invalid resource pools were encountered"


class AllocationError(Exception):
    """Something is wrong with a claim, a class or what is published: no use in trying other nodes.

    Where the text names a device, `device` is its number, and `rest` what stands behind it.
    """

    def __init__(self, message: str, device: int | None = None, rest: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.device = device
        self.rest = rest


class SearchAbandonedError(Exception):
    """The search took more work than it is given."""


class SearchBudget:
    """The work that a search may take, in cost units of CEL; None for any amount.

    Counted, not timed: a decision does not depend on how fast a machine is, or how busy.
    """

    __slots__ = ("has_learnt", "limit", "spent")

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.spent = 0
        self.has_learnt = False
        """Whether some of it went into answers that are remembered, so that another search gets further."""

    def spend(self, units: int) -> None:
        """Raises SearchAbandonedError."""
        self.spent += units
        if self.limit is not None and self.spent > self.limit:
            raise SearchAbandonedError


@dataclass(frozen=True, slots=True)
class Pick:
    """A device, and what for."""

    device: int
    request: int
    """The number of the request in its claim."""
    alternative: int
    consumed: tuple[tuple[str, str], ...] | None = None
    """What is used up of the capacities of a device that is shared, as it is written; None for one that is not."""
    is_shared: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """Devices for every claim, in the order of the claims."""

    picks: tuple[tuple[Pick, ...], ...]
    chosen: tuple[tuple[int, ...], ...]
    """By claim and request: the number of the alternative that was taken."""


@dataclass(frozen=True, slots=True)
class NotFound:
    reason: str


@dataclass(frozen=True, slots=True)
class Broken:
    """Nothing can be said: an error, as told for this kind of node."""

    message: str
    device: int | None = None
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Abandoned:
    """The search was given up."""


Outcome = Found | NotFound | Broken | Abandoned
