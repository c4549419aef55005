"""Rules in CEL that a custom resource's schema carries (``x-kubernetes-validations``): compiled, and applied.

A rule sees the value where it stands as ``self``, typed by the schema, and the value before as ``oldSelf``. Compiled
rules are kept by the schema's text, so that definitions which did not change are not compiled again. An object is
walked once; all its rules share a budget, and each has its own.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from kubesched.k8s.cel import CelCompileError, CelEvaluationError, StructFields, compile_expression, kinds
from kubesched.k8s.cel.errors import COST_EXCEEDED, NO_SUCH_OVERLOAD
from kubesched.k8s.cel.kinds import CelType, TypeKind
from kubesched.k8s.cel.library.standard import duration_from_string, timestamp_from_string
from kubesched.k8s.cel.program import Expression
from kubesched.k8s.cel.steps import CostMeter
from kubesched.k8s.cel.values import NONE, CelOptional
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.custom_schema import EMBEDDED, INT_OR_STRING
from kubesched.playground.apiserver.served_resource import InvalidField, Object

RULES = "x-kubernetes-validations"
_TEXT_TYPES = {
    "byte": kinds.BYTES,
    "duration": kinds.DURATION,
    "date": kinds.TIMESTAMP,
    "date-time": kinds.TIMESTAMP,
}
_PLAIN_TYPES = {"boolean": kinds.BOOL, "number": kinds.DOUBLE, "integer": kinds.INT}
_RESERVED = frozenset(
    {
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
    }
    | {"loop", "package", "namespace", "return"}
)
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_OBJECT_META: Object = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}},
}


@dataclass(frozen=True, slots=True)
class CompiledRule:
    """A rule ready to be applied, or why it cannot be."""

    rule: Object
    expression: Expression | None = None
    message: Expression | None = None
    uses_old: bool = False
    error: str = ""
    message_error: str = ""

    @property
    def shown(self) -> str:
        return str(self.rule.get("message") or self.rule.get("rule") or "").strip()


@dataclass(slots=True)
class RuleNode:
    """A place in the schema, with the rules that stand there and below."""

    schema: Object
    is_object: bool
    rules: list[CompiledRule] = field(default_factory=list)
    properties: dict[str, RuleNode] = field(default_factory=dict)
    items: RuleNode | None = None
    others: RuleNode | None = None
    all_of: list[RuleNode] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not (self.rules or self.properties or self.items or self.others or self.all_of)


# -- compiling ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def rules_of(schema_text: str) -> RuleNode | None:
    """The rules of a whole schema, given as JSON; None if it has none."""
    if f'"{RULES}"' not in schema_text:
        return None
    schema = json.loads(schema_text)
    node = _node(schema, schema, is_object=True)
    return None if node.is_empty else node


def _node(schema: Object, rules_from: Object, *, is_object: bool) -> RuleNode:
    """``rules_from`` differs from the schema within ``allOf``, which has rules but no types of its own."""
    node = RuleNode(schema, is_object)
    node.rules = [compile_rule(rule, schema, is_object) for rule in rules_from.get(RULES) or ()]
    for name, part in (rules_from.get("properties") or {}).items():
        typed = (schema.get("properties") or {}).get(name)
        if typed is not None:
            inner = _node(typed, part, is_object=bool(typed.get(EMBEDDED)))
            if not inner.is_empty:
                node.properties[name] = inner
    node.items = _inner(schema.get("items"), rules_from.get("items"))
    node.others = _inner(schema.get("additionalProperties"), rules_from.get("additionalProperties"))
    for part in rules_from.get("allOf") or ():
        joined = _node(schema, part, is_object=is_object)
        if not joined.is_empty:
            node.all_of.append(joined)
    return node


def _inner(schema: Any, rules_from: Any) -> RuleNode | None:
    if not isinstance(schema, dict) or not isinstance(rules_from, dict):
        return None
    node = _node(schema, rules_from, is_object=bool(schema.get(EMBEDDED)))
    return None if node.is_empty else node


def compile_rule(rule: Object, schema: Object, is_object: bool) -> CompiledRule:
    """The rule over a value of this schema. A broken one carries its error."""
    structs: dict[str, Mapping[str, CelType]] = {}
    self_type = declared_type(schema, structs, "selfType", is_object)
    if self_type is None:
        return CompiledRule(rule, error="rules are not supported where the schema has no type")
    fields = StructFields(structs)
    old_type = kinds.optional_of(self_type) if rule.get("optionalOldSelf") else self_type
    both = {"self": self_type, "oldSelf": old_type}
    text = rule.get("rule") or ""
    if not text.strip():
        return CompiledRule(rule)
    try:
        expression = compile_expression(text, both, fields)
        uses_old = not _compiles(text, {"self": self_type}, fields)
    except CelCompileError as error:
        return CompiledRule(rule, error=str(error))
    if expression.type != kinds.BOOL:
        return CompiledRule(rule, error="cel expression must evaluate to a bool")
    message, message_error = _compiled_message(rule.get("messageExpression") or "", both, fields)
    return CompiledRule(rule, expression, message, uses_old, "", message_error)


def _compiles(text: str, variables: Mapping[str, CelType], fields: StructFields) -> bool:
    try:
        compile_expression(text, variables, fields)
    except CelCompileError:
        return False
    return True


def _compiled_message(
    text: str, variables: Mapping[str, CelType], fields: StructFields
) -> tuple[Expression | None, str]:
    if not text:
        return None, ""
    try:
        expression = compile_expression(text, variables, fields)
    except CelCompileError as error:
        return None, f"messageExpression {error}"
    if expression.type != kinds.STRING:
        return None, "messageExpression must evaluate to a string"
    return expression, ""


def declared_type(
    schema: Object, structs: dict[str, Mapping[str, CelType]], name: str, is_object: bool = False
) -> CelType | None:
    """The CEL type of values of a schema; structs met on the way are added. None where nothing is known of them."""
    if schema.get(INT_OR_STRING):
        return kinds.DYN
    form = schema.get("type")
    if form == "array":
        items = schema.get("items")
        element = declared_type(items, structs, f"{name}.@items", bool(items.get(EMBEDDED))) if items else None
        return None if element is None else kinds.list_of(element)
    if form == "object":
        others = schema.get("additionalProperties")
        if isinstance(others, dict):
            value = declared_type(others, structs, f"{name}.@values", bool(others.get(EMBEDDED)))
            return None if value is None else kinds.map_of(kinds.STRING, value)
        properties = _with_object_head(schema) if is_object else schema.get("properties") or {}
        members: dict[str, CelType] = {}
        for key, part in properties.items():
            escaped = escape(key)
            inner = declared_type(part, structs, f"{name}.{key}", bool(part.get(EMBEDDED)))
            if escaped is not None and inner is not None:
                members[escaped] = inner
        structs[name] = members
        return CelType(TypeKind.STRUCT, name)
    if form == "string":
        return _TEXT_TYPES.get(schema.get("format", ""), kinds.STRING)
    return _PLAIN_TYPES.get(form or "")


def _with_object_head(schema: Object) -> Object:
    text = {"type": "string"}
    return {**(schema.get("properties") or {}), "apiVersion": text, "kind": text, "metadata": _OBJECT_META}


def escape(name: str) -> str | None:
    """The name of a field as expressions write it; None for one that they cannot name."""
    if name in _RESERVED:
        return f"__{name}__"
    if not re.fullmatch(r"[A-Za-z_.\-/][A-Za-z0-9_.\-/]*", name):
        return None
    return re.sub(r"__|[.\-/]", lambda found: _ESCAPES[found[0]], name)


# -- values ------------------------------------------------------------------------------------------------------------


def cel_value(value: Any, schema: Object, is_object: bool = False) -> Any:
    """A decoded value as expressions see it: numbers, times and bytes by their schema, fields by escaped names."""
    if isinstance(value, dict):
        others = schema.get("additionalProperties")
        if isinstance(others, dict):
            return {key: cel_value(part, others, bool(others.get(EMBEDDED))) for key, part in value.items()}
        properties = _with_object_head(schema) if is_object else schema.get("properties") or {}
        return {
            escape(key) or key: cel_value(value[key], part, bool(part.get(EMBEDDED)))
            for key, part in properties.items()
            if key in value
        }
    if isinstance(value, list):
        items = schema.get("items") or {}
        return [cel_value(item, items, bool(items.get(EMBEDDED))) for item in value]
    if schema.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if isinstance(value, str) and schema.get("type") == "string":
        return _cel_text(value, schema.get("format", ""))
    return value


def _cel_text(value: str, form: str) -> Any:
    try:
        match form:
            case "byte":
                return base64.b64decode(value)
            case "duration":
                return duration_from_string(value)
            case "date":
                return timestamp_from_string(f"{value}T00:00:00Z")
            case "date-time":
                return timestamp_from_string(value)
    except (CelEvaluationError, binascii.Error, ValueError):
        pass  # the format has been reported already
    return value


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
