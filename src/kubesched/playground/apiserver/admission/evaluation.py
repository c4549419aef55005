"""A policy and one request: whether it is about it, what its expressions see, and what they make of the object.

Resource rules, names, and labels of the object and its namespace choose the requests. ``matchPolicy: Equivalent`` finds
no more than ``Exact`` here, but for kinds that are served in several versions. Variables are computed when an
expression first asks for them. A mutating policy's expression gives an applied configuration or a list of JSON patches,
which are put into the object.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from kubesched.k8s.cel import Expression
from kubesched.k8s.cel.operations import LazyMap, StructValue
from kubesched.k8s.cel.steps import CostMeter
from kubesched.k8s.model.meta import LabelSelector
from kubesched.k8s.model.selectors import from_label_selector
from kubesched.playground.apiserver.errors import StatusError
from kubesched.playground.apiserver.kinds.admission_kinds import OBJECT
from kubesched.playground.apiserver.kinds.registry import EVERY_KIND
from kubesched.playground.apiserver.openapi.decoding import forget_empty_lists
from kubesched.playground.apiserver.openapi.schemas import ANY, ValueType, type_of_kind
from kubesched.playground.apiserver.patching import json_patch
from kubesched.playground.apiserver.patching.apply import check_configuration, merge
from kubesched.playground.apiserver.served_resource import DecodeError, Object, ServedResource
from kubesched.playground.apiserver.verbs.request import RequestUser


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a policy may know of a request; ``new`` is None for a deletion, ``old`` for a creation."""

    operation: str
    resource: ServedResource
    namespace: str
    name: str
    subresource: str
    new: Object | None
    old: Object | None
    user: RequestUser
    dry_run: bool
    namespace_object: Object | None


def matches(criteria: Mapping[str, Any], request: Attributes) -> bool:
    """Whether a request is within matchConstraints or matchResources."""
    if not _is_in_namespace(criteria.get("namespaceSelector"), request):
        return False
    objects = [one for one in (request.new, request.old) if one is not None]
    if not any(_has_labels(criteria.get("objectSelector"), one) for one in objects):
        return False
    versions = _versions(criteria, request.resource)
    if any(_rule_matches(rule, request, versions) for rule in criteria.get("excludeResourceRules") or ()):
        return False
    rules = criteria.get("resourceRules") or ()
    return not rules or any(_rule_matches(rule, request, versions) for rule in rules)


def _versions(criteria: Mapping[str, Any], resource: ServedResource) -> frozenset[str]:
    """The versions by which a rule may name the resource; what is served in one version only is never an old one."""
    is_equivalent = criteria.get("matchPolicy", "Equivalent") == "Equivalent"
    if not is_equivalent or not resource.stored_as:
        return frozenset({resource.version})
    named = (resource.group, resource.plural)
    return frozenset(kind.version for kind in EVERY_KIND if (kind.group, kind.plural) == named)


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector (an empty one takes everything) selects these labels."""
    return from_label_selector(msgspec.convert(selector or {}, LabelSelector)).matches(labels)


def _has_labels(selector: Mapping[str, Any] | None, obj: Object) -> bool:
    return not selector or selects(selector, obj["metadata"].get("labels") or {})


def _is_in_namespace(selector: Mapping[str, Any] | None, request: Attributes) -> bool:
    """Namespaces are selected by their own labels, other objects of the cluster always."""
    if not selector:
        return True
    is_namespace = request.resource.group_resource == "namespaces"
    subject = (request.new or request.old) if is_namespace else request.namespace_object
    return subject is None or _has_labels(selector, subject)


def _rule_matches(rule: Mapping[str, Any], request: Attributes, versions: frozenset[str]) -> bool:
    resource, scope = request.resource, rule.get("scope", "*")
    if scope not in ("*", "Namespaced" if resource.namespaced else "Cluster"):
        return False
    names = rule.get("resourceNames") or ()
    return (
        _has(rule.get("operations"), {request.operation})
        and _has(rule.get("apiGroups"), {resource.group})
        and _has(rule.get("apiVersions"), versions)
        and any(_is_resource(one, resource.plural, request.subresource) for one in rule.get("resources") or ())
        and (not names or request.name in names)
    )


def _has(wanted: Iterable[str] | None, found: Iterable[str]) -> bool:
    chosen = set(wanted or ())
    return "*" in chosen or not chosen.isdisjoint(found)


def _is_resource(pattern: str, plural: str, subresource: str) -> bool:
    name, slash, sub = pattern.partition("/")
    if not slash:
        return not subresource and name in ("*", plural)
    return name in ("*", plural) and sub in ("*", subresource)


COST_BUDGET = 10_000_000
"""What all expressions of a policy together may cost for one request."""

MATCH_BUDGET = 2_500_000
"""What all match conditions of a policy together may cost for one request."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The values that a policy's expressions see for one request, and what they have cost so far."""

    values: Mapping[str, Any]
    meter: CostMeter

    def run(self, expression: Expression) -> object:
        """Raises CelEvaluationError."""
        return expression.evaluate(self.values, self.meter)

    def with_object(self, obj: Object) -> Evaluation:
        """The same after a mutation."""
        return Evaluation({**self.values, "object": obj}, self.meter)


