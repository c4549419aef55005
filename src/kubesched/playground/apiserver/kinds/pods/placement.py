"""What is wrong with the scheduling fields of a pod spec: affinity, topology spread, gates, scheduling group."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.k8s.model.label_syntax import label_key_errors
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.label_selectors import (
    label_selector_errors,
    node_selector_errors,
    node_term_errors,
)
from kubesched.playground.apiserver.kinds.name_syntax import dns_label_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES = ("Honor", "Ignore")


def affinity_errors(affinity: Object, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    if "nodeAffinity" in affinity:
        found += _node_affinity_errors(affinity["nodeAffinity"], f"{path}.nodeAffinity")
    for sort in ("podAffinity", "podAntiAffinity"):
        if sort in affinity:
            found += _pod_affinity_errors(affinity[sort], f"{path}.{sort}")
    return found


def _node_affinity_errors(affinity: Object, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    if _REQUIRED in affinity:
        found += node_selector_errors(affinity[_REQUIRED], f"{path}.{_REQUIRED}")
    for position, term in enumerate(affinity.get(_PREFERRED, [])):
        at = errors.index(f"{path}.{_PREFERRED}", position)
        found += _weight_errors(term, at)
        found += node_term_errors(term.get("preference", {}), f"{at}.preference", check_values=False)
    return found


def _pod_affinity_errors(affinity: Object, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for position, term in enumerate(affinity.get(_REQUIRED, [])):
        found += _pod_term_errors(term, errors.index(f"{path}.{_REQUIRED}", position))
    for position, weighted in enumerate(affinity.get(_PREFERRED, [])):
        at = errors.index(f"{path}.{_PREFERRED}", position)
        found += _weight_errors(weighted, at)
        found += _pod_term_errors(weighted.get("podAffinityTerm", {}), f"{at}.podAffinityTerm")
    return found


def _weight_errors(weighted: Object, path: str) -> list[InvalidField]:
    weight = weighted.get("weight", 0)
    return [] if 1 <= weight <= 100 else [errors.invalid(f"{path}.weight", weight, "must be in the range 1-100")]


def _pod_term_errors(term: Object, path: str) -> list[InvalidField]:
    found = label_selector_errors(term.get("labelSelector"), f"{path}.labelSelector")
    found += label_selector_errors(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for name in term.get("namespaces", []):
        found += errors.all_invalid(f"{path}.namespace", name, dns_label_errors(name))
    found += _label_key_errors(term, path)
    key = term.get("topologyKey", "")
    if not key:
        found.append(errors.required(f"{path}.topologyKey", "can not be empty"))
    return found + errors.all_invalid(f"{path}.topologyKey", key, label_key_errors(key))


def _label_key_errors(term: Object, path: str) -> list[InvalidField]:
    """matchLabelKeys and mismatchLabelKeys; by now the selector already contains what came from them."""
    matched, mismatched = term.get("matchLabelKeys", []), term.get("mismatchLabelKeys", [])
    selector = term.get("labelSelector")
    found: list[InvalidField] = []
    for sort, keys in (("matchLabelKeys", matched), ("mismatchLabelKeys", mismatched)):
        at = f"{path}.{sort}"
        if keys and selector is None:
            found.append(errors.forbidden(at, "must not be specified when labelSelector is not set"))
            continue
        for position, key in enumerate(keys):
            found += errors.all_invalid(errors.index(at, position), key, label_key_errors(key))
    if selector is not None:
        selected = set(selector.get("matchLabels", {}))
        for expression in selector.get("matchExpressions", []):
            key = expression.get("key", "")
            if key in matched and key in selected:
                at = errors.index(path, matched.index(key))
                found.append(errors.invalid(at, key, "exists in both matchLabelKeys and labelSelector"))
            selected.add(key)
    for position, key in enumerate(matched):
        if key in mismatched:
            at = errors.index(f"{path}.matchLabelKeys", position)
            found.append(errors.invalid(at, key, "exists in both matchLabelKeys and mismatchLabelKeys"))
    return found


def spread_errors(constraints: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for position, constraint in enumerate(constraints):
        at = errors.index(path, position)
        found += _one_spread(constraint, constraints[position + 1 :], at)
        found += _label_key_errors(constraint, at)
        found += label_selector_errors(constraint.get("labelSelector"), f"{at}.labelSelector")
    return found


def _one_spread(constraint: Object, later: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    if constraint.get("maxSkew", 0) <= 0:
        found.append(errors.invalid(f"{path}.maxSkew", constraint.get("maxSkew", 0), "must be greater than zero"))
    key, action = constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")
    if not key:
        found.append(errors.required(f"{path}.topologyKey", "can not be empty"))
    if action not in _ACTIONS:
        found.append(errors.unsupported(f"{path}.whenUnsatisfiable", action, _ACTIONS))
    if any((other.get("topologyKey"), other.get("whenUnsatisfiable")) == (key, action) for other in later):
        found.append(errors.duplicate(f"{path}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
    domains = constraint.get("minDomains")
    if domains is not None:
        if domains <= 0:
            found.append(errors.invalid(f"{path}.minDomains", domains, "must be greater than zero"))
        if action != "DoNotSchedule":
            why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            found.append(errors.invalid(f"{path}.minDomains", domains, why))
    return found + [
        errors.unsupported(f"{path}.{name}", constraint[name], _POLICIES)
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy")
        if constraint.get(name, "Honor") not in _POLICIES
    ]


def gate_errors(gates: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    seen: set[str] = set()
    for position, gate in enumerate(gates):
        at, name = errors.index(path, position), gate.get("name", "")
        found += errors.all_invalid(at, name, label_key_errors(name))
        if name in seen:
            found.append(errors.duplicate(at, name))
        seen.add(name)
    return found
