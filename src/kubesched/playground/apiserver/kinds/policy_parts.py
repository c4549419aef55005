"""What admission policies and bindings consist of: rules that choose requests, and expressions.

``admission_kinds.py`` refuses policies whose rules are wrong or whose expressions do not compile; ``admission/``
applies those that are good.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubesched.k8s.cel import CelCompileError, Expression, compile_expression, kinds
from kubesched.k8s.cel.kinds import CelType, TypeKind
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.field_errors import path_segment_errors
from kubesched.playground.apiserver.kinds.metadata import label_selector_errors
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


OBJECT = "Object"
JSON_PATCH = "JSONPatch"


def struct(name: str) -> CelType:
    return CelType(TypeKind.STRUCT, name)


_GROUP_KIND = dict.fromkeys(("group", "version", "kind"), kinds.STRING)
_GROUP_RESOURCE = dict.fromkeys(("group", "version", "resource"), kinds.STRING)
_STRUCTS: Mapping[str, Mapping[str, CelType]] = {
    "kubernetes.GroupVersionKind": _GROUP_KIND,
    "kubernetes.GroupVersionResource": _GROUP_RESOURCE,
    "kubernetes.UserInfo": {
        "username": kinds.STRING,
        "uid": kinds.STRING,
        "groups": kinds.list_of(kinds.STRING),
        "extra": kinds.map_of(kinds.STRING, kinds.list_of(kinds.STRING)),
    },
    "kubernetes.AdmissionRequest": {
        "kind": struct("kubernetes.GroupVersionKind"),
        "resource": struct("kubernetes.GroupVersionResource"),
        "subResource": kinds.STRING,
        "requestKind": struct("kubernetes.GroupVersionKind"),
        "requestResource": struct("kubernetes.GroupVersionResource"),
        "requestSubResource": kinds.STRING,
        "name": kinds.STRING,
        "namespace": kinds.STRING,
        "operation": kinds.STRING,
        "userInfo": struct("kubernetes.UserInfo"),
        "dryRun": kinds.BOOL,
        "options": kinds.DYN,
    },
    JSON_PATCH: {"op": kinds.STRING, "path": kinds.STRING, "from": kinds.STRING, "value": kinds.DYN},
}


class PolicyTypes:
    """The struct types of policies. `Object` and all below it may be built, with any field, where patches are made."""

    def __init__(self, variables: Mapping[str, CelType], has_patches: bool) -> None:
        self._variables = variables
        self._has_patches = has_patches

    def is_constructible(self, type_name: str) -> bool:
        return self._has_patches and (type_name == JSON_PATCH or self._is_object(type_name))

    def field_type(self, type_name: str, field: str) -> CelType | None:
        if self._is_object(type_name):
            return kinds.DYN
        fields = self._variables if type_name == "kubernetes.variables" else _STRUCTS[type_name]
        return fields.get(field)

    def _is_object(self, type_name: str) -> bool:
        return type_name == OBJECT or type_name.startswith(OBJECT + ".")


class PolicyCompiler:
    """Compiles the expressions of one policy; a variable can be used by all that is compiled after it."""

    def __init__(self, has_params: bool) -> None:
        self._variables: dict[str, CelType] = {}
        self._names: dict[str, CelType] = {
            "object": kinds.DYN,
            "oldObject": kinds.DYN,
            "request": struct("kubernetes.AdmissionRequest"),
            "namespaceObject": kinds.DYN,
            **({"params": kinds.DYN} if has_params else {}),
        }

    def compile(self, text: str, wanted: Iterable[CelType] = (), *, has_patches: bool = False) -> Expression:
        """Raises CelCompileError, also where the result cannot be of a wanted type."""
        names = {**self._names, **({"variables": struct("kubernetes.variables")} if self._variables else {})}
        compiled = compile_expression(text, names, PolicyTypes(dict(self._variables), has_patches))
        types = list(wanted)
        if types and compiled.type not in types:
            wanted_text = str(types[0]) if len(types) == 1 else f"one of [{' '.join(map(str, types))}]"
            raise CelCompileError(f"must evaluate to {wanted_text} but got {compiled.type}")
        return compiled

    def add_variable(self, name: str, text: str) -> Expression:
        compiled = self.compile(text)
        self._variables[name] = compiled.type
        return compiled
