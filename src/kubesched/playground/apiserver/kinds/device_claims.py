"""Claims for devices: what they ask for, and their status. Also templates and device classes.

Requests, constraints between devices, configuration; what was allocated, for whom it is reserved, what drivers say of
the devices. An allocation stays as it is until it is taken away whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubesched.k8s.model.requests import is_extended
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.device_parts import (
    MOST_CONFIGS,
    configuration_errors,
    fully_qualified_name_errors,
    interface_address_errors,
    label_name_errors,
    list_errors,
    pool_name_errors,
    raw_object_errors,
    selector_errors,
    set_errors,
    set_toleration_defaults,
    short_name_errors,
    toleration_errors,
    uuid_errors,
)
from kubesched.playground.apiserver.kinds.field_errors import dns_subdomain_errors, driver_name_errors
from kubesched.playground.apiserver.kinds.internal_form import internal_form
from kubesched.playground.apiserver.kinds.metadata import (
    condition_errors,
    node_selector_errors,
    template_metadata_errors,
)
from kubesched.playground.apiserver.served_resource import InvalidField, Object, WriteContext

ADMIN_LABEL = "resource.kubernetes.io/admin-access"
MOST_REQUESTS = 32
_MOST_ALTERNATIVES = 8
_MOST_CONSTRAINTS = 32
_MODES = ("All", "ExactCount")
_ONE_SORT = "exactly one of `exactly` or `firstAvailable` is required"
_ONE_ATTRIBUTE = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
_UNKNOWN_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)

RequestNames = dict[str, set[str]]
"""Of a claim: each request with its alternatives."""


def set_request_defaults(spec: Object) -> None:
    for request in spec.get("devices", {}).get("requests") or []:
        for one in (request.get("exactly"), *(request.get("firstAvailable") or [])):
            if one is None:
                continue
            set_toleration_defaults(one.get("tolerations") or [])
            one["allocationMode"] = one.get("allocationMode") or "ExactCount"
            if one["allocationMode"] == "ExactCount" and not one.get("count"):
                one["count"] = 1


def claim_errors(claim: Object, old: Object | None) -> list[InvalidField]:
    """A ResourceClaim; of a known one only that what it asks for stays."""
    if old is None:
        return claim_spec_errors(claim["spec"], "spec")
    if claim["spec"] == old["spec"]:
        return []
    return [errors.immutable("spec", internal_form(claim["spec"], "resource.ResourceClaimSpec"))]


def template_errors(template: Object, old: Object | None) -> list[InvalidField]:
    """A ResourceClaimTemplate."""
    spec, metadata = template["spec"], template["spec"].get("metadata") or {}
    found = template_metadata_errors(metadata, "spec.metadata")
    found += claim_spec_errors(spec.get("spec", {}), "spec.spec")
    if old is not None and spec != old["spec"]:
        found.append(errors.immutable("spec", internal_form(spec, "resource.ResourceClaimTemplateSpec")))
    return found


def admin_access_errors(spec: Object, namespace: str, ctx: WriteContext) -> list[InvalidField]:
    """Access to devices that others use is for namespaces that an administrator marks."""
    for position, request in enumerate(spec.get("devices", {}).get("requests") or []):
        if request.get("exactly", {}).get("adminAccess"):
            at = errors.index("spec.devices.requests", position)
            return admin_label_errors(f"{at}.adminAccess", namespace, ctx)
    return []


def admin_label_errors(path: str, namespace: str, ctx: WriteContext) -> list[InvalidField]:
    labels = (ctx.lookup.get("namespaces", "", namespace) or {"metadata": {}})["metadata"].get("labels", {})
    if labels.get(ADMIN_LABEL) == "true":
        return []
    why = f"admin access to devices requires the `{ADMIN_LABEL}: true` label on the containing namespace"
    return [errors.forbidden(path, why)]


def class_errors(device_class: Object, old: Object | None) -> list[InvalidField]:
    """A DeviceClass."""
    spec = device_class["spec"]
    configs, name = spec.get("config") or [], spec.get("extendedResourceName")
    is_known = old is not None and (old["spec"].get("config") or []) == configs
    found = selector_errors(spec.get("selectors") or [], "spec.selectors")
    found += list_errors(
        configs, MOST_CONFIGS, lambda one, at: configuration_errors(one, at, is_stored=is_known), "spec.config"
    )
    if name is not None and not is_extended(name):
        found.append(errors.invalid("spec.extendedResourceName", name, "must be a valid extended resource name"))
    return found


def names_of(spec: Object) -> RequestNames:
    return {
        request.get("name", ""): {one.get("name", "") for one in request.get("firstAvailable") or []}
        for request in spec.get("devices", {}).get("requests") or []
    }


def claim_spec_errors(spec: Object, path: str) -> list[InvalidField]:
    devices, at, names = spec.get("devices", {}), f"{path}.devices", names_of(spec)

    def constraint(one: Object, here: str) -> list[InvalidField]:
        return _constraint_errors(one, here, names)

    def config(one: Object, here: str) -> list[InvalidField]:
        return reference_errors(one.get("requests") or [], f"{here}.requests", names) + configuration_errors(one, here)

    found = set_errors(devices.get("requests") or [], MOST_REQUESTS, _request_errors, f"{at}.requests", _name)
    found += list_errors(devices.get("constraints") or [], _MOST_CONSTRAINTS, constraint, f"{at}.constraints")
    return found + list_errors(devices.get("config") or [], MOST_CONFIGS, config, f"{at}.config")


def _name(item: Object) -> Any:
    return item.get("name", "")


def _request_errors(request: Object, path: str) -> list[InvalidField]:
    alternatives = request.get("firstAvailable") or []
    found = short_name_errors(request.get("name", ""), f"{path}.name")
    if "exactly" in request and alternatives:
        found.append(errors.invalid(path, None, f"{_ONE_SORT}, but multiple fields are set"))
    elif "exactly" in request:
        found += _exact_errors(request["exactly"], f"{path}.exactly")
    elif alternatives:
        found += set_errors(alternatives, _MOST_ALTERNATIVES, _alternative_errors, f"{path}.firstAvailable", _name)
    else:
        found.append(errors.required(path, _ONE_SORT))
    return found


def _alternative_errors(request: Object, path: str) -> list[InvalidField]:
    return short_name_errors(request.get("name", ""), f"{path}.name") + _exact_errors(request, path)


def _exact_errors(request: Object, path: str) -> list[InvalidField]:
    wanted, at = request.get("deviceClassName", ""), f"{path}.deviceClassName"
    found = errors.all_invalid(at, wanted, dns_subdomain_errors(wanted)) if wanted else [errors.required(at)]
    found += selector_errors(request.get("selectors") or [], f"{path}.selectors")
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode not in _MODES:
        found.append(errors.unsupported(f"{path}.allocationMode", mode, _MODES))
    elif mode == "All" and count:
        found.append(errors.invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'"))
    elif mode == "ExactCount" and count <= 0:
        found.append(errors.invalid(f"{path}.count", count, "must be greater than zero"))
    return found + toleration_errors(request.get("tolerations") or [], f"{path}.tolerations")


def _constraint_errors(constraint: Object, path: str, names: RequestNames) -> list[InvalidField]:
    found = reference_errors(constraint.get("requests") or [], f"{path}.requests", names)
    for attribute in ("matchAttribute", "distinctAttribute"):
        if attribute in constraint:
            return found + fully_qualified_name_errors(constraint[attribute], f"{path}.{attribute}")
    return [*found, errors.required(path, _ONE_ATTRIBUTE)]


def reference_errors(references: list[str], path: str, names: RequestNames) -> list[InvalidField]:
    """Requests of the claim by name, each at most once."""
    return set_errors(references, MOST_REQUESTS, lambda one, at: one_reference_errors(one, at, names), path)


def one_reference_errors(reference: str, path: str, names: RequestNames) -> list[InvalidField]:
    parts = reference.split("/")
    unknown = errors.invalid(path, reference, _UNKNOWN_REQUEST)
    if len(parts) > 2:
        return [unknown]
    found = [error for part in parts for error in short_name_errors(part, path)]
    is_known = parts[0] in names and (len(parts) == 1 or parts[1] in names[parts[0]])
    return found if is_known else [*found, unknown]


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
