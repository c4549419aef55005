"""Horizontal pod autoscalers: defaults, validation, the older version that knows only the CPU, and their table.

Looked at are the bounds, what is scaled, the metrics and the pace. Targets are shown as kubectl shows them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from kubesched.k8s.model import quantity
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.field_errors import dns_label_errors, path_segment_errors
from kubesched.playground.apiserver.kinds.serving import AGE, NAME, KindRules, described, dig
from kubesched.playground.apiserver.served_resource import InvalidField, Object

_LONGEST_WINDOW_S = 3600
_LONGEST_PERIOD_S = 1800
_SELECTIONS = ("Disabled", "Max", "Min")
_POLICIES = ("Percent", "Pods")
_SOURCES = ("ContainerResource", "External", "Object", "Pods", "Resource")
_TARGETS = ("Utilization", "Value", "AverageValue")
_CHECKED_SOURCES = ("object", "external", "pods", "resource", "containerResource")  # in the order of the real server


def autoscaler_errors(obj: Object, _: Object | None) -> list[InvalidField]:
    spec = obj["spec"]
    least, most = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    found: list[InvalidField] = []
    if least is not None and least < 1:
        found.append(errors.invalid("spec.minReplicas", least, "must be greater than or equal to 1"))
    if most == 0:
        found.append(errors.required("spec.maxReplicas", "must be set and greater than 0"))
    elif most < 0:
        found.append(errors.invalid("spec.maxReplicas", most, "must be greater than or equal to 1"))
    if least is not None and most < least:
        found.append(errors.invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    found += _reference_errors(spec.get("scaleTargetRef", {}), "spec.scaleTargetRef")
    metrics = spec.get("metrics") or []
    for position, metric in enumerate(metrics):
        found += _metric_errors(metric, errors.index("spec.metrics", position))
    if least == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
        why = "must specify at least one Object or External metric to support scaling to zero replicas"
        found.append(errors.forbidden("spec.metrics", why))
    behavior = spec.get("behavior") or {}
    for direction in ("scaleUp", "scaleDown"):
        if behavior.get(direction) is not None:
            found += _rule_errors(behavior[direction], f"spec.behavior.{direction}")
    return found


def old_autoscaler_errors(obj: Object, old: Object | None) -> list[InvalidField]:
    """The same of autoscaling/v1, whose one metric is checked as the metric that it stands for."""
    found = autoscaler_errors(obj, old)
    percent = obj["spec"].get("targetCPUUtilizationPercentage")
    if percent is not None and percent < 1:
        at = "spec.metrics[0].resource.target.averageUtilization"
        found.append(errors.invalid(at, percent, "must be greater than 0"))
    return found


def _reference_errors(reference: Object, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for name in ("kind", "name"):
        at, value = f"{path}.{name}", reference.get(name, "")
        found += errors.all_invalid(at, value, path_segment_errors(value)) if value else [errors.required(at)]
    version = reference.get("apiVersion", "")
    if version.count("/") > 1:
        found.append(errors.invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}"))
    return found


def _rule_errors(rules: Object, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    at, window_s = f"{path}.stabilizationWindowSeconds", rules.get("stabilizationWindowSeconds")
    if window_s is not None and window_s < 0:
        found.append(errors.invalid(at, window_s, "must be greater than or equal to zero"))
    if window_s is not None and window_s > _LONGEST_WINDOW_S:
        found.append(errors.invalid(at, window_s, f"must be less than or equal to {_LONGEST_WINDOW_S}"))
    selection = rules.get("selectPolicy")
    if selection is not None and selection not in _SELECTIONS:
        found.append(errors.unsupported(f"{path}.selectPolicy", selection, _SELECTIONS))
    policies = rules.get("policies") or []
    if not policies:
        found.append(errors.required(f"{path}.policies", "must specify at least one Policy"))
    for position, policy in enumerate(policies):
        found += _policy_errors(policy, errors.index(f"{path}.policies", position))
    tolerance = rules.get("tolerance")
    if tolerance is not None and quantity.parse(tolerance).nanos < 0:
        why = "must be greater than or equal to 0"
        found.append(errors.invalid(f"{path}.tolerance", tolerance, why))
    return found


def _policy_errors(policy: Object, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    if policy.get("type") not in _POLICIES:
        found.append(errors.unsupported(f"{path}.type", policy.get("type", ""), _POLICIES))
    found += [
        errors.invalid(f"{path}.{name}", policy.get(name, 0), "must be greater than zero")
        for name in ("value", "periodSeconds")
        if policy.get(name, 0) <= 0
    ]
    period_s = policy.get("periodSeconds", 0)
    if period_s > _LONGEST_PERIOD_S:
        why = f"must be less than or equal to {_LONGEST_PERIOD_S}"
        found.append(errors.invalid(f"{path}.periodSeconds", period_s, why))
    return found


def _metric_errors(metric: Object, path: str) -> list[InvalidField]:
    """One metric names one source, that of its type; only the first source is looked into."""
    sort = metric.get("type", "")
    found: list[InvalidField] = []
    if not sort:
        found.append(errors.required(f"{path}.type", "must specify a metric source type"))
    wrong_type = [] if sort in _SOURCES else [errors.unsupported(f"{path}.type", sort, _SOURCES)]
    found += wrong_type
    present = [name for name in _CHECKED_SOURCES if metric.get(name) is not None]
    if present:
        found += _SOURCE_CHECKS[present[0]](metric[present[0]], f"{path}.{present[0]}")
    wanted = sort[:1].lower() + sort[1:]
    if not wrong_type and metric.get(wanted) is None:
        why = "must populate information for the given metric source"
        found.append(errors.required(f"{path}.{wanted}", why))
    found += wrong_type
    if len(present) != 1:
        why = "must populate the given metric source only"
        found += [errors.forbidden(f"{path}.{name}", why) for name in present if name != wanted]
    return found


def _identifier_errors(metric: Object, path: str) -> list[InvalidField]:
    name = metric.get("name", "")
    if not name:
        return [errors.required(f"{path}.name", "must specify a metric name")]
    return errors.all_invalid(f"{path}.name", name, path_segment_errors(name))


def _target_errors(target: Object, path: str) -> list[InvalidField]:
    sort = target.get("type", "")
    found: list[InvalidField] = []
    if not sort:
        found.append(errors.required(f"{path}.type", "must specify a metric target type"))
    if sort not in _TARGETS:
        found.append(errors.invalid(f"{path}.type", sort, "must be either Utilization, Value, or AverageValue"))
    found += [
        errors.invalid(f"{path}.{name}", target[name], "must be positive")
        for name in ("value", "averageValue")
        if target.get(name) is not None and quantity.parse(target[name]).nanos <= 0
    ]
    percent = target.get("averageUtilization")
    if percent is not None and percent < 1:
        found.append(errors.invalid(f"{path}.averageUtilization", percent, "must be greater than 0"))
    return found


def _object_errors(source: Object, path: str) -> list[InvalidField]:
    found = _reference_errors(source.get("describedObject", {}), f"{path}.describedObject")
    found += _identifier_errors(source.get("metric", {}), f"{path}.metric")
    target = source.get("target", {})
    found += _target_errors(target, f"{path}.target")
    if target.get("value") is None and target.get("averageValue") is None:
        why = "must set either a target value or averageValue"
        found.append(errors.required(f"{path}.target.averageValue", why))
    return found


def _external_errors(source: Object, path: str) -> list[InvalidField]:
    target = source.get("target", {})
    found = _identifier_errors(source.get("metric", {}), f"{path}.metric") + _target_errors(target, f"{path}.target")
    if target.get("value") is None and target.get("averageValue") is None:
        why = "must set either a target value for metric or a per-pod target"
        found.append(errors.required(f"{path}.target.averageValue", why))
    if target.get("value") is not None and target.get("averageValue") is not None:
        why = "may not set both a target value for metric and a per-pod target"
        found.append(errors.forbidden(f"{path}.target.value", why))
    return found


def _pods_errors(source: Object, path: str) -> list[InvalidField]:
    target = source.get("target", {})
    found = _identifier_errors(source.get("metric", {}), f"{path}.metric") + _target_errors(target, f"{path}.target")
    if target.get("averageValue") is None:
        found.append(errors.required(f"{path}.target.averageValue", "must specify a positive target averageValue"))
    return found


def _resource_errors(source: Object, path: str) -> list[InvalidField]:
    found = [] if source.get("name") else [errors.required(f"{path}.name", "must specify a resource name")]
    return found + _resource_target_errors(source.get("target", {}), f"{path}.target")


def _container_errors(source: Object, path: str) -> list[InvalidField]:
    found = [] if source.get("name") else [errors.required(f"{path}.name", "must specify a resource name")]
    container, at = source.get("container", ""), f"{path}.container"
    found += (
        errors.all_invalid(at, container, dns_label_errors(container))
        if container
        else [errors.required(at, "must specify a container")]
    )
    return found + _resource_target_errors(source.get("target", {}), f"{path}.target")


def _resource_target_errors(target: Object, path: str) -> list[InvalidField]:
    found = _target_errors(target, path)
    has_percent, has_value = target.get("averageUtilization") is not None, target.get("averageValue") is not None
    if not has_percent and not has_value:
        why = "must set either a target raw value or a target utilization"
        found.append(errors.required(f"{path}.averageUtilization", why))
    if has_percent and has_value:
        why = "may not set both a target raw value and a target utilization"
        found.append(errors.forbidden(f"{path}.averageValue", why))
    return found


_SOURCE_CHECKS: dict[str, Callable[[Object, str], list[InvalidField]]] = {
    "object": _object_errors,
    "external": _external_errors,
    "pods": _pods_errors,
    "resource": _resource_errors,
    "containerResource": _container_errors,
}


_HPA = "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler"
_DEFAULT_CPU_PERCENT = 80
_SHOWN_METRICS = 2
_SCALE_UP = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_SCALE_DOWN = {"selectPolicy": "Max", "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}]}


def _set_defaults(obj: Object) -> None:
    spec = obj["spec"]
    spec.setdefault("minReplicas", 1)
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": _DEFAULT_CPU_PERCENT}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    behavior = spec.get("behavior")
    if behavior is not None:
        for direction, rules in (("scaleUp", _SCALE_UP), ("scaleDown", _SCALE_DOWN)):
            behavior[direction] = {**copy.deepcopy(rules), **behavior.get(direction, {})}


def _set_old_defaults(obj: Object) -> None:
    obj["spec"].setdefault("minReplicas", 1)
    obj["spec"].setdefault("targetCPUUtilizationPercentage", _DEFAULT_CPU_PERCENT)


def to_v2(obj: Object) -> Object:
    """autoscaling/v1 to the stored form: the one CPU target becomes a metric."""
    stored = copy.deepcopy(obj)
    percent = stored["spec"].pop("targetCPUUtilizationPercentage", None)
    if percent is not None:
        target = {"type": "Utilization", "averageUtilization": percent}
        stored["spec"]["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    current = stored["status"].pop("currentCPUUtilizationPercentage", None)
    stored["status"]["currentMetrics"] = None
    if current is not None:
        reading = {"name": "cpu", "current": {"averageUtilization": current}}
        stored["status"]["currentMetrics"] = [{"type": "Resource", "resource": reading}]
    return stored


def from_v2(obj: Object) -> Object:
    """The stored form as autoscaling/v1, which knows only the CPU."""
    old = copy.deepcopy(obj)
    for metric in old["spec"].pop("metrics", []):
        if metric.get("resource", {}).get("name") == "cpu":
            old["spec"]["targetCPUUtilizationPercentage"] = metric["resource"]["target"].get("averageUtilization")
    for metric in old["status"].pop("currentMetrics", None) or []:
        if metric.get("resource", {}).get("name") == "cpu":
            old["status"]["currentCPUUtilizationPercentage"] = metric["resource"]["current"].get("averageUtilization")
    old["status"].setdefault("currentReplicas", 0)
    old["status"].pop("conditions", None)
    old["spec"].pop("behavior", None)
    return old


def _reference(obj: Object) -> str:
    reference = obj["spec"].get("scaleTargetRef", {})
    return f"{reference.get('kind', '')}/{reference.get('name', '')}"


def _targets(obj: Object) -> str:
    metrics, readings = obj["spec"].get("metrics") or [], dig("status.currentMetrics", None)(obj) or []
    if not metrics:
        percent = obj["spec"].get("targetCPUUtilizationPercentage")
        current = dig("status.currentCPUUtilizationPercentage", None)(obj)
        if percent is None:
            return "<none>"
        return f"cpu: {'<unknown>' if current is None else f'{current}%'}/{percent}%"
    shown = [_metric(metric, readings[at] if at < len(readings) else {}) for at, metric in enumerate(metrics)]
    n_more = len(shown) - _SHOWN_METRICS
    return ", ".join(shown[:_SHOWN_METRICS]) + (f" + {n_more} more..." if n_more > 0 else "")


def _metric(metric: Object, reading: Object) -> str:
    sort = metric.get("type", "")
    field = sort[:1].lower() + sort[1:]
    if field not in ("external", "pods", "object", "resource", "containerResource"):
        return "<unknown type>"
    source, seen = metric.get(field, {}), reading.get(field)
    target, current = source.get("target", {}), (seen or {}).get("current", {})
    if field in ("resource", "containerResource"):
        return f"{source.get('name', '')}: {_resource_target(target, current, seen is not None)}"
    if field == "pods":
        return f"{_shown(seen, current.get('averageValue', '0'))}/{target.get('averageValue', '0')}"
    if "averageValue" in target:
        return f"{current.get('averageValue', '<unknown>')}/{target['averageValue']} (avg)"
    return f"{_shown(seen, current.get('value', '0'))}/{target.get('value', '0')}"


def _resource_target(target: Object, current: Object, is_seen: bool) -> str:
    if "averageValue" in target:
        return f"{current.get('averageValue', '0') if is_seen else '<unknown>'}/{target['averageValue']}"
    percents = [
        f"{percent}%" if percent is not None else unknown
        for percent, unknown in (
            (current.get("averageUtilization"), "<unknown>"),
            (target.get("averageUtilization"), "<auto>"),
        )
    ]
    return "/".join(percents)


def _shown(seen: Any, value: str) -> str:
    return "<unknown>" if seen is None else value


AUTOSCALER = KindRules(
    validate=autoscaler_errors,
    set_defaults=_set_defaults,
    columns=(
        NAME,
        described("Reference", _reference, _HPA + "Spec", "scaleTargetRef"),
        described("Targets", _targets, _HPA + "Spec", "metrics"),
        described("MinPods", lambda obj: str(dig("spec.minReplicas", "<unset>")(obj)), _HPA + "Spec", "minReplicas"),
        described("MaxPods", dig("spec.maxReplicas", 0), _HPA + "Spec", "maxReplicas"),
        described("Replicas", dig("status.currentReplicas", 0), _HPA + "Status", "currentReplicas"),
        AGE,
    ),
)
OLD_AUTOSCALER = KindRules(validate=old_autoscaler_errors, set_defaults=_set_old_defaults, columns=AUTOSCALER.columns)
