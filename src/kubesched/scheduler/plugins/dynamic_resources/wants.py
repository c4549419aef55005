"""What claims ask for, in the form that the search works with.

A request is a list of alternatives: one for a plain request, several for a list of prioritised subrequests. What is
wrong with a request that no node can put right is found here (`problem`) and reported by whoever gets to it.

Next: `search`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import msgspec

from kubesched.k8s.model import quantity
from kubesched.k8s.model.quantity import Quantity, QuantityError
from kubesched.k8s.model.resource import (
    CapacityRequirements,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)

EXACT_COUNT = "ExactCount"
ALL = "All"


@dataclass(frozen=True, eq=False)
class Want:
    """One request, or one of the alternatives of a request."""

    name: str
    parent: str
    """The request that this is an alternative of; empty for a plain request."""
    device_class: DeviceClass | None
    selectors: tuple[DeviceSelector, ...]
    wants_all: bool
    count: int
    admin_access: bool
    tolerations: tuple[DeviceToleration, ...] | None
    capacity: Mapping[str, Quantity]
    problem: str | None = None

    @property
    def label(self) -> str:
        """How results refer to it."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def request_name(self) -> str:
        return self.parent or self.name

    @property
    def subrequest_name(self) -> str:
        return self.name if self.parent else ""


@dataclass(frozen=True, eq=False)
class WantedClaim:
    """A claim to be allocated."""

    claim: ResourceClaim
    requests: tuple[tuple[Want, ...], ...]
    constraints: tuple[DeviceConstraint, ...]

    @property
    def key(self) -> str:
        return self.claim.key

    @property
    def is_prioritized(self) -> bool:
        """Whether some request has alternatives."""
        return any(alternatives[0].parent for alternatives in self.requests)


def read_claim(claim: ResourceClaim, classes: Mapping[str, DeviceClass]) -> WantedClaim:
    devices = claim.spec.devices
    return WantedClaim(
        claim,
        tuple(_alternatives(claim.key, request, classes) for request in devices.requests or ()),
        devices.constraints or (),
    )


@dataclass(frozen=True, eq=False)
class Order:
    """All that is to be allocated for a pod on one kind of node."""

    claims: tuple[WantedClaim, ...]

    @cached_property
    def fingerprint(self) -> bytes:
        """Equal for orders that ask for the same, whatever the claims are called."""
        return msgspec.json.encode(
            [
                (
                    wanted.claim.spec.devices.requests,
                    wanted.constraints,
                    [want.device_class and want.device_class.spec.selectors for want in _all_wants(wanted)],
                )
                for wanted in self.claims
            ]
        )


def _all_wants(wanted: WantedClaim) -> list[Want]:
    return [want for alternatives in wanted.requests for want in alternatives]


def _alternatives(claim_key: str, request: DeviceRequest, classes: Mapping[str, DeviceClass]) -> tuple[Want, ...]:
    if request.first_available:
        return tuple(_read(claim_key, sub, sub.name, request.name, classes) for sub in request.first_available)
    return (_read(claim_key, request.exactly or ExactDeviceRequest(), request.name, "", classes),)


def _read(
    claim_key: str,
    request: ExactDeviceRequest | DeviceSubRequest,
    name: str,
    parent: str,
    classes: Mapping[str, DeviceClass],
) -> Want:
    problem = _find_problem(request, classes)
    capacity: dict[str, Quantity] = {}
    try:
        capacity = _capacity(request.capacity)
    except QuantityError as mistake:
        problem = problem or f": {mistake}"
    return Want(
        name=name,
        parent=parent,
        device_class=classes.get(request.device_class_name),
        selectors=request.selectors or (),
        wants_all=request.allocation_mode == ALL,
        count=request.count or 1,
        admin_access=isinstance(request, ExactDeviceRequest) and bool(request.admin_access),
        tolerations=request.tolerations,
        capacity=capacity,
        problem=None if problem is None else f"claim {claim_key}, request {name}{problem}",
    )


def _find_problem(request: ExactDeviceRequest | DeviceSubRequest, classes: Mapping[str, DeviceClass]) -> str | None:
    for index, selector in enumerate(request.selectors or ()):
        if selector.cel is None:
            return f", selector #{index}: CEL expression empty (unsupported selector type?)"
    class_name = request.device_class_name
    if not class_name:
        return ": missing device class name (unsupported request type?)"
    if class_name not in classes:
        not_found = f'deviceclass.resource.k8s.io "{class_name}" not found'
        return f": could not retrieve device class {class_name}: {not_found}"
    if request.allocation_mode not in ("", EXACT_COUNT, ALL):
        return f": unsupported count mode {request.allocation_mode}"
    return None


def _capacity(requirements: CapacityRequirements | None) -> dict[str, Quantity]:
    requests = requirements.requests if requirements is not None else None
    return {name: quantity.parse(amount) for name, amount in (requests or {}).items()}
