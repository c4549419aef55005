"""Which requests a policy or binding is about: resource rules, names, and labels of the object and its namespace.

``matchPolicy: Equivalent`` finds no more than ``Exact`` here, but for kinds that are served in several versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from kubesched.k8s.model.meta import LabelSelector
from kubesched.k8s.model.selectors import from_label_selector
from kubesched.playground.apiserver.kinds.kind import Object, ServedResource
from kubesched.playground.apiserver.kinds.registry import ALL_KINDS
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
    return frozenset(kind.version for kind in ALL_KINDS if (kind.group, kind.plural) == named)


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
