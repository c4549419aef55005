"""Priority classes, runtime classes and disruption budgets; `pod_groups` has the rules of PodGroup and Workload."""

from __future__ import annotations

from typing import Any

from kubesched.playground.apiserver.errors import StatusError
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds import workload_parts as checks
from kubesched.playground.apiserver.kinds.field_errors import dns_label_errors
from kubesched.playground.apiserver.kinds.metadata import condition_errors, label_errors, label_selector_errors
from kubesched.playground.apiserver.kinds.pods.placement import toleration_errors
from kubesched.playground.apiserver.kinds.serving import AGE, NAME, KindRules, described, dig
from kubesched.playground.apiserver.served_resource import InvalidField, Object, TableColumn, WriteContext

_GROUP = "scheduling.k8s.io"
_PRIORITY_CLASS = "io.k8s.api.scheduling.v1.PriorityClass"
_MOST_PRIORITY = 1_000_000_000
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
