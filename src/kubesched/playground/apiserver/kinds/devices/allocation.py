"""The status of a claim: what was allocated, for whom it is reserved, what drivers say of the devices.

An allocation stays as it is until it is taken away whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.conditions import condition_errors
from kubesched.playground.apiserver.kinds.devices.lists import list_errors, set_errors
from kubesched.playground.apiserver.kinds.devices.names import (
    interface_address_errors,
    label_name_errors,
    pool_name_errors,
    short_name_errors,
    uuid_errors,
)
from kubesched.playground.apiserver.kinds.devices.requests import (
    RequestNames,
    admin_label_errors,
    names_of,
    one_reference_errors,
    reference_errors,
)
from kubesched.playground.apiserver.kinds.devices.selectors import MOST_CONFIGS, configuration_errors, raw_object_errors
from kubesched.playground.apiserver.kinds.internal_form import internal_form
from kubesched.playground.apiserver.kinds.label_selectors import node_selector_errors
from kubesched.playground.apiserver.kinds.name_syntax import driver_name_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object, WriteContext

_MOST_USERS = 256
_MOST_RESULTS = 32
_MOST_BINDING_CONDITIONS = 4
_MOST_CONDITIONS = 8
_MOST_DATA_BYTES = 10 * 1024
_MOST_ADDRESSES, _LONGEST_INTERFACE, _LONGEST_HARDWARE_ADDRESS = 16, 256, 128
_CONFIG_SOURCES = ("FromClaim", "FromClass")
_NO_NEW_USERS = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"

_DeviceId = tuple[str, str, str, str]
"""Driver, pool, device and share."""


def drop_states_of_released_devices(claim: Object, old: Object) -> None:
    """What drivers said of devices that the claim no longer has."""
    status = claim.get("status", {})
    released = _allocated(old.get("status", {})) - _allocated(status)
    kept = [device for device in status.get("devices") or [] if _id_of(device) not in released]
    status.pop("devices", None)
    if kept:
        status["devices"] = kept


def admin_status_errors(claim: Object, old: Object, ctx: WriteContext) -> list[InvalidField]:
    before, after = (_results(one.get("status", {})) for one in (old, claim))
    if any(result.get("adminAccess") for result in before):
        return []
    for position, result in enumerate(after):
        if result.get("adminAccess"):
            at = errors.index("status.allocation.devices.results", position)
            return admin_label_errors(f"{at}.adminAccess", claim["metadata"].get("namespace", ""), ctx)
    return []


def status_errors(claim: Object, old: Object) -> list[InvalidField]:
    status, before = claim.get("status", {}), old.get("status", {})
    users, at = _users(status), "status.reservedFor"
    allocated = _allocated(status)

    def device(one: Object, here: str) -> list[InvalidField]:
        return _device_errors(one, here, allocated)

    found = set_errors(users, _MOST_USERS, _user_errors, at, lambda user: user.get("uid", ""))
    devices = status.get("devices") or []
    found += list_errors(devices, -1, device, "status.devices")
    seen: set[_DeviceId] = set()
    for position, one in enumerate(devices):
        if _id_of(one) in seen:
            found.append(errors.duplicate(errors.index("status.devices", position), _shown_id(one)))
        seen.add(_id_of(one))
    allocation, known = status.get("allocation"), before.get("allocation")
    if users and allocation is None:
        found.append(errors.forbidden(at, "may not be specified when `allocated` is not set"))
    elif claim["metadata"].get("deletionTimestamp") and not all(user in _users(before) for user in users):
        found.append(errors.forbidden(at, _NO_NEW_USERS))
    if allocation is not None and known is not None:
        if allocation != known:
            shown = internal_form(allocation, "resource.AllocationResult")
            found.append(errors.immutable("status.allocation", shown))
    elif allocation is not None:
        found += _allocation_errors(allocation, "status.allocation", names_of(claim["spec"]))
    return found


def _users(status: Object) -> list[Any]:
    return status.get("reservedFor") or []


def _user_errors(user: Object, path: str) -> list[InvalidField]:
    return [errors.required(f"{path}.{name}") for name in ("resource", "name", "uid") if not user.get(name)]


def _results(status: Object) -> list[Any]:
    results: list[Any] = (status.get("allocation") or {}).get("devices", {}).get("results") or []
    return results


def _allocated(status: Object) -> set[_DeviceId]:
    return {_id_of(result) for result in _results(status)}


def _id_of(device: Object) -> _DeviceId:
    return (device.get("driver", ""), device.get("pool", ""), device.get("device", ""), device.get("shareID", ""))


def _shown_id(device: Object) -> Object:
    return dict(zip(("Driver", "Pool", "Device", "ShareID"), _id_of(device), strict=True))


def _device_place_errors(device: Object, path: str) -> list[InvalidField]:
    found = driver_name_errors(device.get("driver", ""), f"{path}.driver")
    found += pool_name_errors(device.get("pool", ""), f"{path}.pool")
    return found + short_name_errors(device.get("device", ""), f"{path}.device")


def _device_errors(device: Object, path: str, allocated: set[_DeviceId]) -> list[InvalidField]:
    found = _device_place_errors(device, path)
    if "shareID" in device:
        found += uuid_errors(device["shareID"], f"{path}.shareID")
    if _id_of(device) not in allocated:
        found.append(errors.invalid(path, _shown_id(device), "must be an allocated device in the claim"))
    conditions = device.get("conditions") or []
    if len(conditions) > _MOST_CONDITIONS:
        found.append(errors.too_many(f"{path}.conditions", len(conditions), _MOST_CONDITIONS))
    found += condition_errors(conditions, f"{path}.conditions")
    if device.get("data") is not None:
        found += raw_object_errors(device["data"], f"{path}.data", _MOST_DATA_BYTES)
    return found + _network_errors(device.get("networkData") or {}, f"{path}.networkData")


def _network_errors(network: Object, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for name, most in (("interfaceName", _LONGEST_INTERFACE), ("hardwareAddress", _LONGEST_HARDWARE_ADDRESS)):
        if len(network.get(name, "").encode()) > most:
            found.append(errors.too_long(f"{path}.{name}", most))
    return found + set_errors(network.get("ips") or [], _MOST_ADDRESSES, interface_address_errors, f"{path}.ips")


def _allocation_errors(allocation: Object, path: str, names: RequestNames) -> list[InvalidField]:
    devices, at = allocation.get("devices", {}), f"{path}.devices"

    def result(one: Object, here: str) -> list[InvalidField]:
        return _result_errors(one, here, names)

    def config(one: Object, here: str) -> list[InvalidField]:
        found = _config_source_errors(one.get("source", ""), f"{here}.source")
        found += reference_errors(one.get("requests") or [], f"{here}.requests", names)
        return found + configuration_errors(one, here)

    found = list_errors(devices.get("results") or [], _MOST_RESULTS, result, f"{at}.results")
    found += list_errors(devices.get("config") or [], 2 * MOST_CONFIGS, config, f"{at}.config")
    if "nodeSelector" in allocation:
        found += node_selector_errors(allocation["nodeSelector"], f"{path}.nodeSelector")
    return found


def _config_source_errors(source: str, path: str) -> list[InvalidField]:
    if not source:
        return [errors.required(path)]
    return [] if source in _CONFIG_SOURCES else [errors.unsupported(path, source, _CONFIG_SOURCES)]


def _result_errors(result: Object, path: str, names: RequestNames) -> list[InvalidField]:
    found = one_reference_errors(result.get("request", ""), f"{path}.request", names)
    found += _device_place_errors(result, path) + binding_condition_errors(result, path)
    return found + (uuid_errors(result["shareID"], f"{path}.shareID") if "shareID" in result else [])


def binding_condition_errors(device: Object, path: str) -> list[InvalidField]:
    """Conditions that a pod's binding waits for, and those that say that it waits in vain."""
    wanted, failing = device.get("bindingConditions") or [], device.get("bindingFailureConditions") or []
    at, failing_at = f"{path}.bindingConditions", f"{path}.bindingFailureConditions"
    found = list_errors(wanted, _MOST_BINDING_CONDITIONS, label_name_errors, at)
    found += list_errors(failing, _MOST_BINDING_CONDITIONS, label_name_errors, failing_at)
    found += _repeated(wanted, at)
    for position, name in enumerate(failing):
        here = errors.index(failing_at, position)
        if name in failing[:position]:
            found.append(errors.duplicate(here, name))
        if name in wanted:
            why = "bindingFailureConditions must not overlap with bindingConditions"
            found.append(errors.invalid(here, name, why))
    if failing and not wanted:
        why = "bindingConditions are required to use bindingFailureConditions"
        found.append(errors.invalid(at, device.get("bindingConditions"), why))
    if wanted and not failing:
        why = "bindingFailureConditions are required to use bindingConditions"
        found.append(errors.invalid(failing_at, device.get("bindingFailureConditions"), why))
    return found


def _repeated(names: Sequence[str], path: str) -> list[InvalidField]:
    return [
        errors.duplicate(errors.index(path, position), name)
        for position, name in enumerate(names)
        if name in names[:position]
    ]
