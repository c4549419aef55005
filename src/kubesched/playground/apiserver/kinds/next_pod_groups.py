"""Pod groups, workloads, and groups of pod groups as v1.37 serves them: scheduling.k8s.io/v1beta1 and v1alpha3.

Both versions have the same fields; CompositePodGroup is in v1alpha3 alone. All feature gates count as on. Few fields
may change: a gang's minCount, in a group and in the templates of a workload. What stays as it was is not looked at
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kubesched.k8s.model.scheduling import MODE_POD_GROUP, POD_GROUP_INITIALLY_SCHEDULED, PROTECTION_FINALIZER
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.field_errors import dns_label_errors, dns_subdomain_errors
from kubesched.playground.apiserver.kinds.metadata import condition_errors, protect
from kubesched.playground.apiserver.kinds.scheduling_kinds import (
    MOST_TEMPLATES,
    claim_status_errors,
    claims_errors,
    constraints_errors,
    controller_errors,
    group_columns,
    name_errors,
    named_list_errors,
    policy_name,
    priority_errors,
    refused,
    set_priority,
    union_errors,
)
from kubesched.playground.apiserver.kinds.serving import AGE, NAME, KindRules, described, dig
from kubesched.playground.apiserver.served_resource import InvalidField, Object, TableColumn, WriteContext

_DEEPEST = 4
_PREEMPTS = "PreemptLowerPriority"
_WORKLOAD_NAME = "spec.workloadRef.workloadName"

_NEW: Any = object()
"""What a field was before in an object that did not exist."""

FieldCheck = Callable[[Any, Any, str], list[InvalidField]]
"""Of a field's value, what it was before, and its path."""


def _spec_errors(spec: Object, before: Object, path: str, checks: Mapping[str, FieldCheck]) -> list[InvalidField]:
    found: list[InvalidField] = []
    for name, check in checks.items():
        value, was = spec.get(name), _NEW if before is _NEW else before.get(name)
        if value != was:
            found += check(value, was, f"{path}.{name}")
    return found


def _fixed(check: Callable[[Any, str], list[InvalidField]], *, is_required: bool = False) -> FieldCheck:
    """For a field that never changes."""

    def checked(value: Any, was: Any, path: str) -> list[InvalidField]:
        if was is not _NEW:
            return [errors.immutable(path, None)]
        if value is None:
            return [errors.required(path)] if is_required else []
        return check(value, path)

    return checked


def _subdomain(name: str, path: str) -> list[InvalidField]:
    return errors.all_invalid(path, name, dns_subdomain_errors(name))


def _template_errors(reference: Object, path: str) -> list[InvalidField]:
    found = name_errors(reference.get("workloadName"), dns_subdomain_errors, f"{path}.workloadName")
    return found + name_errors(reference.get("templateName"), dns_label_errors, f"{path}.templateName")


def _mode_errors(mode: Object, path: str) -> list[InvalidField]:
    return union_errors(mode, ("single", "all"), path)


def _preemption_errors(policy: str, path: str) -> list[InvalidField]:
    known = ("Never", _PREEMPTS)
    return [] if policy in known else [errors.unsupported(path, policy, known)]


def _policy_check(least: str) -> FieldCheck:
    """`least` is the gang's field that says how many are enough."""

    def checked(policy: Any, was: Any, path: str) -> list[InvalidField]:
        policy, was = policy or {}, was if was is _NEW else was or {}
        found: list[InvalidField] = []
        if was is _NEW or any((name in policy) != (name in was) for name in ("basic", "gang")):
            found += union_errors(policy, ("basic", "gang"), path)
        if was is not _NEW:
            if ("basic" in policy) != ("basic" in was):
                found.append(errors.immutable(f"{path}.basic", None))
            if ("gang" in policy) != ("gang" in was):
                why = "field cannot be set once created" if "gang" in policy else "field cannot be cleared once set"
                return [*found, errors.invalid(f"{path}.gang", None, why)]
        if "gang" not in policy:
            return found
        count, at = policy["gang"].get(least, 0), f"{path}.gang.{least}"
        if count == 0:
            found.append(errors.required(at))
        elif count < 0:
            found.append(errors.invalid(at, count, "must be greater than or equal to 1"))
        return found

    return checked


