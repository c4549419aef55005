"""Tolerations and taints: what is wrong with them, and how two lists of tolerations become one."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.k8s.model.label_syntax import label_key_errors, label_value_errors
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.served_resource import InvalidField, Object

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_ALL_OPERATORS = ("Equal", "Exists", "Lt", "Gt")


def toleration_errors(tolerations: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    for position, toleration in enumerate(tolerations):
        found += _one_toleration(toleration, errors.index(path, position))
    return found


def _one_toleration(toleration: Object, path: str) -> list[InvalidField]:
    key = toleration.get("key", "")
    operator = toleration.get("operator", "")
    effect = toleration.get("effect", "")
    found: list[InvalidField] = []
    if key:
        found += errors.all_invalid(f"{path}.key", key, label_key_errors(key))
    elif operator != "Exists":
        why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        found.append(errors.invalid(f"{path}.operator", operator, why))
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        found.append(errors.invalid(f"{path}.effect", effect, why))
    found += _operator_errors(operator, toleration.get("value", ""), path)
    if effect and effect not in EFFECTS:
        found.append(errors.unsupported(f"{path}.effect", effect, EFFECTS))
    return found


def _operator_errors(operator: str, value: str, path: str) -> list[InvalidField]:
    at = f"{path}.operator"
    if operator in ("Equal", ""):
        problems = label_value_errors(value)
        return [errors.invalid(at, value, ";".join(problems))] if problems else []
    if operator == "Exists":
        return [errors.invalid(at, value, "value must be empty when `operator` is 'Exists'")] if value else []
    return [errors.unsupported(at, operator, _ALL_OPERATORS if operator in ("Lt", "Gt") else _ALL_OPERATORS[:2])]


def taint_errors(taints: Sequence[Object], path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    seen: set[tuple[str, str]] = set()
    for position, taint in enumerate(taints):
        at = errors.index(path, position)
        key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")
        found += errors.all_invalid(f"{at}.key", key, label_key_errors(key))
        if problems := label_value_errors(value):
            found.append(errors.invalid(f"{at}.value", value, ";".join(problems)))
        if not effect:
            found.append(errors.required(f"{at}.effect"))
        elif effect not in EFFECTS:
            found.append(errors.unsupported(f"{at}.effect", effect, EFFECTS))
        if (key, effect) in seen:
            shown = {"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            repeated = errors.duplicate(at, shown)
            why = f"{repeated.message}: taints must be unique by key and effect pair"
            found.append(InvalidField(repeated.reason, at, why))
        seen.add((key, effect))
    return found


def merge_tolerations(first: Sequence[Object], second: Sequence[Object]) -> list[Object]:
    """Both lists, without what another toleration already covers."""
    everything = [*first, *second]
    merged: list[Object] = []
    for position, one in enumerate(everything):
        if any(_is_superset(other, one) for other in merged):
            continue
        if any(other != one and _is_superset(other, one) for other in everything[position + 1 :]):
            continue
        merged.append(one)
    return merged


def _lasts_as_long(wide: Object, narrow: Object) -> bool:
    if "tolerationSeconds" not in wide:
        return True
    return "tolerationSeconds" in narrow and bool(wide["tolerationSeconds"] >= narrow["tolerationSeconds"])


def _is_superset(wide: Object, narrow: Object) -> bool:
    if wide == narrow:
        return True
    if wide.get("key", "") != narrow.get("key", "") and not (
        wide.get("key", "") == "" and wide.get("operator") == "Exists"
    ):
        return False
    if wide.get("effect", "") not in ("", narrow.get("effect", "")):
        return False
    if wide.get("effect") == "NoExecute" and not _lasts_as_long(wide, narrow):
        return False
    if wide.get("operator", "") in ("Equal", ""):
        return narrow.get("operator", "") in ("Equal", "") and wide.get("value", "") == narrow.get("value", "")
    return wide.get("operator") == "Exists"
