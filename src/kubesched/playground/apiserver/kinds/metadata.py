"""What is wrong with what objects of all kinds share: metadata, conditions in a status, label and node selectors.

The order of the errors is that of the real server. Metadata is looked at on create and on update, by every kind's
``validate``; see ``serving.py``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from kubesched.k8s.model.selectors import label_key_errors, label_value_errors
from kubesched.playground.apiserver.go_text import quoted
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.field_errors import (
    NameRule,
    dns_label_errors,
    dns_subdomain_errors,
    with_prefix_allowed,
)
from kubesched.playground.apiserver.served_resource import InvalidField, Object

_MOST_ANNOTATION_BYTES = 256 * 1024
_MOST_MANAGER_BYTES = 128
_STANDARD_FINALIZERS = ("kubernetes", "orphan", "foregroundDeletion")
_FIXED = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")


def validate_new(meta: Object, namespaced: bool, name_rule: NameRule) -> list[InvalidField]:
    found: list[InvalidField] = []
    generate = meta.get("generateName", "")
    if generate:
        problems = name_rule(with_prefix_allowed(generate))
        found += errors.all_invalid("metadata.generateName", generate, problems)
    name = meta.get("name", "")
    if not name:
        found.append(errors.required("metadata.name", "name or generateName is required"))
    else:
        found += errors.all_invalid("metadata.name", name, name_rule(name))
    found += _namespace_errors(meta.get("namespace", ""), namespaced)
    return found + _content_errors(meta) + _finalizer_errors(meta)


def validate_changed(meta: Object, old: Object, again: str = "changed") -> list[InvalidField]:
    """What is wrong with changed metadata.

    Every update checks content and changes once for all kinds; then the kind's own validation checks the changes
    ("changed"), all of it ("all"), both or "none" again, and its findings are told again.
    """
    content = _content_errors(meta)
    finalizers = _finalizer_errors(meta)
    changes = _finalizers_while_deleting(meta, old) + [
        errors.immutable(f"metadata.{name}", meta.get(name))
        for name in _FIXED
        if meta.get(name) != old.get(name) and (old.get(name) is not None or name.startswith("deletion"))
    ]
    if not (content or finalizers or changes or meta.get("finalizers")):
        return []
    found = content + finalizers + changes + content
    if again in ("changed", "both"):
        found += changes + content
    if again in ("all", "both"):
        found += content + finalizers + finalizer_name_errors(meta)
    return found


def _content_errors(meta: Object) -> list[InvalidField]:
    found = label_errors(meta.get("labels", {}), "metadata.labels")
    found += annotation_errors(meta.get("annotations", {}), "metadata.annotations")
    return found + _owner_errors(meta.get("ownerReferences", [])) + _manager_errors(meta.get("managedFields", []))


def _manager_errors(entries: list[Any]) -> list[InvalidField]:
    found: list[InvalidField] = []
    for position, entry in enumerate(entries):
        path = errors.index("metadata.managedFields", position) + ".manager"
        found += [InvalidField(reason, path, message) for reason, message in manager_errors(entry.get("manager", ""))]
    return found


def manager_errors(manager: str) -> list[tuple[str, str]]:
    """Reason and message of what is wrong with the name of a field manager."""
    if len(manager.encode()) > _MOST_MANAGER_BYTES:
        return [("FieldValueTooLong", f"Too long: may not be more than {_MOST_MANAGER_BYTES} bytes")]
    if manager.isprintable():
        return []
    place, sign = next((place, sign) for place, sign in enumerate(manager) if not sign.isprintable())
    why = f"invalid character U+{ord(sign):04X} (at position {place})"
    return [("FieldValueInvalid", f"Invalid value: {quoted(manager)}: {why}")]


def template_metadata_errors(meta: Object, path: str) -> list[InvalidField]:
    """Metadata within a template for claims: only labels and annotations have a meaning there."""
    found = annotation_errors(meta.get("annotations", {}), f"{path}.annotations")
    found += label_errors(meta.get("labels", {}), f"{path}.labels")
    others = [name for name, value in meta.items() if value and name not in ("annotations", "labels")]
    # the real server goes by the names of its Go fields, of which it lowers the first letter
    shown = {"uid": "uID"}
    return found + [errors.forbidden(f"{path}.{shown.get(name, name)}", "cannot be set") for name in others]


def label_errors(labels: Object, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for name, value in sorted(labels.items()):
        found += errors.all_invalid(path, name, label_key_errors(name))
        found += errors.all_invalid(path, value, label_value_errors(value))
    return found


def annotation_errors(annotations: Object, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    n_bytes = 0
    for name, value in sorted(annotations.items()):
        found += errors.all_invalid(path, name, label_key_errors(name.lower()))
        n_bytes += len(name.encode()) + len(value.encode())
    if n_bytes > _MOST_ANNOTATION_BYTES:
        found.append(errors.too_long(path, _MOST_ANNOTATION_BYTES))
    return found


def _namespace_errors(namespace: str, namespaced: bool) -> list[InvalidField]:
    if not namespaced:
        return [errors.forbidden("metadata.namespace", "not allowed on this type")] if namespace else []
    if not namespace:
        return [errors.required("metadata.namespace")]
    return errors.all_invalid("metadata.namespace", namespace, dns_label_errors(namespace))


def _owner_errors(owners: list[Any]) -> list[InvalidField]:
    path = "metadata.ownerReferences"
    found: list[InvalidField] = []
    controller = ""
    for owner in owners:
        if not owner.get("apiVersion", "").rpartition("/")[2]:
            found.append(errors.invalid(f"{path}.apiVersion", owner.get("apiVersion", ""), "version must not be empty"))
        found += [
            errors.invalid(f"{path}.{name}", owner.get(name, ""), "must not be empty")
            for name in ("kind", "name", "uid")
            if not owner.get(name)
        ]
        if owner.get("controller"):
            if controller:
                why = 'Only one reference can have Controller set to true. Found "true" in references for '
                found.append(errors.invalid(path, owners, f"{why}{controller} and {owner.get('name', '')}"))
            else:
                controller = owner.get("name", "")
    return found


def _finalizer_errors(meta: Object) -> list[InvalidField]:
    path, finalizers = "metadata.finalizers", meta.get("finalizers", [])
    found: list[InvalidField] = []
    for name in finalizers:
        found += errors.all_invalid(path, name, label_key_errors(name))
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        why = "finalizer orphan and foregroundDeletion cannot be both set"
        found.append(errors.invalid(path, finalizers, why))
    return found


def finalizer_name_errors(meta: Object) -> list[InvalidField]:
    """Only built-in kinds ask for a domain in the names of finalizers."""
    why = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        errors.invalid(errors.index("metadata.finalizers", position), name, why)
        for position, name in enumerate(meta.get("finalizers", []))
        if "/" not in name and name not in _STANDARD_FINALIZERS
    ]


def protect(obj: Object, finalizer: str) -> None:
    """A new object that may not go while others use it."""
    finalizers = obj["metadata"].setdefault("finalizers", [])
    if finalizer not in finalizers:
        finalizers.append(finalizer)


def _finalizers_while_deleting(meta: Object, old: Object) -> list[InvalidField]:
    if old.get("deletionTimestamp") is None:
        return []
    added = [name for name in meta.get("finalizers", []) if name not in old.get("finalizers", [])]
    if not added:
        return []
    listed = ", ".join(quoted(name) for name in added)
    why = "no new finalizers can be added if the object is being deleted, found new finalizers []string{%s}"
    return [errors.forbidden("metadata.finalizers", why % listed)]


_STATUSES = ("False", "True", "Unknown")
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_REASON_EXAMPLES = "'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB'"
_REASON_TEXT = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' "
    f"(e.g. {_REASON_EXAMPLES}, regex used for validation is '{_REASON}')"
)
_LONGEST_REASON, _LONGEST_MESSAGE = 1024, 32 * 1024


def condition_errors(conditions: Sequence[Object], path: str, *, names_missing: bool = False) -> list[InvalidField]:
    """With `names_missing`, as since v1.37, an empty type or status is one that is missing."""
    found: list[InvalidField] = []
    seen: set[str] = set()
    for position, condition in enumerate(conditions):
        at, sort = errors.index(path, position), condition.get("type", "")
        if sort in seen:
            found.append(errors.duplicate(at if names_missing else f"{at}.type", sort))
        seen.add(sort)
        found += _one_condition_errors(condition, at, names_missing)
    return found


def _one_condition_errors(condition: Object, path: str, names_missing: bool) -> list[InvalidField]:
    sort, status = condition.get("type", ""), condition.get("status", "")
    if names_missing and not sort:
        found = [errors.required(f"{path}.type", "is required")]
    else:
        found = errors.all_invalid(f"{path}.type", sort, label_key_errors(sort))
    if names_missing and not status:
        found.append(errors.required(f"{path}.status"))
    elif status not in _STATUSES:
        found.append(errors.unsupported(f"{path}.status", status, _STATUSES))
    generation = condition.get("observedGeneration", 0)
    if generation < 0:
        why = "must be greater than or equal to zero"
        found.append(errors.invalid(f"{path}.observedGeneration", generation, why))
    if condition.get("lastTransitionTime") is None:
        found.append(errors.required(f"{path}.lastTransitionTime"))
    reason = condition.get("reason", "")
    if not reason:
        found.append(errors.required(f"{path}.reason"))
    else:
        if not re.fullmatch(_REASON, reason):
            found.append(errors.invalid(f"{path}.reason", reason, _REASON_TEXT))
        if len(reason.encode()) > _LONGEST_REASON:
            found.append(errors.too_long(f"{path}.reason", _LONGEST_REASON))
    if len(condition.get("message", "").encode()) > _LONGEST_MESSAGE:
        found.append(errors.too_long(f"{path}.message", _LONGEST_MESSAGE))
    return found


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
