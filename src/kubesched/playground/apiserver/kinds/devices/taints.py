"""Taints of devices, what tolerates them, and the rules that put taints on devices from outside (DeviceTaintRule)."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.conditions import condition_errors
from kubesched.playground.apiserver.kinds.devices.names import (
    label_name_errors,
    label_value_errors,
    pool_name_errors,
    short_name_errors,
)
from kubesched.playground.apiserver.kinds.name_syntax import driver_name_errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object, WriteContext

_EFFECTS = ("NoExecute", "NoSchedule", "None")
_OPERATORS = ("Equal", "Exists")
_MOST_CONDITIONS = 8


def taint_errors(taint: Object, path: str, old: Object | None = None) -> list[InvalidField]:
    """An effect that was accepted before is not looked at again."""
    effect = taint.get("effect", "")
    found = label_name_errors(taint.get("key", ""), f"{path}.key")
    if taint.get("value"):
        found += label_value_errors(taint["value"], f"{path}.value")
    if old is not None and old.get("effect", "") == effect:
        return found
    if not effect:
        found.append(errors.required(f"{path}.effect"))
    elif effect not in _EFFECTS:
        found.append(errors.unsupported(f"{path}.effect", effect, _EFFECTS))
    return found


def set_toleration_defaults(tolerations: Sequence[Object]) -> None:
    for toleration in tolerations:
        toleration["operator"] = toleration.get("operator") or "Equal"


def toleration_errors(tolerations: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for position, toleration in enumerate(tolerations):
        found += _one_toleration_errors(toleration, errors.index(path, position))
    return found


def _one_toleration_errors(toleration: Object, path: str) -> list[InvalidField]:
    operator, value, effect = (toleration.get(name, "") for name in ("operator", "value", "effect"))
    found = label_name_errors(toleration["key"], f"{path}.key") if toleration.get("key") else []
    if operator == "Exists":
        if value:
            found.append(errors.invalid(f"{path}.value", value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        found += label_value_errors(value, f"{path}.value")
    elif not operator:
        found.append(errors.required(f"{path}.operator"))
    else:
        found.append(errors.unsupported(f"{path}.operator", operator, _OPERATORS))
    if effect and effect not in _EFFECTS:
        found.append(errors.unsupported(f"{path}.effect", effect, _EFFECTS))
    return found


def rule_errors(rule: Object, old: Object | None) -> list[InvalidField]:
    """A DeviceTaintRule."""
    spec, at = rule["spec"], "spec.deviceSelector"
    selector = spec.get("deviceSelector", {})
    found: list[InvalidField] = []
    for name, check in (("driver", driver_name_errors), ("pool", pool_name_errors), ("device", short_name_errors)):
        if name in selector:
            found += check(selector[name], f"{at}.{name}")
    return found + taint_errors(spec.get("taint", {}), "spec.taint", old["spec"].get("taint", {}) if old else None)


def rule_status_errors(rule: Object, _: Object) -> list[InvalidField]:
    conditions = rule.get("status", {}).get("conditions") or []
    found = condition_errors(conditions, "status.conditions")
    if len(conditions) > _MOST_CONDITIONS:
        found.append(errors.too_many("status.conditions", len(conditions), _MOST_CONDITIONS))
    return found


def set_rule_times(rule: Object, now: str) -> None:
    rule["spec"].setdefault("taint", {}).setdefault("timeAdded", now)


def update_rule(rule: Object, old: Object, ctx: WriteContext) -> None:
    """The time says since when the taint has its effect: another one begins now, unless the client says otherwise."""
    if ctx.subresource:
        return
    taint, before = rule["spec"].get("taint", {}), old["spec"].get("taint", {})
    if taint.get("effect") != before.get("effect") and taint.get("timeAdded") == before.get("timeAdded"):
        taint["timeAdded"] = ctx.now
