"""Horizontal pod autoscalers: defaults, the older version that knows only the CPU, targets as kubectl shows them."""

from __future__ import annotations

import copy
from typing import Any

from kubesched.playground.apiserver.kinds.autoscaler_checks import autoscaler_errors, old_autoscaler_errors
from kubesched.playground.apiserver.kinds.serving import KindRules
from kubesched.playground.apiserver.kinds.table_columns import AGE, NAME, described, dig
from kubesched.playground.apiserver.served_resource import Object

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