def evaluation(
    request: Attributes, params: Object | None, variables: Mapping[str, Expression], budget: int = COST_BUDGET
) -> Evaluation:
    """What the expressions of a policy see of a request."""
    values: dict[str, Any] = {
        "object": _with_type(request.new, request),
        "oldObject": _with_type(request.old, request),
        "request": _request_object(request),
        "namespaceObject": request.namespace_object if request.resource.namespaced else None,
        "params": params,
    }
    meter = CostMeter(budget)
    values["variables"] = LazyMap(
        {name: partial(compiled.evaluate, values, meter) for name, compiled in variables.items()}
    )
    return Evaluation(values, meter)


def _with_type(obj: Object | None, request: Attributes) -> Object | None:
    if obj is None:
        return None
    return {"apiVersion": request.resource.api_version, "kind": request.resource.kind, **obj}


def _request_object(request: Attributes) -> dict[str, Any]:
    resource, user = request.resource, request.user
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    named = {"group": resource.group, "version": resource.version, "resource": resource.plural}
    extra = {name: list(values) for name, values in user.extra.items()}
    return {
        "kind": kind,
        "resource": named,
        "subResource": request.subresource,
        "requestKind": kind,
        "requestResource": named,
        "requestSubResource": request.subresource,
        "name": request.name,
        "namespace": request.namespace,
        "operation": request.operation,
        "userInfo": {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra},
        "dryRun": request.dry_run,
    }


class MutationError(Exception):
    """The result of an expression cannot be put into the object."""


def mutate(obj: Object, resource: ServedResource, patch_type: str, result: object) -> Object:
    """A new object, with the defaults of what was added; raises MutationError."""
    typed = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
    changed = _patched(typed, result) if patch_type == "JSONPatch" else _merged(typed, resource, result)
    for name in ("apiVersion", "kind"):
        changed.pop(name, None)
    try:
        resource.decode(changed)
    except DecodeError as problem:
        raise MutationError(str(problem)) from None
    if not resource.is_custom:
        forget_empty_lists(changed, type_of_kind(resource.group, resource.version, resource.kind) or ANY)
    return changed


def _merged(obj: Object, resource: ServedResource, result: object) -> Object:
    if not isinstance(result, StructValue) or result.type_name != OBJECT:
        raise MutationError("unsupported return type from ApplyConfiguration expression")
    wanted: Object = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], **_plain(result, OBJECT)}
    of = resource.custom_type or type_of_kind(resource.group, resource.version, resource.kind) or ANY
    try:
        check_configuration(wanted, of, resource)
    except StatusError as problem:
        why = f"failed to convert patch object to typed object: {problem.message}"
        raise MutationError(f"error applying patch: {why}") from None
    atomic = list(_atomic_paths(wanted, of, ""))
    if atomic:
        why = f"may not mutate atomic arrays, maps or structs: {', '.join(atomic)}"
        raise MutationError(f"error applying patch: invalid ApplyConfiguration: {why}")
    merged: Object = merge(obj, wanted, of)
    return merged


def _atomic_paths(value: Any, of: ValueType, path: str) -> list[str]:
    """The places where a configuration would replace a whole that other managers may own parts of."""
    found: list[str] = []
    if isinstance(value, dict):
        if of.form in ("struct", "map") and of.is_atomic:
            found.append(path)
        for name, part in value.items():
            found += _atomic_paths(part, of.child(name), f"{path}.{name}")
    elif isinstance(value, list) and of.form == "list":
        if of.list_type not in ("map", "set"):
            found.append(path)
        for position, item in enumerate(value):
            found += _atomic_paths(item, of.element or ANY, f"{path}[{position}]")
    return found


def _patched(obj: Object, result: object) -> Object:
    if not isinstance(result, list):
        raise MutationError("type mismatch: JSONPatchType.expression should evaluate to array")
    operations = []
    for one in result:
        if not isinstance(one, StructValue):
            raise MutationError("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch")
        value = {"value": _plain(one["value"], "")} if "value" in one else {}
        operations.append({**{name: one[name] for name in ("op", "path", "from") if name in one}, **value})
    try:
        patched: Object = json_patch.apply(obj, operations)
    except StatusError as problem:
        if any(one.get("op") == "test" for one in operations):
            return obj  # a test that fails means that the patch is not wanted
        raise MutationError(f"JSON Patch: {problem.message}") from None
    return patched


def _plain(value: object, expected_type: str) -> Any:
    """A CEL value as JSON; a struct must be named after its place: ``Object.spec`` is the field spec of an Object."""
    if isinstance(value, StructValue):
        if expected_type and value.type_name != expected_type:
            raise MutationError(
                f'type mismatch: unexpected type name "{value.type_name}", expected "{expected_type}", which matches '
                "field name path from root Object type"
            )
        return {name: _plain(part, f"{value.type_name}.{name}") for name, part in value.items()}
    if isinstance(value, dict):
        return {str(name): _plain(part, "") for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part, expected_type) for part in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise MutationError(f"JSONPath valueExpression evaluated to a type that could not marshal to JSON: {value!r}")
