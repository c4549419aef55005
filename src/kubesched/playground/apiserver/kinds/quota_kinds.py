"""Limit ranges and resource quotas themselves: their defaults, what is wrong with them, their tables.

What they do to others is in ``kubesched.k8s.model.limits`` and in ``verbs/writing.py``.
"""

from __future__ import annotations

from collections.abc import Iterable

from kubesched.k8s.model import limits, quantity
from kubesched.k8s.model.selectors import label_key_errors
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.amounts import (
    QUOTA_RESOURCES,
    amount_errors,
    can_be_overcommitted,
    container_resource_name_errors,
    is_quota_huge_page,
    resource_name_errors,
)
from kubesched.playground.apiserver.kinds.serving import AGE, DEFAULT_COLUMNS, NAME, KindRules, dig
from kubesched.playground.apiserver.served_resource import InvalidField, Object, TableColumn

_REQUEST_TEXT = "Request represents a minimum amount of cpu/memory that a container may consume."
_LIMIT_TEXT = (
    "Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node."
)
_LIMIT_TYPES = ("Pod", "Container", "PersistentVolumeClaim")
_SCOPES_OF_PODS = ("Terminating", "NotTerminating", "NotBestEffort", "PriorityClass", "CrossNamespacePodAffinity")
_POD_RESOURCES = frozenset({"pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"})
_LIMITABLE: dict[str, frozenset[str]] = {
    **dict.fromkeys(_SCOPES_OF_PODS, _POD_RESOURCES),
    "BestEffort": frozenset({"pods"}),
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
"""What a quota in each scope can limit, of the resources that every cluster has."""
_OPPOSITES = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_ONLY_EXISTS = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity")
_ONLY_EXISTS_TEXT = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


# -- limit ranges ------------------------------------------------------------------------------------------------------


def _limit_range_errors(obj: Object, _: Object | None) -> list[InvalidField]:
    found: list[InvalidField] = []
    seen: set[str] = set()
    for position, item in enumerate(obj["spec"].get("limits") or []):
        at, sort = errors.index("spec.limits", position), item.get("type", "")
        wrong = errors.all_invalid(f"{at}.type", sort, label_key_errors(sort))
        if not wrong and "/" not in sort and sort not in _LIMIT_TYPES:
            wrong = [errors.invalid(f"{at}.type", sort, "must be a standard limit type or fully qualified")]
        found += wrong
        if sort in seen:
            found.append(errors.duplicate(f"{at}.type", sort))
        seen.add(sort)
        found += _limit_name_errors(item, sort, at) + _limit_amount_errors(item, at)
    return found


def _limit_name_errors(item: Object, sort: str, at: str) -> list[InvalidField]:
    rule = container_resource_name_errors if sort in ("Pod", "Container") else resource_name_errors
    found: list[InvalidField] = []
    for part in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
        if sort == "Pod" and part.startswith("default"):
            if item.get(part):
                found.append(errors.forbidden(f"{at}.{part}", "may not be specified when `type` is 'Pod'"))
            continue
        for name in sorted(item.get(part, {})):
            found += rule(name, errors.key(f"{at}.{part}", name))
        if part == "defaultRequest" and sort == "PersistentVolumeClaim" and not _bounds_storage(item):
            why = "either minimum or maximum storage value is required, but neither was provided"
            found.append(errors.required(f"{at}.limits", why))
    return found


def _bounds_storage(item: Object) -> bool:
    return "storage" in item.get("min", {}) or "storage" in item.get("max", {})


_IN_ORDER = (
    ("min", "max", "min", "min", "min value {} is greater than max value {}"),
    (
        "min",
        "defaultRequest",
        "defaultRequest",
        "defaultRequest",
        "min value {} is greater than default request value {}",
    ),
    (
        "defaultRequest",
        "max",
        "defaultRequest",
        "defaultRequest",
        "default request value {} is greater than max value {}",
    ),
    (
        *("defaultRequest", "default", "defaultRequest", "defaultRequest"),
        "default request value {} is greater than default limit value {}",
    ),
    ("min", "default", "default", "min", "min value {} is greater than default value {}"),
    ("default", "max", "default", "max", "default value {} is greater than max value {}"),
)
"""(the smaller, the larger, where it is told, which of them is shown, why)"""


def _limit_amount_errors(item: Object, at: str) -> list[InvalidField]:
    parts = (
        "min",
        "max",
        "maxLimitRequestRatio",
        *(() if item.get("type") == "Pod" else ("default", "defaultRequest")),
    )
    given = {part: item.get(part, {}) for part in parts}
    found: list[InvalidField] = []
    for name in sorted({name for amounts in given.values() for name in amounts}):
        texts = {part: amounts[name] for part, amounts in given.items() if name in amounts}
        for small, large, where, shown, why in _IN_ORDER:
            if small in texts and large in texts and quantity.parse(texts[small]) > quantity.parse(texts[large]):
                reason = why.format(texts[small], texts[large])
                found.append(errors.invalid(errors.key(f"{at}.{where}", name), texts[shown], reason))
        found += _ratio_errors(name, texts, at)
        pair = (texts.get("default"), texts.get("defaultRequest"))
        if not can_be_overcommitted(name) and None not in pair and quantity.parse(pair[0]) != quantity.parse(pair[1]):
            why = f"default value {pair[0]} must equal to defaultRequest value {pair[1]} in {name}"
            found.append(errors.invalid(errors.key(f"{at}.defaultRequest", name), pair[1], why))
    return found


def _ratio_errors(name: str, texts: dict[str, str], at: str) -> list[InvalidField]:
    text = texts.get("maxLimitRequestRatio")
    if text is None:
        return []
    where, ratio = errors.key(f"{at}.maxLimitRequestRatio", name), quantity.parse(text)
    found = (
        [errors.invalid(where, text, f"ratio {text} is less than 1")]
        if ratio.value < 1 or ratio.nanos < quantity.NANO
        else []
    )
    if "min" in texts and "max" in texts and quantity.parse(texts["min"]):
        most = quantity.parse(texts["max"]).milli_value / quantity.parse(texts["min"]).milli_value
        if ratio.nanos / quantity.NANO > most:
            found.append(errors.invalid(where, text, f"ratio {text} is greater than max/min = {most:f}"))
    return found


# -- quotas ------------------------------------------------------------------------------------------------------------


def _quota_errors(obj: Object, old: Object | None) -> list[InvalidField]:
    spec = obj["spec"]
    found = _hard_errors(spec.get("hard") or {}, "spec.hard")
    scopes = spec.get("scopes") or []
    for scope in scopes:
        found += _scope_errors(scope, spec, "spec.scopes", scopes, "spec.scopes", scopes)
    found += _opposite_errors(scopes, "spec.scopes", scopes)
    if "scopeSelector" in spec:
        found += _selector_errors(spec)
    if old is not None and set(scopes) != set(old["spec"].get("scopes") or []):
        found.append(errors.immutable("spec.scopes", scopes))
    return found


def _quota_status_errors(obj: Object, _: Object) -> list[InvalidField]:
    status = obj.get("status") or {}
    return [wrong for part in ("hard", "used") for wrong in _hard_errors(status.get(part) or {}, f"status.{part}")]


def _hard_errors(amounts: dict[str, str], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for name, amount in sorted(amounts.items()):
        at = errors.key(path, name)
        found += resource_name_errors(name, at)
        if "/" not in name and not _is_standard(name):
            found.append(errors.invalid(at, name, "must be a standard resource for quota"))
        found += amount_errors(name, amount, at)
    return found


def _is_standard(name: str) -> bool:
    return name in QUOTA_RESOURCES or is_quota_huge_page(name)


def _scope_errors(
    scope: str, spec: Object, unknown_at: str, unknown: object, at: str, shown: object
) -> list[InvalidField]:
    found = [] if scope in _LIMITABLE else [errors.invalid(unknown_at, unknown, "unsupported scope")]
    allowed = _LIMITABLE.get(scope, QUOTA_RESOURCES)
    others = [name for name in spec.get("hard") or {} if _is_standard(name) and name not in allowed]
    return found + [errors.invalid(at, shown, "unsupported scope applied to resource") for _ in others]


def _opposite_errors(scopes: Iterable[str], path: str, shown: object) -> list[InvalidField]:
    named = set(scopes)
    return [errors.invalid(path, shown, "conflicting scopes") for pair in _OPPOSITES if pair <= named]


def _selector_errors(spec: Object) -> list[InvalidField]:
    path = "spec.scopeSelector.matchExpressions"
    found: list[InvalidField] = []
    expressions = spec["scopeSelector"].get("matchExpressions") or []
    for one in expressions:
        scope, operator, values = one.get("scopeName", ""), one.get("operator", ""), one.get("values") or []
        found += _scope_errors(scope, spec, f"{path}.scopeName", scope, path, spec["scopeSelector"])
        if scope in _ONLY_EXISTS and operator != "Exists":
            found.append(errors.invalid(f"{path}.operator", operator, _ONLY_EXISTS_TEXT))
        if operator in ("In", "NotIn"):
            if not values:
                why = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                found.append(errors.required(f"{path}.values", why))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                why = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                found.append(errors.invalid(f"{path}.values", values, why))
        else:
            found.append(errors.invalid(f"{path}.operator", operator, "not a valid selector operator"))
    scopes = [one.get("scopeName", "") for one in expressions]
    return found + _opposite_errors(scopes, path, spec.get("scopes"))


def _quota(obj: Object, of_limits: bool) -> str:
    used = dig("status.used", {})(obj)
    chosen = sorted(name for name in dig("status.hard", {})(obj) if name.startswith("limits") == of_limits)
    return ", ".join(f"{name}: {used.get(name, '0')}/{obj['status']['hard'][name]}" for name in chosen)


LIMIT_RANGE = KindRules(
    metadata_again="all",
    set_defaults=limits.complete,
    validate=_limit_range_errors,
    columns=DEFAULT_COLUMNS,
)
QUOTA = KindRules(
    validate=_quota_errors,
    validate_through={"status": _quota_status_errors},
    columns=(
        NAME,
        TableColumn("Request", lambda obj: _quota(obj, of_limits=False), description=_REQUEST_TEXT),
        TableColumn("Limit", lambda obj: _quota(obj, of_limits=True), description=_LIMIT_TEXT),
        AGE,
    ),
)