# -- groups ------------------------------------------------------------------------------------------------------------

_PRIORITY: Mapping[str, FieldCheck] = {
    "disruptionMode": _fixed(_mode_errors),
    "priorityClassName": _fixed(_subdomain),
    "priority": _fixed(priority_errors),
    "preemptionPolicy": _fixed(_preemption_errors),
}
_OF_GROUP: Mapping[str, FieldCheck] = {
    "schedulingPolicy": _policy_check("minCount"),
    "schedulingConstraints": _fixed(constraints_errors),
    "resourceClaims": _fixed(claims_errors),
    **_PRIORITY,
}
_POD_GROUP_FIELDS: Mapping[str, FieldCheck] = {
    "parentCompositePodGroupName": _fixed(_subdomain),
    "workloadRef": _fixed(_template_errors),
    **_OF_GROUP,
}


def _composite_policy(policy: Any, was: Any, path: str) -> list[InvalidField]:
    """Of a group, it never changes; of a template, its numbers may."""
    return _policy_check("minGroupCount")(policy, _NEW, path) if was is _NEW else [errors.immutable(path, None)]


_COMPOSITE_FIELDS: Mapping[str, FieldCheck] = {
    "parentCompositePodGroupName": _fixed(_subdomain),
    "workloadRef": _fixed(_template_errors, is_required=True),
    "schedulingPolicy": _composite_policy,
    "schedulingConstraints": _fixed(constraints_errors),
    **_PRIORITY,
}


def _set_defaults(group: Object) -> None:
    group["spec"].setdefault("disruptionMode", {"single": {}})
    group["spec"].setdefault("preemptionPolicy", _PREEMPTS)


def _create_pod_group(group: Object, ctx: WriteContext) -> None:
    protect(group, PROTECTION_FINALIZER)
    _set_priority(group, ctx, "podgroups", "pod group")


def _create_composite(group: Object, ctx: WriteContext) -> None:
    _set_priority(group, ctx, "compositepodgroups", "composite pod group")


def _set_priority(group: Object, ctx: WriteContext, plural: str, words: str) -> None:
    chosen = set_priority(group, ctx, plural, words)
    given, computed = group["spec"]["preemptionPolicy"], (chosen or {}).get("preemptionPolicy") or _PREEMPTS
    if given != computed:
        why = (
            f"the string value of PreemptionPolicy ({given}) must not be provided in {words} spec; "
            f"priority admission controller computed {computed} from the given PriorityClass name"
        )
        raise refused(group, why, plural)


def _validate_pod_group(group: Object, old: Object | None) -> list[InvalidField]:
    spec = group["spec"]
    found = _spec_errors(spec, _NEW if old is None else old["spec"], "spec", _POD_GROUP_FIELDS)
    if old is None and spec.get("parentCompositePodGroupName") is not None and spec.get("workloadRef") is None:
        found.insert(0, errors.required("spec.workloadRef", "must be set when parentCompositePodGroupName is set"))
    return found


def _validate_composite(group: Object, old: Object | None) -> list[InvalidField]:
    return _spec_errors(group["spec"], _NEW if old is None else old["spec"], "spec", _COMPOSITE_FIELDS)


def _validate_composite_status(group: Object, _: Object) -> list[InvalidField]:
    conditions = group.get("status", {}).get("conditions") or []
    return condition_errors(conditions, "status.conditions", names_missing=True)


def _validate_status(group: Object, old: Object) -> list[InvalidField]:
    return _validate_composite_status(group, old) + claim_status_errors(group)


# -- workloads ---------------------------------------------------------------------------------------------------------

_TEMPLATES, _COMPOSITES = "podGroupTemplates", "compositePodGroupTemplates"


