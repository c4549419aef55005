"""What tells a scheduler about pods: pod groups and workloads, priority and runtime classes, disruption budgets.

Pod groups and workloads are those of scheduling.k8s.io/v1alpha2: what is wrong with them, and how admission fills in
new ones. All their feature gates count as on. The spec of both is fixed once it is written, so an update is asked for
nothing but changes; the real server says of none of them which value was sent.

Next: `next_pod_groups` for those of v1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kubesched.k8s.model.scheduling import POD_GROUP_SCHEDULED, PROTECTION_FINALIZER
from kubesched.k8s.model.selectors import label_key_errors
from kubesched.playground.apiserver.errors import StatusError
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds import workloads as checks
from kubesched.playground.apiserver.kinds.field_errors import (
    NameRule,
    dns_label_errors,
    dns_subdomain_errors,
    path_segment_errors,
)
from kubesched.playground.apiserver.kinds.metadata import condition_errors, label_errors, label_selector_errors, protect
from kubesched.playground.apiserver.kinds.pods.admission import priority_class_of
from kubesched.playground.apiserver.kinds.pods.placement import toleration_errors
from kubesched.playground.apiserver.kinds.serving import AGE, NAME, KindRules, described, dig
from kubesched.playground.apiserver.served_resource import InvalidField, Object, TableColumn, WriteContext

_GROUP = "scheduling.k8s.io"
_WORKLOADS = f"workloads.{_GROUP}"
_MOST_PRIORITY = 1_000_000_000
MOST_TEMPLATES = 8
_MOST_CLAIMS = 4
_WORKLOAD_NAME = "spec.podGroupTemplateRef.workload.workloadName"
_MODES = ("Pod", "PodGroup")
_GROUP_FIELDS = (
    "podGroupTemplateRef",
    "schedulingPolicy",
    "schedulingConstraints",
    "resourceClaims",
    "disruptionMode",
    "priorityClassName",
    "priority",
)

ItemRule = Callable[[Object, str], list[InvalidField]]


def _set_group_defaults(group: Object) -> None:
    group["spec"].setdefault("disruptionMode", "Pod")  # also where no spec was sent at all


def _create_pod_group(group: Object, ctx: WriteContext) -> None:
    protect(group, PROTECTION_FINALIZER)
    set_priority(group, ctx)


def set_priority(
    group: Object, ctx: WriteContext, plural: str = "podgroups", words: str = "pod group"
) -> Object | None:
    """That of its class, which is returned."""
    spec = group["spec"]
    try:
        chosen = priority_class_of(spec, ctx)
    except LookupError as error:
        raise refused(group, str(error), plural) from None
    computed = chosen["value"] if chosen is not None else 0
    if spec.get("priority", computed) != computed:
        why = (
            f"priority set in the {words} ({spec['priority']}) must match the priority computed ({computed}) "
            "based on the priority class set in the spec"
        )
        raise refused(group, why, plural)
    spec["priority"] = computed
    return chosen


def _admit_pod_group(group: Object, old: Object | None, ctx: WriteContext) -> None:
    """A group that says which template it was made from must be right about that."""
    reference = (group["spec"].get("podGroupTemplateRef") or {}).get("workload")
    if old is not None or reference is None:
        return
    name, template = reference["workloadName"], reference["podGroupTemplateName"]
    workload = ctx.lookup.get(_WORKLOADS, group["metadata"].get("namespace", ""), name)
    if workload is None:
        raise refused(group, f'PodGroup rejected: Workload "{name}" not found')
    if workload["metadata"].get("deletionTimestamp"):
        raise refused(group, f'PodGroup rejected: Workload "{name}" is being deleted')
    if all(one.get("name") != template for one in workload["spec"]["podGroupTemplates"]):
        raise refused(group, f'PodGroup rejected: PodGroupTemplate "{template}" not found in Workload "{name}"')


def refused(group: Object, why: str, plural: str = "podgroups") -> StatusError:
    name = group["metadata"].get("name", "")
    message = f'{plural}.{_GROUP} "{name}" is forbidden: {why}'
    return StatusError(403, "Forbidden", message, {"name": name, "group": _GROUP, "kind": plural})


def _validate_pod_group(group: Object, old: Object | None) -> list[InvalidField]:
    spec = group["spec"]
    if old is not None:
        return _changed_errors(spec, old["spec"], _GROUP_FIELDS)
    found: list[InvalidField] = []
    reference = spec.get("podGroupTemplateRef")
    if reference is not None:
        at = "spec.podGroupTemplateRef"
        found += union_errors(reference, ("workload",), at)
        named = reference.get("workload")
        if named is not None:
            found += name_errors(named.get("workloadName"), dns_subdomain_errors, f"{at}.workload.workloadName")
            template = named.get("podGroupTemplateName")
            found += name_errors(template, dns_label_errors, f"{at}.workload.podGroupTemplateName")
    return found + _shared_errors(spec, "spec")


def _validate_workload(workload: Object, old: Object | None) -> list[InvalidField]:
    spec = workload["spec"]
    templates = spec.get("podGroupTemplates") or []
    at = "spec.podGroupTemplates"
    if old is not None:
        found = _changed_errors(spec, old["spec"], ("controllerRef", "podGroupTemplates"))
        return found if templates else [*found, errors.required(at)]
    found = controller_errors(spec["controllerRef"], "spec.controllerRef") if "controllerRef" in spec else []
    if not templates:
        return [*found, errors.required(at)]

    def template_errors(template: Object, place: str) -> list[InvalidField]:
        return name_errors(template.get("name"), dns_label_errors, f"{place}.name") + _shared_errors(template, place)

    return found + named_list_errors(templates, MOST_TEMPLATES, template_errors, at)


def _changed_errors(spec: Object, before: Object, names: Sequence[str]) -> list[InvalidField]:
    return [errors.immutable(f"spec.{name}", None) for name in names if spec.get(name) != before.get(name)]


def controller_errors(reference: Object, path: str) -> list[InvalidField]:
    group = reference.get("apiGroup", "")
    found = errors.all_invalid(f"{path}.apiGroup", group, dns_subdomain_errors(group)) if group else []
    found += name_errors(reference.get("kind"), path_segment_errors, f"{path}.kind")
    return found + name_errors(reference.get("name"), path_segment_errors, f"{path}.name")


def _shared_errors(spec: Object, path: str) -> list[InvalidField]:
    """Of what a group and a template for groups both have."""
    found = _policy_errors(spec.get("schedulingPolicy") or {}, f"{path}.schedulingPolicy")
    found += constraints_errors(spec.get("schedulingConstraints") or {}, f"{path}.schedulingConstraints")
    found += claims_errors(spec.get("resourceClaims") or [], f"{path}.resourceClaims")
    mode, class_name = spec.get("disruptionMode"), spec.get("priorityClassName", "")
    if mode is not None and mode not in _MODES:
        found.append(errors.unsupported(f"{path}.disruptionMode", mode, _MODES))
    if class_name:
        found += errors.all_invalid(f"{path}.priorityClassName", class_name, dns_subdomain_errors(class_name))
    return found + priority_errors(spec.get("priority", 0), f"{path}.priority")


def constraints_errors(constraints: Object, path: str) -> list[InvalidField]:
    topology, at = constraints.get("topology") or [], f"{path}.topology"
    if len(topology) > 1:
        return [errors.too_many(at, len(topology), 1)]
    return name_errors(topology[0].get("key"), label_key_errors, f"{at}[0].key") if topology else []


def claims_errors(claims: Sequence[Object], path: str) -> list[InvalidField]:
    return named_list_errors(claims, _MOST_CLAIMS, _claim_errors, path)


def priority_errors(priority: int, path: str) -> list[InvalidField]:
    if priority <= _MOST_PRIORITY:
        return []
    return [errors.invalid(path, priority, f"must be less than or equal to {_MOST_PRIORITY}")]


def _policy_errors(policy: Object, path: str) -> list[InvalidField]:
    if found := union_errors(policy, ("basic", "gang"), path):
        return found
    count = policy["gang"].get("minCount", 0) if "gang" in policy else 1
    if count == 0:
        return [errors.required(f"{path}.gang.minCount")]
    if count < 0:
        return [errors.invalid(f"{path}.gang.minCount", count, "must be greater than or equal to 1")]
    return []


def _claim_errors(claim: Object, path: str) -> list[InvalidField]:
    members = ("resourceClaimName", "resourceClaimTemplateName")
    found = union_errors(claim, members, path)
    found += name_errors(claim.get("name"), dns_label_errors, f"{path}.name")
    for member in members:
        if member in claim:
            found += errors.all_invalid(f"{path}.{member}", claim[member], dns_subdomain_errors(claim[member]))
    return found


def _validate_group_status(group: Object, _: Object) -> list[InvalidField]:
    conditions = (group.get("status") or {}).get("conditions") or []
    return condition_errors(conditions, "status.conditions") + claim_status_errors(group)


def claim_status_errors(group: Object) -> list[InvalidField]:
    status = group.get("status") or {}
    found: list[InvalidField] = []
    known = {claim.get("name") for claim in group["spec"].get("resourceClaims") or []}
    claims = status.get("resourceClaimStatuses") or []
    at = "status.resourceClaimStatuses"
    for position, claim in enumerate(claims):
        if claim.get("name", "") not in known:
            why = "must match the name of an entry in `spec.resourceClaims`"
            found.append(errors.invalid(f"{errors.index(at, position)}.name", claim.get("name", ""), why))

    def name_errors(claim: Object, path: str) -> list[InvalidField]:
        name = claim.get("resourceClaimName")
        if name is None:
            return []
        return errors.all_invalid(f"{path}.resourceClaimName", name, dns_subdomain_errors(name))

    return found + named_list_errors(claims, _MOST_CLAIMS, name_errors, at)


def named_list_errors(items: Sequence[Object], most: int, rule: ItemRule, path: str) -> list[InvalidField]:
    """A list in which no two items have the same name, as declarative validation looks at it."""
    if len(items) > most:
        return [errors.too_many(path, len(items), most)]
    found: list[InvalidField] = []
    seen: set[str] = set()
    for position, item in enumerate(items):
        if item.get("name", "") in seen:
            found.append(errors.duplicate(errors.index(path, position), item))
        seen.add(item.get("name", ""))
    for position, item in enumerate(items):
        found += rule(item, errors.index(path, position))
    return found


def union_errors(value: Object, members: Sequence[str], path: str) -> list[InvalidField]:
    given = [member for member in members if value.get(member) is not None]
    if len(given) == 1:
        return []
    which = ", ".join(f"`{member}`" for member in members)
    if not given:
        return [errors.invalid(path, "", f"must specify one of: {which}")]
    return [errors.invalid(path, f"{{{', '.join(given)}}}", f"must specify exactly one of: {which}")]


def name_errors(name: str | None, rule: NameRule, path: str) -> list[InvalidField]:
    return errors.all_invalid(path, name, rule(name)) if name else [errors.required(path)]


def policy_name(group: Object) -> str:
    return "Gang" if dig("spec.schedulingPolicy.gang", None)(group) is not None else "Basic"


def group_columns(spec: str, workload_name: str, scheduled: str) -> tuple[TableColumn, ...]:
    """`spec` is its schema, `scheduled` the type of the condition that says so."""

    def state(group: Object) -> Any:
        conditions = {one["type"]: one for one in group.get("status", {}).get("conditions", [])}
        if "DisruptionTarget" in conditions:
            return conditions["DisruptionTarget"].get("reason", "")
        if scheduled in conditions:
            return "Scheduled" if conditions[scheduled]["status"] == "True" else "Unschedulable"
        return "Pending"

    return (
        NAME,
        described("Policy", policy_name, spec, "schedulingPolicy"),
        TableColumn("Workload", dig(workload_name, "<none>"), description="Name of the referenced Workload object"),
        TableColumn("Status", state, description="Status of the PodGroup"),
        AGE,
    )


POD_GROUP = KindRules(
    set_defaults=_set_group_defaults,
    prepare_create=_create_pod_group,
    validate=_validate_pod_group,
    validate_through={"status": _validate_group_status},
    validate_admission=_admit_pod_group,
    columns=group_columns("io.k8s.api.scheduling.v1alpha2.PodGroupSpec", _WORKLOAD_NAME, POD_GROUP_SCHEDULED),
)
WORKLOAD = KindRules(validate=_validate_workload, columns=(NAME, AGE))


_PRIORITY_CLASS = "io.k8s.api.scheduling.v1.PriorityClass"

_SYSTEM = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_POLICIES = ("PreemptLowerPriority", "Never")


def _set_priority_class_defaults(obj: Object) -> None:
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _create_priority_class(obj: Object, ctx: WriteContext) -> None:
    obj["metadata"]["generation"] = 1  # forever: nothing that is counted can change
    _allow_one_default(obj, ctx)


def _allow_one_default(obj: Object, ctx: WriteContext) -> None:
    if not obj.get("globalDefault"):
        return
    name = obj["metadata"].get("name", "")
    for other in ctx.lookup.list(f"priorityclasses.{_GROUP}"):
        other_name = other["metadata"]["name"]
        if other.get("globalDefault") and other_name != name:
            why = f"PriorityClass {other_name} is already marked as default. Only one default can exist"
            message = f'priorityclasses.{_GROUP} "{name}" is forbidden: {why}'
            raise StatusError(403, "Forbidden", message, {"name": name, "group": _GROUP, "kind": "priorityclasses"})


def _validate_priority_class(obj: Object, old: Object | None) -> list[InvalidField]:
    name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
    if old is not None:
        found = []
        if value != old.get("value", 0):
            found.append(errors.forbidden("value", "may not be changed in an update."))
        if obj.get("preemptionPolicy") != old.get("preemptionPolicy"):
            found.append(errors.immutable("preemptionPolicy", obj.get("preemptionPolicy", "")))
        return found
    found = []
    if name.startswith("system-"):
        if _SYSTEM.get(name) != value:
            why = "priority class names with 'system-' prefix are reserved for system use only. error: "
            found.append(errors.forbidden("metadata.name", f"{why}{name} is not a known system priority class"))
    elif value > _MOST_PRIORITY:
        why = f"maximum allowed value of a user defined priority is {_MOST_PRIORITY}"
        found.append(errors.forbidden("value", why))
    if obj.get("preemptionPolicy") not in _POLICIES:
        found.append(errors.unsupported("preemptionPolicy", obj.get("preemptionPolicy", ""), _POLICIES))
    return found


def _validate_runtime_class(obj: Object, old: Object | None) -> list[InvalidField]:
    handler = obj.get("handler", "")
    if handler:
        found = errors.all_invalid("handler", handler, dns_label_errors(handler))
    else:
        found = [errors.required("handler")]
    scheduling = obj.get("scheduling", {})
    found += label_errors(scheduling.get("nodeSelector", {}), "scheduling.nodeSelector")
    found += toleration_errors(scheduling.get("tolerations", []), "scheduling.tolerations")
    if old is not None and handler != old.get("handler", ""):
        found.append(errors.immutable("handler", handler))
    return found


def _validate_budget(obj: Object, _: Object | None) -> list[InvalidField]:
    spec = obj["spec"]
    lower, upper = spec.get("minAvailable"), spec.get("maxUnavailable")
    found: list[InvalidField] = []
    if lower is not None and upper is not None:
        shown = {
            "MinAvailable": lower,
            "Selector": spec.get("selector"),
            "MaxUnavailable": upper,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        found.append(errors.invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set"))
    for name, value in (("minAvailable", lower), ("maxUnavailable", upper)):
        if value is not None:
            found += checks.int_or_percent_errors(value, f"spec.{name}")
            found += checks.percent_limit_errors(value, f"spec.{name}")
    found += label_selector_errors(spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in ("AlwaysAllow", "IfHealthyBudget"):
        allowed = ("AlwaysAllow", "IfHealthyBudget")
        found.append(errors.unsupported("spec.unhealthyPodEvictionPolicy", policy, allowed))
    return found


def _validate_budget_status(obj: Object, _: Object) -> list[InvalidField]:
    status = obj.get("status", {})
    found = condition_errors(status.get("conditions") or [], "status.conditions")
    for name in ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"):
        if status.get(name, 0) < 0:
            found.append(errors.invalid(f"status.{name}", status[name], "must be greater than or equal to 0"))
    return found


def _text(name: str) -> Any:
    read = dig(f"spec.{name}", "N/A")
    return lambda obj: str(read(obj))


_ALLOWED_TEXT = "Calculated number of pods that may be disrupted at this time."

PRIORITY_CLASS = KindRules(
    set_defaults=_set_priority_class_defaults,
    prepare_create=_create_priority_class,
    prepare_update=lambda obj, _, ctx: _allow_one_default(obj, ctx),
    validate=_validate_priority_class,
    columns=(
        NAME,
        described("Value", dig("value", 0), _PRIORITY_CLASS, "value", type="integer"),
        described("Global-Default", dig("globalDefault", False), _PRIORITY_CLASS, "globalDefault", type="boolean"),
        AGE,
        described("PreemptionPolicy", dig("preemptionPolicy"), _PRIORITY_CLASS, "preemptionPolicy"),
    ),
)
RUNTIME_CLASS = KindRules(
    metadata_again="both",
    validate=_validate_runtime_class,
    columns=(NAME, TableColumn("Handler", dig("handler")), AGE),
)
BUDGET = KindRules(
    metadata_again="none",
    validate=_validate_budget,
    validate_through={"status": _validate_budget_status},
    columns=(
        NAME,
        TableColumn(
            "Min Available", _text("minAvailable"), description="The minimum number of pods that must be available."
        ),
        TableColumn(
            "Max Unavailable",
            _text("maxUnavailable"),
            description="The maximum number of pods that may be unavailable.",
        ),
        TableColumn(
            "Allowed Disruptions", dig("status.disruptionsAllowed", 0), type="integer", description=_ALLOWED_TEXT
        ),
        AGE,
    ),
)
