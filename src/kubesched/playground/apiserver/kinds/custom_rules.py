"""Rules in CEL applied to custom resources: an object is walked once; all its rules share a budget, and each has its
own. Read ``compiled_rules.py`` first.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from kubesched.k8s.cel import CelEvaluationError
from kubesched.k8s.cel.errors import COST_EXCEEDED, NO_SUCH_OVERLOAD
from kubesched.k8s.cel.steps import CostMeter
from kubesched.k8s.cel.values import NONE, CelOptional
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.compiled_rules import CompiledRule, RuleNode, cel_value
from kubesched.playground.apiserver.served_resource import InvalidField, Object

OBJECT_BUDGET = 10_000_000
"""What all rules may cost for one object."""

_LONGEST_MESSAGE = 5 * 1024
_NO_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"


class _OutOfBudgetError(Exception):
    """No further rule may run."""


@dataclass(slots=True)
class _Run:
    """One object's way through its rules."""

    has_old: bool
    left: int = OBJECT_BUDGET
    found: list[InvalidField] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def rule_errors(node: RuleNode, new: Object, old: Object | None) -> tuple[list[InvalidField], list[str]]:
    """What the rules find wrong with an object; and of what did not change, as warnings."""
    run = _Run(old is not None)
    with suppress(_OutOfBudgetError):
        _walk(node, new, old, "", run, is_same=False)
    return run.found, run.warnings


def _walk(node: RuleNode, value: Any, old: Any, path: str, run: _Run, *, is_same: bool) -> None:
    if value is None:
        return
    if node.rules:
        _apply(node, value, old, path, run, is_same=is_same)
    for joined in node.all_of:
        _walk(joined, value, old, path, run, is_same=is_same)
    if isinstance(value, list):
        if node.items is not None:
            for position, (item, before) in enumerate(_correlated(value, old, node.schema)):
                at = errors.index(path, position)
                _walk(node.items, item, before, at, run, is_same=is_same or (before is not None and before == item))
    elif isinstance(value, dict):
        before_all = old if isinstance(old, dict) else {}
        for name, part in value.items():
            inner = node.properties.get(name)
            at = errors.child(path, name)
            if inner is None and node.others is not None and name not in (node.schema.get("properties") or {}):
                inner, at = node.others, errors.key(path, name)
            if inner is not None:
                before = before_all.get(name)
                unchanged = is_same or (run.has_old and name in before_all and before == part)
                _walk(inner, part, before, at, run, is_same=unchanged)


def _correlated(value: list[Any], old: Any, schema: Object) -> Iterator[tuple[Any, Any]]:
    """Items with what they were before, which only lists with keys know."""
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    if schema.get("x-kubernetes-list-type") != "map" or not isinstance(old, list):
        yield from ((item, None) for item in value)
        return
    known = {_identity(item, keys): item for item in old}
    for item in value:
        yield item, known.get(_identity(item, keys))


def _identity(item: Any, keys: Any) -> str:
    return json.dumps([item.get(key) if isinstance(item, dict) else None for key in keys])


def _apply(node: RuleNode, value: Any, old: Any, path: str, run: _Run, *, is_same: bool) -> None:
    schema = node.schema
    form = schema.get("type", "")
    self_value = cel_value(value, schema, node.is_object)
    old_value = None if old is None else cel_value(old, schema, node.is_object)
    for compiled in node.rules:
        if compiled.error:
            run.found.append(errors.invalid(path or "<nil>", form, f"rule compile error: {compiled.error}"))
            continue
        is_optional = bool(compiled.rule.get("optionalOldSelf"))
        if compiled.expression is None or (compiled.uses_old and old is None and not is_optional):
            continue
        before = (NONE if old is None else CelOptional(old_value)) if is_optional else old_value
        values = {"self": self_value, "oldSelf": before}
        holds = _evaluated(compiled, values, form, path, run)
        if holds is None or holds is True:
            continue
        where = path + str(compiled.rule.get("fieldPath") or "")
        wrong = _told(compiled, _message(compiled, values, form, path, run), value, form, where.lstrip(".") or "<nil>")
        if is_same and not compiled.uses_old:
            run.warnings.append(f"{wrong.field}: {wrong.message}")
        else:
            run.found.append(wrong)


def _evaluated(compiled: CompiledRule, values: dict[str, Any], form: str, path: str, run: _Run) -> object:
    assert compiled.expression is not None
    meter = CostMeter()
    at = path or "<nil>"
    try:
        result = compiled.expression.evaluate(values, meter)
    except CelEvaluationError as error:
        _spend(meter, form, at, run)
        text = str(error)
        if text.startswith(NO_SUCH_OVERLOAD):
            why = "call arguments did not match a supported operator, function or macro signature for rule"
            run.found.append(errors.invalid(at, form, f"'{text}': {why}: {compiled.shown}"))
        elif text.startswith(COST_EXCEEDED):
            why = "no further validation rules will be run due to call cost exceeds limit for rule"
            run.found.append(errors.invalid(at, form, f"'{text}': {why}: {compiled.shown}"))
            raise _OutOfBudgetError from None
        else:
            run.found.append(errors.invalid(at, form, f"{text} evaluating rule: {compiled.shown}"))
        return None
    _spend(meter, form, at, run)
    return result


def _spend(meter: CostMeter, form: str, at: str, run: _Run) -> None:
    if meter.spent > run.left:
        run.found.append(errors.invalid(at, form, _NO_BUDGET))
        raise _OutOfBudgetError
    run.left -= meter.spent


def _message(compiled: CompiledRule, values: dict[str, Any], form: str, path: str, run: _Run) -> str:
    """What the rule's own expression says, or else what the rule says itself."""
    if compiled.message is not None:
        meter = CostMeter()
        try:
            said = compiled.message.evaluate(values, meter)
        except CelEvaluationError:
            said = ""
        _spend(meter, form, path or "<nil>", run)
        text = said.strip() if isinstance(said, str) else ""
        if text and "\n" not in text and len(text.encode()) <= _LONGEST_MESSAGE:
            return text
    return compiled.shown if compiled.rule.get("message") else f"failed rule: {compiled.shown}"


def _told(compiled: CompiledRule, detail: str, value: Any, form: str, path: str) -> InvalidField:
    match compiled.rule.get("reason"):
        case "FieldValueForbidden":
            return errors.forbidden(path, detail)
        case "FieldValueRequired":
            return errors.required(path, detail)
        case "FieldValueDuplicate":
            return errors.duplicate(path, value)
    if form in ("object", "array"):
        return InvalidField("FieldValueInvalid", path, f"Invalid value: {detail}")
    return errors.invalid(path, value, detail)
