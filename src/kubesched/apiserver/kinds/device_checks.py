"""What is wrong with claims for devices, slices of them, and device classes.

Expressions are not compiled: they only have to be there. What a claim asks for cannot change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kubesched.apiserver.kinds import field_errors as errors
from kubesched.apiserver.kinds.kind import InvalidField, Object
from kubesched.apiserver.kinds.name_syntax import dns_label_mistakes, dns_subdomain_mistakes

_ONE_REQUEST = "exactly one of `exactly` or `firstAvailable` is required"
_ONE_PLACE = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
_ONE_ATTRIBUTE = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
_UNKNOWN_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_MODES = ("All", "ExactCount")


def claim_errors(claim: Object, old: Object | None) -> list[InvalidField]:
    found = _claim_spec_errors(claim["spec"], "spec")
    if old is not None and claim["spec"] != old["spec"]:
        found.append(errors.immutable("spec", claim["spec"]))
    return found


def template_errors(template: Object, old: Object | None) -> list[InvalidField]:
    found = _claim_spec_errors(template["spec"].get("spec", {}), "spec.spec")
    if old is not None and template["spec"] != old["spec"]:
        found.append(errors.immutable("spec", template["spec"]))
    return found


def _claim_spec_errors(spec: Object, path: str) -> list[InvalidField]:
    devices, at = spec.get("devices", {}), f"{path}.devices"
    found: list[InvalidField] = []
    names: set[str] = set()
    for position, request in enumerate(devices.get("requests") or []):
        here, name = errors.index(f"{at}.requests", position), request.get("name", "")
        found += _name_errors(name, f"{here}.name")
        if name in names:
            found.append(errors.duplicate(here, name))
        names |= {name, *(f"{name}/{one.get('name', '')}" for one in (request.get("firstAvailable") or []))}
        found += _request_errors(request, here)
    for position, constraint in enumerate(devices.get("constraints") or []):
        here = errors.index(f"{at}.constraints", position)
        found += [
            errors.invalid(errors.index(f"{here}.requests", place), name, _UNKNOWN_REQUEST)
            for place, name in enumerate(constraint.get("requests") or [])
            if name not in names
        ]
        if ("matchAttribute" in constraint) == ("distinctAttribute" in constraint):
            found.append(errors.required(here, _ONE_ATTRIBUTE))
    return found


def _request_errors(request: Object, path: str) -> list[InvalidField]:
    alternatives = request.get("firstAvailable") or []
    if "exactly" in request and alternatives:
        return [errors.invalid(path, None, f"{_ONE_REQUEST}, but multiple fields are set")]
    if "exactly" in request:
        return _exact_errors(request["exactly"], f"{path}.exactly")
    if not alternatives:
        return [errors.required(path, _ONE_REQUEST)]
    found: list[InvalidField] = []
    for position, one in enumerate(alternatives):
        here = errors.index(f"{path}.firstAvailable", position)
        found += _name_errors(one.get("name", ""), f"{here}.name") + _exact_errors(one, here)
    return found


def _exact_errors(request: Object, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    wanted = request.get("deviceClassName", "")
    if not wanted:
        found.append(errors.required(f"{path}.deviceClassName"))
    else:
        found += errors.all_invalid(f"{path}.deviceClassName", wanted, dns_subdomain_mistakes(wanted))
    found += selector_errors((request.get("selectors") or []), f"{path}.selectors")
    mode, count = request.get("allocationMode", ""), request.get("count", 0)
    if mode not in _MODES:
        found.append(errors.unsupported(f"{path}.allocationMode", mode, _MODES))
    elif mode == "All" and count:
        found.append(errors.invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'"))
    elif mode == "ExactCount" and count <= 0:
        found.append(errors.invalid(f"{path}.count", count, "must be greater than zero"))
    return found


def selector_errors(selectors: Sequence[Object], path: str) -> list[InvalidField]:
    return [
        errors.required(f"{errors.index(path, position)}.cel")
        for position, selector in enumerate(selectors)
        if "cel" not in selector
    ]


def class_errors(device_class: Object, _: Object | None) -> list[InvalidField]:
    return selector_errors((device_class["spec"].get("selectors") or []), "spec.selectors")


def slice_errors(piece: Object, old: Object | None) -> list[InvalidField]:
    """A ResourceSlice."""
    spec, pool = piece["spec"], piece["spec"].get("pool", {})
    found: list[InvalidField] = []
    if not spec.get("driver"):
        found.append(errors.required("spec.driver"))
    if not pool.get("name"):
        found.append(errors.required("spec.pool.name"))
    if pool.get("resourceSliceCount", 0) <= 0:
        why = "must be greater than zero"
        found.append(errors.invalid("spec.pool.resourceSliceCount", pool.get("resourceSliceCount", 0), why))
    places = [name for name in ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection") if spec.get(name)]
    if not places:
        found.append(errors.required("spec", _ONE_PLACE))
    elif len(places) > 1:
        shown = "{" + ", ".join(f"`{name}`" for name in places) + "}"
        found.append(errors.invalid("spec", shown, f"{_ONE_PLACE}, but multiple fields are set"))
    for position, device in enumerate(spec.get("devices") or []):
        found += _device_errors(device, errors.index("spec.devices", position))
    if old is not None:
        before: dict[str, Any] = old["spec"]
        found += (
            [errors.immutable("spec.driver", spec.get("driver"))] if spec.get("driver") != before.get("driver") else []
        )
        if pool.get("name") != before.get("pool", {}).get("name"):
            found.append(errors.immutable("spec.pool.name", pool.get("name", "")))
        if spec.get("nodeName") != before.get("nodeName"):
            found.append(errors.immutable("spec.nodeName", spec.get("nodeName")))
    return found


def _device_errors(device: Object, path: str) -> list[InvalidField]:
    name = device.get("name", "")
    found = errors.all_invalid(f"{path}.name", name, dns_label_mistakes(name))
    for attribute, value in sorted(device.get("attributes", {}).items()):
        if len(value) != 1:
            at = errors.key(f"{path}.attributes", attribute)
            found.append(errors.invalid(at, "", "exactly one value must be specified"))
    return found


def _name_errors(name: str, path: str) -> list[InvalidField]:
    if not name:
        return [errors.required(path)]
    return errors.all_invalid(path, name, dns_label_mistakes(name))
