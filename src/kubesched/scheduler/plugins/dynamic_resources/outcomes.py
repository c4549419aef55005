"""What a search for devices comes to, and how that is written into the claims' status for a node.

Devices go by their number in the offer, so that one outcome holds for all nodes with such an offer; `spell_out` gives
them their names.

Next: `scheduling_cycle` reserves an allocation, `binding` writes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import NAMESPACE_OID, uuid5

from kubesched.k8s.model.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from kubesched.k8s.model.resource import (
    AllocationResult,
    DeviceAllocationConfiguration,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
)
from kubesched.k8s.model.selectors import NODE_NAME_FIELD
from kubesched.scheduler.plugins.dynamic_resources.claim_book import identity
from kubesched.scheduler.plugins.dynamic_resources.offers import NodeOffer
from kubesched.scheduler.plugins.dynamic_resources.requests import Want, WantedClaim

# -- outcomes ----------------------------------------------------------------------------------------------------------


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


# -- allocations -------------------------------------------------------------------------------------------------------


FROM_CLASS = "FromClass"
FROM_CLAIM = "FromClaim"


def spell_out(
    found: Found, claims: Sequence[WantedClaim], offer: NodeOffer, node_name: str
) -> tuple[AllocationResult, ...]:
    """One result for each claim. Raises AllocationError where a slice says in no valid way which nodes it is for."""
    return tuple(
        AllocationResult(
            devices=DeviceAllocationResult(
                results=tuple(_device_result(number, pick, wanted, offer) for number, pick in enumerate(picks)) or None,
                config=_configuration(wanted, chosen) or None,
            ),
            node_selector=_node_selector(picks, wanted, offer, node_name),
        )
        for wanted, picks, chosen in zip(claims, found.picks, found.chosen, strict=True)
    )


def check_allocation(found: Found, claims: Sequence[WantedClaim], offer: NodeOffer) -> None:
    """Raises what `spell_out` would."""
    for wanted, picks in zip(claims, found.picks, strict=True):
        _node_selector(picks, wanted, offer, "")


def _device_result(number: int, pick: Pick, wanted: WantedClaim, offer: NodeOffer) -> DeviceRequestAllocationResult:
    want = wanted.requests[pick.request][pick.alternative]
    device_id = offer.device_id(pick.device)
    published = offer.devices[pick.device].device
    return DeviceRequestAllocationResult(
        request=want.label,
        driver=device_id.driver,
        pool=device_id.pool,
        device=device_id.device,
        admin_access=True if want.admin_access else None,
        tolerations=want.tolerations,
        binding_conditions=published.binding_conditions,
        binding_failure_conditions=published.binding_failure_conditions,
        share_id=_share_id(number, wanted) if pick.is_shared else None,
        consumed_capacity=None if pick.consumed is None else dict(pick.consumed),
    )


def _share_id(number: int, wanted: WantedClaim) -> str:
    """Different for every share; made from what it is for, not drawn, so that a run can be repeated."""
    return str(uuid5(NAMESPACE_OID, f"{identity(wanted.claim)}/{number}"))


def _configuration(wanted: WantedClaim, chosen: tuple[int, ...]) -> tuple[DeviceAllocationConfiguration, ...]:
    taken = [alternatives[number] for alternatives, number in zip(wanted.requests, chosen, strict=True)]
    return (*_class_configuration(taken), *_claim_configuration(wanted, taken))


def _class_configuration(taken: list[Want]) -> list[DeviceAllocationConfiguration]:
    """Each class once, for all requests that use it."""
    users: dict[str, list[Want]] = {}
    for want in taken:
        if want.device_class is not None:
            users.setdefault(want.device_class.name, []).append(want)
    found: list[DeviceAllocationConfiguration] = []
    for wants in users.values():
        device_class = wants[0].device_class
        assert device_class is not None
        requests = tuple(want.label for want in wants)
        found.extend(
            DeviceAllocationConfiguration(source=FROM_CLASS, requests=requests, opaque=entry.opaque)
            for entry in device_class.spec.config or ()
        )
    return found


def _claim_configuration(wanted: WantedClaim, taken: list[Want]) -> list[DeviceAllocationConfiguration]:
    """Entries of the claim that are for all requests, once for each request and alternative that they name."""
    found: list[DeviceAllocationConfiguration] = []
    for entry in wanted.claim.spec.devices.config or ():
        named = entry.requests or ()
        times = 1 if not named else sum(want.request_name in named or want.label in named for want in taken)
        configuration = DeviceAllocationConfiguration(source=FROM_CLAIM, requests=entry.requests, opaque=entry.opaque)
        found.extend([configuration] * times)
    return found


def _node_selector(
    picks: tuple[Pick, ...], wanted: WantedClaim, offer: NodeOffer, node_name: str
) -> NodeSelector | None:
    """The nodes where all these devices can be used; None for all nodes."""
    fields: list[NodeSelectorRequirement] = []
    labels: list[NodeSelectorRequirement] = []
    for pick in picks:
        device = offer.devices[pick.device].device
        source = offer.origin(pick.device).source.spec
        meant_for = device if source.per_device_node_selection else source
        if meant_for.node_name is not None or device.binds_to_node:
            here = NodeSelectorRequirement(NODE_NAME_FIELD, "In", (node_name,))
            return NodeSelector((NodeSelectorTerm(match_fields=(here,)),))
        terms = meant_for.node_selector.node_selector_terms if meant_for.node_selector is not None else ()
        if len(terms) > 1:
            raise AllocationError(
                f"create NodeSelector for claim {wanted.claim.name}: "
                f"unsupported ResourceSlice.NodeSelector with {len(terms)} terms"
            )
        for term in terms:
            _add_new(fields, term.match_fields)
            _add_new(labels, term.match_expressions)
    if not fields and not labels:
        return None
    return NodeSelector((NodeSelectorTerm(tuple(labels) or None, tuple(fields) or None),))


def _add_new(known: list[NodeSelectorRequirement], new: tuple[NodeSelectorRequirement, ...] | None) -> None:
    for requirement in new or ():
        if not any(_is_same(requirement, other) for other in known):
            known.append(requirement)


def _is_same(one: NodeSelectorRequirement, other: NodeSelectorRequirement) -> bool:
    return (
        one.key == other.key
        and one.operator == other.operator
        and frozenset(one.values or ()) == frozenset(other.values or ())
    )
