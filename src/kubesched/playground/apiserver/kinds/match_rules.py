"""Rules that say which requests a policy or binding is about: defaults and validation of matchConstraints.

``admission/evaluation.py`` applies them to requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.label_selectors import label_selector_errors
from kubesched.playground.apiserver.kinds.name_syntax import path_segment_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")


def set_match_defaults(criteria: Object | None) -> None:
    if criteria is None:
        return
    criteria.setdefault("matchPolicy", "Equivalent")
    criteria.setdefault("namespaceSelector", {})
    criteria.setdefault("objectSelector", {})
    for name in ("resourceRules", "excludeResourceRules"):
        for rule in criteria.get(name) or ():
            rule.setdefault("scope", "*")


def choice_errors(value: Any, allowed: Iterable[str], path: str) -> list[InvalidField]:
    if not value:
        return [errors.required(path)]
    return [] if value in allowed else [errors.unsupported(path, value, allowed)]


def match_errors(criteria: Object | None, path: str) -> list[InvalidField]:
    if criteria is None:
        return []
    found = choice_errors(criteria.get("matchPolicy"), ("Equivalent", "Exact"), f"{path}.matchPolicy")
    for name in ("namespaceSelector", "objectSelector"):
        found += label_selector_errors(criteria.get(name), f"{path}.{name}")
    for name in ("resourceRules", "excludeResourceRules"):
        for place, rule in enumerate(criteria.get(name) or ()):
            found += _rule_errors(rule, errors.index(f"{path}.{name}", place))
    return found


def _rule_errors(rule: Object, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    seen: set[str] = set()
    for place, name in enumerate(rule.get("resourceNames") or ()):
        at = errors.index(f"{path}.resourceNames", place)
        found += errors.all_invalid(at, name, path_segment_errors(name))
        if name in seen:
            found.append(errors.duplicate(at, name))
        seen.add(name)
    operations = rule.get("operations") or []
    found += _wildcards(operations, f"{path}.operations", "operations")
    found += [
        errors.unsupported(errors.index(f"{path}.operations", place), one, _OPERATIONS)
        for place, one in enumerate(operations)
        if one not in _OPERATIONS
    ]
    found += _wildcards(rule.get("apiGroups") or [], f"{path}.apiGroups", "API groups")
    versions = rule.get("apiVersions") or []
    found += _wildcards(versions, f"{path}.apiVersions", "API versions")
    found += [errors.required(errors.index(f"{path}.apiVersions", i)) for i, one in enumerate(versions) if not one]
    found += _resource_errors(rule.get("resources") or [], f"{path}.resources")
    return found + choice_errors(rule.get("scope", "*"), ("*", "Cluster", "Namespaced"), f"{path}.scope")


def _wildcards(values: list[str], path: str, what: str) -> list[InvalidField]:
    if not values:
        return [errors.required(path)]
    if len(values) > 1 and "*" in values:
        return [errors.invalid(path, values, f"if '*' is present, must not specify other {what}")]
    return []


def _resource_errors(resources: list[str], path: str) -> list[InvalidField]:
    if not resources:
        return [errors.required(path)]
    found: list[InvalidField] = []
    whole: set[str] = set()
    everywhere: set[str] = set()
    for place, one in enumerate(resources):
        at = errors.index(path, place)
        if not one:
            found.append(errors.required(at))
            continue
        name, slash, sub = one.partition("/")
        if not slash:
            continue
        if name in whole:
            found.append(errors.invalid(at, one, f"if '{name}/*' is present, must not specify {one}"))
        if sub in everywhere:
            found.append(errors.invalid(at, one, f"if '*/{sub}' is present, must not specify {one}"))
        if sub == "*":
            whole.add(name)
        if name == "*":
            everywhere.add(sub)
    if len(resources) > 1 and "*/*" in resources:
        found.append(errors.invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and any(one and one != "*" and "/" not in one for one in resources):
        why = "if '*' is present, must not specify other resources without subresources"
        found.append(errors.invalid(path, resources, why))
    return found
