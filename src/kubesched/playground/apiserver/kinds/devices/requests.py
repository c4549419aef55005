"""What a claim asks for: requests, constraints between devices, configuration. Also templates and device classes."""

from __future__ import annotations

from typing import Any

from kubesched.k8s.model.requests import is_extended
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.devices.lists import list_errors, set_errors
from kubesched.playground.apiserver.kinds.devices.names import fully_qualified_name_errors, short_name_errors
from kubesched.playground.apiserver.kinds.devices.selectors import MOST_CONFIGS, configuration_errors, selector_errors
from kubesched.playground.apiserver.kinds.devices.taints import set_toleration_defaults, toleration_errors
from kubesched.playground.apiserver.kinds.internal_form import internal_form
from kubesched.playground.apiserver.kinds.metadata import template_metadata_errors
from kubesched.playground.apiserver.kinds.name_syntax import dns_subdomain_errors
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
