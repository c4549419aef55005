"""Binding conditions: some devices are ready only some time after they were allocated, and may fail to get ready.

Next: `binding` waits for them; `filtering` gives up claims that failed.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.k8s.model.resource import (
    AllocatedDeviceStatus,
    DeviceCondition,
    DeviceRequestAllocationResult,
    ResourceClaim,
)


class DeviceBindingError(Exception):
    """A device will not get ready."""


def has_binding_conditions(claims: Iterable[ResourceClaim]) -> bool:
    return any(result.binding_conditions for claim in claims for result in _results(claim))


def is_ready(claim: ResourceClaim) -> bool:
    """Whether all binding conditions are met. Raises DeviceBindingError where a failure condition is."""
    if claim.status.allocation is None:
        return False
    for result in _results(claim):
        if not result.binding_conditions:
            continue
        status = _status_of(claim, result)
        if status is None:
            return False
        _raise_failure(claim, result, status)
        if not all(_is_true(status, condition) for condition in result.binding_conditions):
            return False
    return True


def _raise_failure(claim: ResourceClaim, result: DeviceRequestAllocationResult, status: AllocatedDeviceStatus) -> None:
    for condition in result.binding_failure_conditions or ():
        failed = _find(status, condition)
        if failed is not None and failed.status == "True":
            raise DeviceBindingError(
                f"device binding failed: claim={claim.name}, reason={failed.reason}, message={_quoted(failed.message)}"
            )


def _results(claim: ResourceClaim) -> tuple[DeviceRequestAllocationResult, ...]:
    allocation = claim.status.allocation
    return () if allocation is None else allocation.devices.results or ()


def _status_of(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> AllocatedDeviceStatus | None:
    wanted = (result.driver, result.pool, result.device)
    return next((s for s in claim.status.devices or () if (s.driver, s.pool, s.device) == wanted), None)


def _find(status: AllocatedDeviceStatus, kind: str) -> DeviceCondition | None:
    return next((condition for condition in status.conditions or () if condition.type == kind), None)


def _is_true(status: AllocatedDeviceStatus, kind: str) -> bool:
    found = _find(status, kind)
    return found is not None and found.status == "True"


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'