def _validate_workload(workload: Object, old: Object | None) -> list[InvalidField]:
    spec = workload["spec"]
    before = _NEW if old is None else old["spec"]
    found = _tree_errors(spec)
    if old is None or any(bool(spec.get(name)) != bool(before.get(name)) for name in (_TEMPLATES, _COMPOSITES)):
        given = {name: spec[name] for name in (_TEMPLATES, _COMPOSITES) if spec.get(name)}
        found += union_errors(given, (_TEMPLATES, _COMPOSITES), "spec")
    return found + _spec_errors(spec, before, "spec", _WORKLOAD_FIELDS)


def _list_check(fields: Callable[[], Mapping[str, FieldCheck]]) -> FieldCheck:
    """Of templates, which are told apart by their names, and none of which comes or goes later."""

    def checked(templates: Any, was: Any, path: str) -> list[InvalidField]:
        templates = templates or []
        if was is _NEW:
            known: Mapping[str, Object] = {}
        else:
            known = {one.get("name", ""): one for one in was or []}
            names = {one.get("name", "") for one in templates}
            changed = [
                errors.forbidden(errors.index(path, position), "item may not be added")
                for position, one in enumerate(templates)
                if one.get("name", "") not in known
            ]
            changed += [errors.forbidden(path, "item may not be removed") for name in known if name not in names]
            if changed:
                return changed

        def template_errors(template: Object, at: str) -> list[InvalidField]:
            return _spec_errors(template, known.get(template.get("name", ""), _NEW), at, fields())

        return named_list_errors(templates, MOST_TEMPLATES, template_errors, path)

    return checked


def _name_check(name: Any, _: Any, path: str) -> list[InvalidField]:
    return name_errors(name, dns_label_errors, path)


_TEMPLATE_FIELDS: Mapping[str, FieldCheck] = {"name": _name_check, **_OF_GROUP}
_LISTS: Mapping[str, FieldCheck] = {
    _TEMPLATES: _list_check(lambda: _TEMPLATE_FIELDS),
    _COMPOSITES: _list_check(lambda: _COMPOSITE_TEMPLATE_FIELDS),
}
_COMPOSITE_TEMPLATE_FIELDS: Mapping[str, FieldCheck] = {
    "name": _name_check,
    "schedulingPolicy": _policy_check("minGroupCount"),
    "schedulingConstraints": _fixed(constraints_errors),
    **_PRIORITY,
    **_LISTS,
}
_WORKLOAD_FIELDS: Mapping[str, FieldCheck] = {"controllerRef": _fixed(controller_errors), **_LISTS}


def _tree_errors(spec: Object) -> list[InvalidField]:
    """Names that come twice, a tree that is too deep, priorities that differ, and templates without children."""
    found = _repeated_names(spec, "spec", set())
    composites = spec.get(_COMPOSITES) or []
    for position, template in enumerate(composites):
        if _depth(template) > _DEEPEST - 1:
            at = errors.index(f"spec.{_COMPOSITES}", position)
            why = f"maximum template hierarchy depth is {_DEEPEST}"
            found.append(errors.invalid(at, template.get(_COMPOSITES), why))
    found += _priority_errors(spec)
    for position, template in enumerate(composites):
        found += _childless(template, errors.index(f"spec.{_COMPOSITES}", position))
    return found


def _repeated_names(parent: Object, path: str, known: set[str]) -> list[InvalidField]:
    """Not those of one list: the list itself finds them."""
    found = []
    for kind in (_TEMPLATES, _COMPOSITES):
        children = parent.get(kind) or []
        for position, child in enumerate(children):
            if child.get("name", "") in known:
                at = errors.index(f"{path}.{kind}", position)
                found.append(errors.duplicate(f"{at}.name", child.get("name", "")))
        known |= {child.get("name", "") for child in children}
    for position, child in enumerate(parent.get(_COMPOSITES) or []):
        found += _repeated_names(child, errors.index(f"{path}.{_COMPOSITES}", position), known)
    return found


def _depth(template: Object) -> int:
    return 1 + max((_depth(child) for child in template.get(_COMPOSITES) or []), default=0)


