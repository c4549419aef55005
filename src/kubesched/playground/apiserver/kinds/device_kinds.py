"""The kinds of resource.k8s.io as served: rules, tables, fields that they can be selected by; and slices of devices.

A slice is what a driver publishes of a pool: devices, or counters that devices of the pool share. A shared device says
how much of its capacity a claim can ask for. Read ``device_claims.py`` for what is wrong with claims.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kubesched.k8s.model import quantity
from kubesched.playground.apiserver.kinds import device_claims, device_parts
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.device_claims import binding_condition_errors
from kubesched.playground.apiserver.kinds.device_parts import (
    LONGEST_QUALIFIED,
    list_errors,
    map_errors,
    pool_name_errors,
    qualified_name_errors,
    set_errors,
    short_name_errors,
    taint_errors,
)
from kubesched.playground.apiserver.kinds.field_errors import dns_subdomain_errors, driver_name_errors
from kubesched.playground.apiserver.kinds.internal_form import internal_form
from kubesched.playground.apiserver.kinds.metadata import node_selector_errors
from kubesched.playground.apiserver.kinds.serving import AGE, NAME, PLAIN, KindRules, described, dig
from kubesched.playground.apiserver.served_resource import InvalidField, Object, TableColumn, WriteContext

_MOST_OPTIONS = 10
_TWO_POLICIES = 'exactly one policy can be specified, cannot specify "validValues" and "validRange" at the same time'


def capacity_errors(capacity: Object, path: str, is_shared: bool) -> list[InvalidField]:
    policy, at = capacity.get("requestPolicy"), f"{path}.requestPolicy"
    if policy is None:
        return []
    if not is_shared:
        return [errors.forbidden(at, "allowMultipleAllocations must be true")]
    options, limits, default = policy.get("validValues"), policy.get("validRange"), policy.get("default")
    whole = capacity.get("value", "0")
    if options and limits is not None:
        return [errors.forbidden(at, _TWO_POLICIES)]
    if options:
        if default is None:
            return [errors.required(f"{at}.default", "required when validValues is defined")]
        return _option_errors(default, whole, options, f"{at}.validValues")
    if limits is not None:
        if default is None:
            return [errors.required(f"{at}.default", "required when validRange is defined")]
        return _range_errors(default, whole, limits, f"{at}.validRange")
    return []


def _option_errors(default: str, whole: str, options: Sequence[str], path: str) -> list[InvalidField]:
    amounts = [quantity.parse(option) for option in options]
    unsorted = "values must be sorted in ascending order"
    found = [
        errors.invalid(errors.index(path, position + 1), options[position + 1], unsorted)
        for position in range(len(amounts) - 1)
        if amounts[position] > amounts[position + 1]
    ]

    def fits(option: str, at: str) -> list[InvalidField]:
        if quantity.parse(option) <= quantity.parse(whole):
            return []
        return [errors.invalid(at, option, f"option is larger than capacity value: {whole}")]

    found += set_errors(options, _MOST_OPTIONS, fits, path, lambda option: str(quantity.parse(option).value))
    is_looked_at = len(options) <= _MOST_OPTIONS
    if not is_looked_at or quantity.parse(default) not in amounts:
        why = "default value is not valid according to the requestPolicy"
        found.append(errors.invalid(path, default, why))
    return found


def _range_errors(default: str, whole: str, limits: Object, path: str) -> list[InvalidField]:
    least, most, step = limits.get("min"), limits.get("max"), limits.get("step")
    if least is None:
        return [errors.required(f"{path}.min", "required when validRange is defined")]
    found: list[InvalidField] = []
    if _is_above(least, whole):
        found.append(errors.invalid(f"{path}.min", least, f"min is larger than capacity value: {whole}"))
    if _is_above(least, default):
        found.append(errors.invalid(f"{path}.min", default, f"default is less than min: {least}"))
    if most is not None:
        at = f"{path}.max"
        if _is_above(least, most):
            found.append(errors.invalid(at, least, f"min is larger than max: {most}"))
        if _is_above(most, whole):
            found.append(errors.invalid(at, most, f"max is larger than capacity value: {whole}"))
        if _is_above(default, most):
            found.append(errors.invalid(at, default, f"default is more than max: {most}"))
    if step is not None:
        at, first = f"{path}.step", str(quantity.parse(least) + quantity.parse(step))
        if _is_above(first, whole):
            found.append(errors.invalid(at, step, f"one step {first} is larger than capacity value: {whole}"))
        found += _step_errors(default, least, step, at) + (_step_errors(most, least, step, at) if most else [])
    return found


def _is_above(one: str, other: str) -> bool:
    return quantity.parse(one) > quantity.parse(other)


def _step_errors(amount: str, least: str, step: str, path: str) -> list[InvalidField]:
    n_step = quantity.parse(step).value
    n_above = quantity.parse(amount).value - quantity.parse(least).value
    if n_step and n_above % n_step == 0:
        return []
    return [errors.invalid(path, amount, f"value is not a multiple of a given step ({step}) from ({least})")]


_ONE_PLACE = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_ONE_DEVICE_PLACE = (
    "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required "
    "when `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)
_NO_DEVICE_PLACE = (
    "`nodeName`, `nodeSelector` and `allNodes` can only be set "
    "if `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
)
_MOST_DEVICES, _MOST_ADVANCED_DEVICES = 128, 64
_MOST_ENTRIES, _MOST_VALUES = 32, 48
_MOST_TAINTS = 16
_MOST_COUNTER_SETS, _MOST_CONSUMED_SETS, _MOST_COUNTERS = 8, 2, 32
_LONGEST_LABEL = 63
_LONGEST_VALUE = 64
_SCALARS = ("int", "bool", "string", "version")
_LISTS = ("ints", "bools", "strings", "versions")
_NUMBER = "(0|[1-9][0-9]*)"
_PRE_RELEASE = "(0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)"
_SEMVER = rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRE_RELEASE}(\.{_PRE_RELEASE})*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?"


def set_taint_times(piece: Object, now: str) -> None:
    """Taints get the time at which they are told."""
    for device in piece["spec"].get("devices") or []:
        for taint in device.get("taints") or []:
            taint.setdefault("timeAdded", now)


def drop_disabled(piece: Object) -> None:
    """Features that are off are forgotten."""
    for device in piece["spec"].get("devices") or []:
        device.pop("nodeAllocatableResourceMappings", None)
        for attribute in (device.get("attributes") or {}).values():
            for name in _LISTS:
                attribute.pop(name, None)


def slice_errors(piece: Object, old: Object | None) -> list[InvalidField]:
    """A ResourceSlice."""
    spec, pool = piece["spec"], piece["spec"].get("pool", {})
    found = driver_name_errors(spec.get("driver", ""), "spec.driver")
    found += _pool_errors(pool, "spec.pool")
    if old is not None:
        found += _change_errors(spec, old["spec"])
    found += _place_errors(spec)
    if "sharedCounters" in spec and "devices" in spec:
        found.append(errors.invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    devices = spec.get("devices") or []
    is_advanced = any(device.get("taints") or device.get("consumesCounters") for device in devices)
    known = {one.get("name", ""): one for one in (old["spec"].get("devices") or [] if old else [])}

    def device(one: Object, at: str) -> list[InvalidField]:
        before = known.get(one.get("name", ""))
        return _device_errors(one, at, before, bool(spec.get("perDeviceNodeSelection")))

    most = _MOST_ADVANCED_DEVICES if is_advanced else _MOST_DEVICES
    found += set_errors(devices, most, device, "spec.devices", lambda one: one.get("name", ""))
    counters = spec.get("sharedCounters") or []
    return found + set_errors(
        counters, _MOST_COUNTER_SETS, _counter_set_errors, "spec.sharedCounters", lambda one: one.get("name", "")
    )


def _pool_errors(pool: Object, path: str) -> list[InvalidField]:
    found = pool_name_errors(pool.get("name", ""), f"{path}.name")
    count, generation = pool.get("resourceSliceCount", 0), pool.get("generation", 0)
    if count <= 0:
        found.append(errors.invalid(f"{path}.resourceSliceCount", count, "must be greater than zero"))
    if generation < 0:
        found.append(errors.invalid(f"{path}.generation", generation, "must be greater than or equal to zero"))
    return found


def _change_errors(spec: Object, before: Object) -> list[InvalidField]:
    found: list[InvalidField] = []
    name = spec.get("pool", {}).get("name", "")
    if name != before.get("pool", {}).get("name", ""):
        found.append(errors.immutable("spec.pool.name", name))
    if spec.get("driver", "") != before.get("driver", ""):
        found.append(errors.immutable("spec.driver", spec.get("driver", "")))
    if spec.get("nodeName") != before.get("nodeName"):
        found.append(errors.immutable("spec.nodeName", spec.get("nodeName")))
    return found


def _place_errors(spec: Object) -> list[InvalidField]:
    found: list[InvalidField] = []
    given: list[str] = []
    if spec.get("nodeName") == "":
        why = "must be either unset or set to a non-empty string"
        found.append(errors.invalid("spec.nodeName", "", why))
    elif "nodeName" in spec:
        given.append("`nodeName`")
        found += errors.all_invalid("spec.nodeName", spec["nodeName"], dns_subdomain_errors(spec["nodeName"]))
    if "nodeSelector" in spec:
        given.append("`nodeSelector`")
        found += node_selector_errors(spec["nodeSelector"], "spec.nodeSelector")
        terms = spec["nodeSelector"].get("nodeSelectorTerms")
        if len(terms or []) != 1:
            shown = None if terms is None else [internal_form(term, "NodeSelectorTerm") for term in terms]
            at = "spec.nodeSelector.nodeSelectorTerms"
            found.append(errors.invalid(at, shown, "must have exactly one node selector term"))
    for name in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(name):
            given.append(f"`{name}`")
        elif name in spec:
            found.append(errors.invalid(f"spec.{name}", spec[name], "must be either unset or set to true"))
    if not given:
        found.append(errors.required("spec", _ONE_PLACE))
    elif len(given) > 1:
        shown_given = "{" + ", ".join(given) + "}"
        found.append(errors.invalid("spec", shown_given, f"{_ONE_PLACE}, but multiple fields are set"))
    return found


def _device_errors(device: Object, path: str, old: Object | None, has_own_place: bool) -> list[InvalidField]:
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    found = short_name_errors(device.get("name", ""), f"{path}.name")
    if len(attributes) + len(capacity) > _MOST_ENTRIES:
        why = f"the total number of attributes and capacities must not exceed {_MOST_ENTRIES}"
        found.append(errors.invalid(path, len(attributes) + len(capacity), why))
    if len(attributes) > _MOST_VALUES:
        why = f"the total number of attribute values must not exceed {_MOST_VALUES}"
        found.append(errors.invalid(path, len(attributes), why))
    found += map_errors(
        attributes, -1, LONGEST_QUALIFIED, qualified_name_errors, _attribute_errors, f"{path}.attributes"
    )
    is_shared = bool(device.get("allowMultipleAllocations"))
    found += map_errors(
        capacity,
        -1,
        LONGEST_QUALIFIED,
        qualified_name_errors,
        lambda one, at: capacity_errors(one, at, is_shared),
        f"{path}.capacity",
    )
    if old is None or (old.get("taints") or []) != (device.get("taints") or []):
        found += list_errors(device.get("taints") or [], _MOST_TAINTS, taint_errors, f"{path}.taints")
    found += set_errors(
        device.get("consumesCounters") or [],
        _MOST_CONSUMED_SETS,
        lambda one, at: _counters_errors(one, "counterSet", at),
        f"{path}.consumesCounters",
        lambda one: one.get("counterSet", ""),
    )
    return found + _device_place_errors(device, path, has_own_place) + binding_condition_errors(device, path)


def _device_place_errors(device: Object, path: str, has_own_place: bool) -> list[InvalidField]:
    if not has_own_place:
        is_placed = any(name in device for name in ("nodeName", "nodeSelector", "allNodes"))
        return [errors.invalid(path, None, _NO_DEVICE_PLACE)] if is_placed else []
    found: list[InvalidField] = []
    given: list[str] = []
    name = device.get("nodeName")
    if name == "":
        found.append(errors.invalid(f"{path}.nodeName", "", "must not be empty"))
    elif name is not None:
        given.append("`nodeName`")
        found += errors.all_invalid(f"{path}.nodeName", name, dns_subdomain_errors(name))
    if "nodeSelector" in device:
        given.append("`nodeSelector`")
        found += node_selector_errors(device["nodeSelector"], f"{path}.nodeSelector")
    if device.get("allNodes"):
        given.append("`allNodes`")
    elif "allNodes" in device:
        found.append(errors.invalid(f"{path}.allNodes", device["allNodes"], "must be either unset or set to true"))
    if not given:
        found.append(errors.required(path, _ONE_DEVICE_PLACE))
    elif len(given) > 1:
        found.append(errors.invalid(path, "{" + ", ".join(given) + "}", _ONE_DEVICE_PLACE))
    return found


def _attribute_errors(attribute: Object, path: str) -> list[InvalidField]:
    given = [name for name in _SCALARS if name in attribute]
    found: list[InvalidField] = []
    if "string" in attribute and len(attribute["string"].encode()) > _LONGEST_VALUE:
        found.append(errors.too_long(f"{path}.string", _LONGEST_VALUE))
    if "version" in attribute:
        found += _version_errors(attribute["version"], f"{path}.version")
    if not given:
        found.append(errors.invalid(path, "", "exactly one value must be specified"))
    elif len(given) > 1:
        shown = internal_form(attribute, "resource.DeviceAttribute")
        found.append(errors.invalid(path, shown, "exactly one value must be specified"))
    return found


def _version_errors(version: str, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    if not re.fullmatch(_SEMVER, version):
        found.append(errors.invalid(path, version, "must be a string compatible with semver.org spec 2.0.0"))
    if len(version.encode()) > _LONGEST_VALUE:
        found.append(errors.too_long(path, _LONGEST_VALUE))
    return found


def _counter_set_errors(counters: Object, path: str) -> list[InvalidField]:
    return _counters_errors(counters, "name", path)


def _counters_errors(counters: Object, name_field: str, path: str) -> list[InvalidField]:
    """A set of counters, or what a device takes from one."""
    name, at = counters.get(name_field, ""), f"{path}.{name_field}"
    found = short_name_errors(name, at) if name else [errors.required(at)]
    if not counters.get("counters"):
        return [*found, errors.required(f"{path}.counters")]
    return found + map_errors(
        counters["counters"], _MOST_COUNTERS, _LONGEST_LABEL, short_name_errors, _any_amount, f"{path}.counters"
    )


def _any_amount(_: Any, __: str) -> list[InvalidField]:
    return []


def warn_of_driver(piece: Object, _: Object | None, ctx: WriteContext) -> None:
    driver = piece["spec"].get("driver", "")
    if driver != driver.lower():
        why = f'driver names should be lowercase; "{driver}" contains uppercase characters'
        ctx.warnings.append(f"spec.driver: {why}")


_GROUP = "io.k8s.api.resource.v1."


def _set_claim_defaults(claim: Object) -> None:
    device_claims.set_request_defaults(claim["spec"])
    for result in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results") or []:
        device_parts.set_toleration_defaults(result.get("tolerations") or [])


def _claim_in_context(claim: Object, old: Object | None, ctx: WriteContext) -> list[InvalidField]:
    if ctx.subresource == "status" and old is not None:
        return device_claims.admin_status_errors(claim, old, ctx)
    namespace = claim["metadata"].get("namespace", "")
    return device_claims.admin_access_errors(claim["spec"], namespace, ctx) if old is None else []


def _template_in_context(template: Object, old: Object | None, ctx: WriteContext) -> list[InvalidField]:
    namespace, spec = template["metadata"].get("namespace", ""), template["spec"].get("spec", {})
    return device_claims.admin_access_errors(spec, namespace, ctx) if old is None else []


def _update_claim(claim: Object, old: Object, ctx: WriteContext) -> None:
    if ctx.subresource == "status":
        device_claims.drop_states_of_released_devices(claim, old)


def _claim_state(claim: Object) -> str:
    status = claim.get("status", {})
    is_deleted = bool(claim["metadata"].get("deletionTimestamp"))
    states = ["deleted"] if is_deleted else []
    if "allocation" not in status:
        states += [] if is_deleted else ["pending"]
    else:
        states += ["allocated", "reserved"] if status.get("reservedFor") else ["allocated"]
    return ",".join(states)


def _slice_fields(piece: Object) -> Mapping[str, str]:
    spec = piece["spec"]
    return {
        "metadata.name": piece["metadata"].get("name", ""),
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.driver": spec.get("driver", ""),
    }


RESOURCE_CLAIM = KindRules(
    metadata_again="both",
    set_defaults=_set_claim_defaults,
    prepare_update=_update_claim,
    validate=device_claims.claim_errors,
    validate_through={"status": device_claims.status_errors},
    validate_in_context=_claim_in_context,
    columns=(
        NAME,
        TableColumn(
            "State", _claim_state, description="A summary of the current state (allocated, pending, reserved, etc.)."
        ),
        AGE,
    ),
)
RESOURCE_CLAIM_TEMPLATE = KindRules(
    metadata_again="both",
    set_defaults=lambda obj: device_claims.set_request_defaults(obj["spec"].get("spec", {})),
    validate=device_claims.template_errors,
    validate_in_context=_template_in_context,
    columns=PLAIN,
)
RESOURCE_SLICE = KindRules(
    set_times=set_taint_times,
    prepare_create=lambda piece, _: drop_disabled(piece),
    prepare_update=lambda piece, *_: drop_disabled(piece),
    validate=slice_errors,
    validate_admission=warn_of_driver,
    selectable_fields=_slice_fields,
    columns=(
        NAME,
        described("Node", dig("spec.nodeName"), _GROUP + "ResourceSliceSpec", "nodeName"),
        described("Driver", dig("spec.driver"), _GROUP + "ResourceSliceSpec", "driver"),
        described("Pool", dig("spec.pool.name"), _GROUP + "ResourcePool", "name"),
        AGE,
    ),
)
DEVICE_CLASS = KindRules(metadata_again="both", validate=device_claims.class_errors, columns=PLAIN)
DEVICE_TAINT_RULE = KindRules(
    set_times=device_parts.set_rule_times,
    prepare_update=device_parts.update_rule,
    validate=device_parts.rule_errors,
    validate_through={"status": device_parts.rule_status_errors},
    columns=PLAIN,
)
