"""Rules in CEL that a custom resource's schema carries (``x-kubernetes-validations``), compiled.

A rule sees the value where it stands as ``self``, typed by the schema, and the value before as ``oldSelf``. Compiled
rules are kept by the schema's text, so that definitions which did not change are not compiled again. Read
``custom_rules.py`` for how they are applied.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from kubesched.k8s.cel import CelCompileError, CelEvaluationError, StructFields, compile_expression, kinds
from kubesched.k8s.cel.kinds import CelType, TypeKind
from kubesched.k8s.cel.library.standard import duration_from_string, timestamp_from_string
from kubesched.k8s.cel.program import Expression
from kubesched.playground.apiserver.kinds.custom_schema import EMBEDDED
from kubesched.playground.apiserver.kinds.custom_values import INT_OR_STRING
from kubesched.playground.apiserver.served_resource import Object

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