def _priority_errors(spec: Object) -> list[InvalidField]:
    first: list[tuple[str, Any]] = []
    for is_plain, template in _all_templates(spec):
        said = (template.get("priorityClassName", ""), template.get("priority"))
        first = first or [said]
        if said != first[0]:
            why = "detected multiple priority configurations"
            if not is_plain:
                why = "all priority and priorityClassName values must be identical, detected multiple values"
            return [errors.invalid("spec", None, why)]
    return []


def _all_templates(spec: Object) -> Iterator[tuple[bool, Object]]:
    """Each with whether it stands directly in the workload as a template of pod groups."""
    yield from ((True, template) for template in spec.get(_TEMPLATES) or [])
    for composite in spec.get(_COMPOSITES) or []:
        yield False, composite
        yield from ((False, template) for _, template in _all_templates({_COMPOSITES: composite.get(_COMPOSITES)}))
        yield from ((False, template) for template in composite.get(_TEMPLATES) or [])


def _childless(template: Object, path: str) -> list[InvalidField]:
    found = []
    if not template.get(_TEMPLATES) and not template.get(_COMPOSITES):
        why = "must have at least one child PodGroupTemplate or CompositePodGroupTemplate"
        found.append(errors.invalid(path, template.get("name", ""), why))
    for position, child in enumerate(template.get(_COMPOSITES) or []):
        found += _childless(child, errors.index(f"{path}.{_COMPOSITES}", position))
    return found


# -- what is kept from v1.36 -------------------------------------------------------------------------------------------


def group_from_alpha(group: Object) -> Object:
    """A PodGroup that v1.36 stored, in the fields of today; any other as it is."""
    spec = group.get("spec", {})
    if "podGroupTemplateRef" not in spec and not isinstance(spec.get("disruptionMode"), str):
        return group
    spec = {"preemptionPolicy": _PREEMPTS, **_mode_from_alpha(spec)}
    named = (spec.pop("podGroupTemplateRef", None) or {}).get("workload")
    if named is not None:
        reference = {"workloadName": named["workloadName"], "templateName": named["podGroupTemplateName"]}
        spec.setdefault("workloadRef", reference)
    return {**group, "spec": spec}


def workload_from_alpha(workload: Object) -> Object:
    spec = workload.get("spec", {})
    if not any(isinstance(one.get("disruptionMode"), str) for one in spec.get(_TEMPLATES) or []):
        return workload
    return {**workload, "spec": {**spec, _TEMPLATES: [_mode_from_alpha(one) for one in spec[_TEMPLATES]]}}


def _mode_from_alpha(spec: Object) -> Object:
    mode = spec.get("disruptionMode")
    if not isinstance(mode, str):
        return dict(spec)
    return {**spec, "disruptionMode": {"all" if mode == MODE_POD_GROUP else "single": {}}}


# -- rules -------------------------------------------------------------------------------------------------------------

_POD_GROUP_SPEC = "io.k8s.api.scheduling.v1beta1.PodGroupSpec"
_COMPOSITE_SPEC = "io.k8s.api.scheduling.v1alpha3.CompositePodGroupSpec"

POD_GROUP = KindRules(
    set_defaults=_set_defaults,
    prepare_create=_create_pod_group,
    validate=_validate_pod_group,
    validate_through={"status": _validate_status},
    columns=group_columns(_POD_GROUP_SPEC, _WORKLOAD_NAME, POD_GROUP_INITIALLY_SCHEDULED),
)
COMPOSITE_POD_GROUP = KindRules(
    set_defaults=_set_defaults,
    prepare_create=_create_composite,
    validate=_validate_composite,
    validate_through={"status": _validate_composite_status},
    columns=(
        NAME,
        described("Policy", policy_name, _COMPOSITE_SPEC, "schedulingPolicy"),
        TableColumn("Workload", dig(_WORKLOAD_NAME, "<none>"), description="Name of the referenced Workload object"),
        AGE,
    ),
)
WORKLOAD = KindRules(validate=_validate_workload, columns=(NAME, AGE))
