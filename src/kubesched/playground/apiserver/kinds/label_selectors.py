"""What is wrong with label selectors and node selectors within objects, in the API server's words."""

from __future__ import annotations

from typing import Any

from kubesched.k8s.model.label_syntax import label_key_errors, label_value_errors
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.field_errors import dns_subdomain_errors
from kubesched.playground.apiserver.kinds.metadata import label_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object

DEPRECATED_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": "deprecated since v1.22; use Taints and Tolerations instead",
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}
_NEEDS_VALUES = "must be specified when `operator` is 'In' or 'NotIn'"
_HAS_NO_VALUES = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"


def label_selector_errors(selector: Object | None, path: str, check_values: bool = True) -> list[InvalidField]:
    if selector is None:
        return []
    found = label_errors(selector.get("matchLabels", {}), f"{path}.matchLabels")
    for position, one in enumerate(selector.get("matchExpressions", [])):
        found += _requirement_errors(one, errors.index(f"{path}.matchExpressions", position), False, check_values)
    return found


def label_requirement_errors(requirement: Object, path: str) -> list[InvalidField]:
    """One of a label selector's requirements."""
    return _requirement_errors(requirement, path, for_nodes=False)


def node_selector_errors(selector: Object, path: str) -> list[InvalidField]:
    at = f"{path}.nodeSelectorTerms"
    terms = selector.get("nodeSelectorTerms") or []
    if not terms:
        return [errors.required(at, "must have at least one node selector term")]
    found: list[InvalidField] = []
    for position, term in enumerate(terms):
        found += node_term_errors(term, errors.index(at, position))
    return found


def node_term_errors(term: Object, path: str, check_values: bool = True) -> list[InvalidField]:
    found: list[InvalidField] = []
    for position, one in enumerate(term.get("matchExpressions", [])):
        at = errors.index(f"{path}.matchExpressions", position)
        found += _requirement_errors(one, at, for_nodes=True, check_values=check_values)
    for position, one in enumerate(term.get("matchFields", [])):
        found += _field_requirement_errors(one, errors.index(f"{path}.matchFields", position))
    return found


def _requirement_errors(one: Object, path: str, for_nodes: bool, check_values: bool = True) -> list[InvalidField]:
    values = one.get("values", [])
    operator = one.get("operator", "")
    found: list[InvalidField] = []
    if operator in ("In", "NotIn"):
        if not values:
            found.append(errors.required(f"{path}.values", _NEEDS_VALUES))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            found.append(errors.forbidden(f"{path}.values", _HAS_NO_VALUES))
    elif operator in ("Gt", "Lt") and for_nodes:
        if len(values) != 1:
            why = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            found.append(errors.required(f"{path}.values", why))
    else:
        found.append(errors.invalid(f"{path}.operator", operator, "not a valid selector operator"))
    found += errors.all_invalid(f"{path}.key", one.get("key", ""), label_key_errors(one.get("key", "")))
    if check_values:
        for position, value in enumerate(values):
            found += errors.all_invalid(errors.index(f"{path}.values", position), value, label_value_errors(value))
    return found


def _field_requirement_errors(one: Object, path: str) -> list[InvalidField]:
    values: list[Any] = one.get("values", [])
    found: list[InvalidField] = []
    if one.get("operator") in ("In", "NotIn"):
        if len(values) != 1:
            why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            found.append(errors.required(f"{path}.values", why))
    else:
        found.append(errors.invalid(f"{path}.operator", one.get("operator", ""), "not a valid selector operator"))
    if one.get("key") != "metadata.name":
        found.append(errors.invalid(f"{path}.key", one.get("key", ""), "not a valid field selector key"))
        return found
    for position, value in enumerate(values):
        found += errors.all_invalid(errors.index(f"{path}.values", position), value, dns_subdomain_errors(value))
    return found


def node_term_warnings(term: Object, path: str, check_values: bool = False) -> list[str]:
    """Labels that are deprecated, and values that no label can have, where they are not refused."""
    found: list[str] = []
    for position, one in enumerate(term.get("matchExpressions") or []):
        at, key = f"{path}.matchExpressions[{position}]", one.get("key", "")
        if key in DEPRECATED_LABELS:
            found.append(f"{at}.key: {key} is {DEPRECATED_LABELS[key]}")
        for place, value in enumerate(one.get("values") or []) if check_values else ():
            found += [f"{at}.values[{place}]: {value} is invalid, {why}" for why in label_value_errors(value)]
    return found
