"""Resource amounts within objects: names of resources, quantities, requests against limits, in the API server's words.

Amounts are texts in canonical form (decoding saw to that). Used by pods, nodes, claims and templates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubesched.k8s.model import quantity
from kubesched.k8s.model.requests import is_extended
from kubesched.k8s.model.selectors import label_key_errors
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.field_errors import dns_label_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object

HUGE_PAGES = "hugepages-"
_CONTAINER_RESOURCES = frozenset({"cpu", "memory", "ephemeral-storage"})
_WHOLE = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
"""Counted, not measured."""
QUOTA_RESOURCES = (
    frozenset(f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in _CONTAINER_RESOURCES)
    | _WHOLE
    | {"requests.storage"}
)
_STANDARD_RESOURCES = QUOTA_RESOURCES | {"storage"}
_NATIVE_PREFIX = "kubernetes.io/"

_ZERO = quantity.from_int(0)

ResourceNameRule = Callable[[str, str], list[InvalidField]]


def is_huge_page(name: str) -> bool:
    return name.startswith(HUGE_PAGES)


def is_quota_huge_page(name: str) -> bool:
    return name.startswith((HUGE_PAGES, f"requests.{HUGE_PAGES}"))


def is_native(name: str) -> bool:
    return "/" not in name or _NATIVE_PREFIX in name


def can_be_overcommitted(name: str) -> bool:
    return is_native(name) and not is_huge_page(name)


def resource_name_errors(name: str, path: str) -> list[InvalidField]:
    problems = label_key_errors(name)
    if problems:
        return errors.all_invalid(path, name, problems)
    if "/" not in name and name not in _STANDARD_RESOURCES and not is_quota_huge_page(name):
        return [errors.invalid(path, name, "must be a standard resource type or fully qualified")]
    return []


def container_resource_name_errors(name: str, path: str) -> list[InvalidField]:
    found = resource_name_errors(name, path)
    if "/" not in name:
        if name not in _CONTAINER_RESOURCES and not is_huge_page(name):
            found.append(errors.invalid(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        found.append(errors.invalid(path, name, "doesn't follow extended resource name standard"))
    return found


def pod_resource_name_errors(name: str, path: str) -> list[InvalidField]:
    found = resource_name_errors(name, path)
    if not found and name not in ("cpu", "memory") and not is_huge_page(name):
        found.append(errors.unsupported(path, name, ("cpu", HUGE_PAGES, "memory")))
    return found


def amount_errors(name: str, amount: str, path: str) -> list[InvalidField]:
    value = quantity.parse(amount)
    found = []
    if value < _ZERO:
        found.append(errors.invalid(path, amount, "must be greater than or equal to 0"))
    if (name in _WHOLE or is_extended(name)) and not value.is_whole:
        found.append(errors.invalid(path, amount, "must be an integer"))
    return found


def requirement_errors(
    requirements: Object, name_rule: ResourceNameRule, path: str, claim_names: frozenset[str]
) -> list[InvalidField]:
    """What is wrong with requests, limits and claims of a container (or of a pod, by its own name rule)."""
    limits: dict[str, str] = requirements.get("limits", {})
    requests: dict[str, str] = requirements.get("requests", {})
    found: list[InvalidField] = []
    for name, amount in sorted(limits.items()):
        found += _one_amount(name, amount, name_rule, errors.key(f"{path}.limits", name))
    for name, amount in sorted(requests.items()):
        at = errors.key(f"{path}.requests", name)
        found += name_rule(name, at) + amount_errors(name, amount, at)
        found += _request_against_limit(name, amount, limits.get(name), path)
        found += _huge_page_errors(name, amount, at)
    names = limits.keys() | requests.keys()
    if any(is_huge_page(name) for name in names) and not names & {"cpu", "memory"}:
        found.append(errors.forbidden(path, "HugePages require cpu or memory"))
    return found + _claim_errors(requirements.get("claims", []), f"{path}.claims", claim_names)


def _one_amount(name: str, amount: str, name_rule: ResourceNameRule, path: str) -> list[InvalidField]:
    return name_rule(name, path) + amount_errors(name, amount, path) + _huge_page_errors(name, amount, path)


def _request_against_limit(name: str, amount: str, limit: str | None, path: str) -> list[InvalidField]:
    at = f"{path}.requests"
    if limit is None:
        if can_be_overcommitted(name):
            return []
        return [errors.required(f"{path}.limits", "Limit must be set for non overcommitable resources")]
    asked, allowed = quantity.parse(amount), quantity.parse(limit)
    if asked != allowed and not can_be_overcommitted(name):
        return [errors.invalid(at, amount, f"must be equal to {name} limit of {limit}")]
    if asked > allowed:
        return [errors.invalid(at, amount, f"must be less than or equal to {name} limit of {limit}")]
    return []


def _huge_page_errors(name: str, amount: str, path: str) -> list[InvalidField]:
    if not is_huge_page(name):
        return []
    try:
        size = quantity.parse(name.removeprefix(HUGE_PAGES)).value
    except quantity.QuantityError:
        size = 0
    value = quantity.parse(amount).value
    if size > 0 and value % size == 0:
        return []
    return [errors.invalid(path, amount, f"{amount} is not positive integer multiple of {name}")]


def _claim_errors(claims: list[Any], path: str, claim_names: frozenset[str]) -> list[InvalidField]:
    found: list[InvalidField] = []
    seen: set[str] = set()
    for position, claim in enumerate(claims):
        at = errors.index(path, position)
        name = claim.get("name", "")
        if not name:
            found.append(errors.required(at))
            continue
        request = claim.get("request", "")
        full = f"{name}/{request}" if request else name
        if request and name not in seen:
            found += errors.all_invalid(f"{at}.request", request, dns_label_errors(request))
        overlaps = name in seen or (not request and any(other.startswith(f"{name}/") for other in seen))
        if overlaps or full in seen:
            found.append(errors.duplicate(at, full if full in seen else name))
        seen.add(full)
        if name not in claim_names:
            named = sorted(filter(None, claim_names))
            listed = f": {', '.join(named)}" if named else " which is empty"
            found.append(errors.missing(at, name, f"must be one of the names in pod.spec.resourceClaims{listed}"))
    return found


def round_up_to_milli(amounts: dict[str, str]) -> None:
    """Amounts below a thousandth do not exist in requests: the API server rounds up."""
    for name, amount in amounts.items():
        value = quantity.parse(amount)
        if value.milli_value * 1_000_000 != value.nanos:
            amounts[name] = str(quantity.from_milli(value.milli_value))
