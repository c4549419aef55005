"""What is wrong with the schema that a definition of custom resources carries: it must be structural (every value has
one type, said outside of junctors), its defaults must be valid, its lists' keys real, its rules must compile.

``custom_definitions.py`` asks. Places are those of the schema: ``….properties[spec].items.pattern``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from kubesched.k8s.patterns import PatternError, compile_pattern
from kubesched.playground.apiserver.kinds import field_errors as errors
from kubesched.playground.apiserver.kinds.custom_rules import RULES, CompiledRule, compile_rule
from kubesched.playground.apiserver.kinds.custom_schema import (
    EMBEDDED,
    EVERY_OBJECT_HAS,
    INT_OR_STRING,
    KEEP,
    set_defaults,
    shape,
    value_errors,
)
from kubesched.playground.apiserver.served_resource import InvalidField, Object

_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_JUNCTORS = ("anyOf", "allOf", "oneOf")
_LIST_TYPE, _MAP_TYPE, _LIST_KEYS = (
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-list-map-keys",
)
_INT_OR_STRING_PAIR = [{"type": "integer"}, {"type": "string"}]
_NOT_IN_JUNCTORS = (
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    (KEEP, "must be false to be structural"),
    (EMBEDDED, "must be false to be structural"),
    (INT_OR_STRING, "must be false to be structural"),
    (_LIST_KEYS, "must be empty to be structural"),
    (_LIST_TYPE, "must be undefined to be structural"),
    (_MAP_TYPE, "must be undefined to be structural"),
    (RULES, "must be empty to be structural"),
)
_UNSUPPORTED = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")


def schema_errors(schema: Object, path: str) -> list[InvalidField]:
    """All that is wrong with a whole schema."""
    found = sorted(_structural(schema, "root", path), key=lambda wrong: f"{wrong.field}: {wrong.message}")
    if not found:
        found = list(_default_errors(schema, path))
    is_structural = not found
    return found + list(_property_errors(schema, path, _Place(is_root=True, compiles=is_structural)))


# -- structure ---------------------------------------------------------------------------------------------------------


def _structural(schema: Object, level: str, path: str) -> Iterator[InvalidField]:
    form = schema.get("type", "")
    if form == "array" and not isinstance(schema.get("items"), dict):
        yield errors.required(f"{path}.items", "must be specified")
    if isinstance(schema.get("items"), dict):
        yield from _structural(schema["items"], "item", f"{path}.items")
    for name, part in (schema.get("properties") or {}).items():
        yield from _structural(part, "field", f"{path}.properties[{name}]")
    if "additionalProperties" in schema:
        if level == "root":
            yield errors.forbidden(f"{path}.additionalProperties", "must not be used at the root")
        if isinstance(schema["additionalProperties"], dict):
            yield from _structural(schema["additionalProperties"], "field", f"{path}.additionalProperties")
        if schema.get(EMBEDDED):
            why = f"must not be used if {EMBEDDED} is set"
            yield errors.forbidden(f"{path}.additionalProperties", why)
    if schema.get(INT_OR_STRING):
        for name in (KEEP, EMBEDDED):
            if schema.get(name):
                yield errors.invalid(f"{path}.{name}", True, f"must be false if {INT_OR_STRING} is true")
    yield from _junctors(schema, path, is_pair_allowed=True)
    yield from _type_errors(schema, form, level, path)
    yield from _head_errors(schema, level, path)


def _type_errors(schema: Object, form: str, level: str, path: str) -> Iterator[InvalidField]:
    if schema.get(EMBEDDED) and form != "object":
        why = f"must be object if {EMBEDDED} is true"
        yield errors.invalid(f"{path}.type", form, why) if form else errors.required(f"{path}.type", why)
    elif not form and not schema.get(INT_OR_STRING) and not schema.get(KEEP):
        place = {"root": "at the root", "item": "for specified array items", "field": "for specified object fields"}
        yield errors.required(f"{path}.type", f"must not be empty {place[level]}")
    if level == "root" and form not in ("", "object"):
        yield errors.invalid(f"{path}.type", form, "must be object at the root")
    if schema.get(EMBEDDED) and not schema.get(KEEP) and not schema.get("properties"):
        why = f"must not be empty if {EMBEDDED} is true without {KEEP}"
        yield errors.required(f"{path}.properties", why)


def _head_errors(schema: Object, level: str, path: str) -> Iterator[InvalidField]:
    """What every object has is described by the server, and may be restricted in its name only."""
    properties = schema.get("properties") or {}
    is_object = level == "root" or bool(schema.get(EMBEDDED))
    for name in ("kind", "apiVersion"):
        if is_object and name in properties and properties[name].get("type") != "string":
            yield errors.invalid(f"{path}.properties[{name}].type", properties[name].get("type", ""), "must be string")
    metadata = properties.get("metadata")
    if metadata is None:
        return
    at = f"{path}.properties[metadata]"
    if is_object and metadata.get("type") != "object":
        yield errors.invalid(f"{at}.type", metadata.get("type", ""), "must be object")
    if level == "root":
        rest = {name: part for name, part in metadata.items() if name not in ("type", "default")}
        if not set(rest.pop("properties", None) or {}) <= {"name", "generateName"} or rest:
            why = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            yield errors.forbidden(at, why)


def _junctors(schema: Object, path: str, *, is_pair_allowed: bool = False) -> Iterator[InvalidField]:
    for name in _JUNCTORS:
        for position, part in enumerate(schema.get(name) or ()):
            at = errors.index(f"{path}.{name}", position)
            is_pair = name == "anyOf" and schema[name] == _INT_OR_STRING_PAIR
            is_inner = name == "allOf" and position == 0 and part.get("anyOf") == _INT_OR_STRING_PAIR
            if is_pair_allowed and is_pair:
                continue
            yield from _nested(part, at, is_pair_allowed=is_pair_allowed and is_inner, is_all=name == "allOf")
    if isinstance(schema.get("not"), dict):
        yield from _nested(schema["not"], f"{path}.not")
    if schema.get("pattern"):
        try:
            compile_pattern(schema["pattern"])
        except PatternError as error:
            why = f"must be a valid regular expression, but isn't: {error}"
            yield errors.invalid(f"{path}.pattern", schema["pattern"], why)


def _nested(
    schema: Object, path: str, *, is_pair_allowed: bool = False, is_all: bool = False
) -> Iterator[InvalidField]:
    """Within a junctor only bounds may be said, no types."""
    yield from _junctors(schema, path, is_pair_allowed=is_pair_allowed)
    if isinstance(schema.get("items"), dict):
        yield from _nested(schema["items"], f"{path}.items")
    for name, part in (schema.get("properties") or {}).items():
        yield from _nested(part, f"{path}.properties[{name}]", is_all=is_all)
    for name, why in _NOT_IN_JUNCTORS:
        if schema.get(name) and not (name == RULES and is_all):
            yield errors.forbidden(f"{path}.{name}", why)
    if "metadata" in (schema.get("properties") or {}):
        yield errors.forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context")


# -- defaults ----------------------------------------------------------------------------------------------------------


def _default_errors(schema: Object, path: str) -> Iterator[InvalidField]:
    """A default must be valid itself, and lose nothing when it is stored."""
    if schema.get("default") is not None:
        value = schema["default"]
        pruned = {"value": _copied(value)}
        unknown = shape(pruned, {"properties": {"value": schema}})
        if unknown:
            yield errors.invalid(f"{path}.default", value, "must not have unknown fields")
        set_defaults(pruned["value"], schema)
        for wrong in value_errors(pruned["value"], schema, "default"):
            yield replace(wrong, field=f"{path}.{wrong.field}")
    for at, part in _parts(schema, path):
        yield from _default_errors(part, at)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(part) for name, part in value.items()}
    return [_copied(part) for part in value] if isinstance(value, list) else value


def _parts(schema: Object, path: str) -> Iterator[tuple[str, Object]]:
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            yield f"{path}.{name}", schema[name]
    for name, part in sorted((schema.get("properties") or {}).items()):
        yield f"{path}.properties[{name}]", part


# -- properties of each place ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the schema we are: ``no_defaults`` says why none is allowed, ``no_old`` below what rules cannot look
    back.
    """

    is_root: bool = False
    compiles: bool = False
    no_defaults: str = ""
    no_old: str = ""


def _property_errors(schema: Object, path: str, place: _Place) -> Iterator[InvalidField]:
    form = schema.get("type", "")
    if form and form not in _TYPES:
        yield errors.unsupported(f"{path}.type", form, _TYPES)
    if "default" in schema and place.no_defaults:
        yield errors.forbidden(f"{path}.default", f"must not be set {place.no_defaults}")
    for name in _UNSUPPORTED:
        if schema.get(name):
            yield errors.forbidden(f"{path}.{name}", f"{name} is not supported")
    if isinstance(schema.get("items"), list):
        yield errors.forbidden(f"{path}.items", "items must be a schema object and not an array")
    if schema.get("uniqueItems"):
        why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield errors.forbidden(f"{path}.uniqueItems", why)
    others = schema.get("additionalProperties")
    if schema.get("properties") and (others is False or isinstance(others, dict)):
        yield errors.forbidden(
            f"{path}.additionalProperties", "additionalProperties and properties are mutual exclusive"
        )
    if place.is_root and schema.get("nullable"):
        yield errors.forbidden(f"{path}.nullable", "nullable cannot be true at the root")
    if schema.get(KEEP) is False:
        yield errors.invalid(f"{path}.{KEEP}", False, "must be true or undefined")
    yield from _list_type_errors(schema, form, path)
    yield from _rule_errors(schema, path, place)
    for at, part in _parts(schema, path):
        inner = replace(place, is_root=False)
        if at.endswith(".items") and schema.get(_LIST_TYPE) != "map" and not place.no_old:
            inner = replace(inner, no_old=path)
        name = at.removeprefix(f"{path}.properties[").removesuffix("]")
        if place.is_root and name in EVERY_OBJECT_HAS:
            inner = replace(inner, no_defaults=f"in top-level {name}")
        yield from _property_errors(part, at, inner)
    for name in _JUNCTORS:
        for position, part in enumerate(schema.get(name) or ()):
            at = errors.index(f"{path}.{name}", position)
            yield from _property_errors(part, at, replace(place, is_root=False, compiles=False))


def _list_type_errors(schema: Object, form: str, path: str) -> Iterator[InvalidField]:
    list_type, map_type, keys = schema.get(_LIST_TYPE), schema.get(_MAP_TYPE), schema.get(_LIST_KEYS) or []
    for given, name, wanted, known in (
        (map_type, _MAP_TYPE, "object", ("atomic", "granular")),
        (list_type, _LIST_TYPE, "array", ("atomic", "set", "map")),
    ):
        if given is not None and form != wanted:
            why = f"must be {wanted} if {name} is specified"
            yield errors.invalid(f"{path}.type", form, why) if form else errors.required(f"{path}.type", why)
        if given is not None and given not in known:
            yield errors.unsupported(f"{path}.{name}", given, known)
    items = schema.get("items") if isinstance(schema.get("items"), dict) else None
    if list_type == "set" and form == "array" and items is not None:
        why = f"must be atomic as item of a list with {_LIST_TYPE}=set"
        if items.get("type") == "array" and items.get(_LIST_TYPE, "atomic") != "atomic":
            yield errors.invalid(f"{path}.items.{_LIST_TYPE}", items[_LIST_TYPE], why)
        if items.get("type") == "object" and items.get(_MAP_TYPE) != "atomic":
            yield errors.invalid(f"{path}.items.{_MAP_TYPE}", items.get(_MAP_TYPE), why)
    if keys and list_type != "map":
        why = f"must be map if {_LIST_KEYS} is non-empty"
        at = f"{path}.{_LIST_TYPE}"
        yield errors.required(at, why) if list_type is None else errors.invalid(at, list_type, why)
    if list_type == "map":
        yield from _map_key_errors(items, keys, path)


def _map_key_errors(items: Object | None, keys: list[str], path: str) -> Iterator[InvalidField]:
    at = f"{path}.{_LIST_KEYS}"
    if not keys:
        yield errors.required(at, f"must not be empty if {_LIST_TYPE} is map")
    if items is None:
        yield errors.required(f"{path}.items", f"must have a schema if {_LIST_TYPE} is map")
        return
    if items.get("type") != "object":
        yield errors.invalid(
            f"{path}.items.type", items.get("type", ""), f"must be object if parent array's {_LIST_TYPE} is map"
        )
    properties = items.get("properties") or {}
    for key in keys:
        part = properties.get(key)
        if part is None:
            yield errors.invalid(at, keys, "entries must all be names of item properties")
            continue
        if part.get("type") in ("object", "array"):
            where = f"{path}.items.properties[{key}].type"
            yield errors.invalid(where, part["type"], f"must be a scalar type if parent array's {_LIST_TYPE} is map")
        where = f"{path}.items.properties[{key}]"
        if key not in (items.get("required") or ()) and "default" not in part:
            why = f"this property is in {_LIST_KEYS}, so it must have a default or be a required property"
            yield errors.required(f"{where}.default", why)
        if part.get("nullable"):
            yield errors.forbidden(f"{where}.nullable", f"this property is in {_LIST_KEYS}, so it cannot be nullable")
    if len(set(keys)) < len(keys):
        yield errors.invalid(at, keys, "must not contain duplicate entries")


def _rule_errors(schema: Object, path: str, place: _Place) -> Iterator[InvalidField]:
    is_sound = place.compiles
    for position, rule in enumerate(schema.get(RULES) or ()):
        at = errors.index(f"{path}.{RULES}", position)
        for wrong in _rule_form_errors(rule, at):
            is_sound = False
            yield wrong
    for position, rule in enumerate((schema.get(RULES) or ()) if is_sound else ()):
        at = errors.index(f"{path}.{RULES}", position)
        compiled = compile_rule(rule, schema, place.is_root or bool(schema.get(EMBEDDED)))
        yield from _compile_errors(compiled, at, place)


def _rule_form_errors(rule: Object, at: str) -> Iterator[InvalidField]:
    text, message = (rule.get("rule") or "").strip(), rule.get("message")
    said = (message or "").strip()
    if not text:
        yield errors.required(f"{at}.rule", "rule is not specified")
    elif message and not said:
        yield errors.invalid(f"{at}.message", message, "must be non-empty if specified")
    elif "\n" in said or "\r" in said:
        yield errors.invalid(f"{at}.message", message, "must not contain line breaks")
    elif ("\n" in text or "\r" in text) and not said:
        yield errors.required(f"{at}.message", "message must be specified if rule contains line breaks")
    if rule.get("messageExpression") and not rule["messageExpression"].strip():
        yield errors.required(f"{at}.messageExpression", "messageExpression must be non-empty if specified")
    if rule.get("reason") is not None and rule["reason"] not in _REASONS:
        yield errors.unsupported(f"{at}.reason", rule["reason"], _REASONS)


def _compile_errors(compiled: CompiledRule, at: str, place: _Place) -> Iterator[InvalidField]:
    shown = {
        "Rule": compiled.rule.get("rule", ""),
        "Message": compiled.rule.get("message", ""),
        "MessageExpression": compiled.rule.get("messageExpression", ""),
        "Reason": compiled.rule.get("reason"),
        "FieldPath": compiled.rule.get("fieldPath", ""),
        "OptionalOldSelf": compiled.rule.get("optionalOldSelf"),
    }
    if compiled.error:
        yield errors.invalid(f"{at}.rule", shown, compiled.error)
        return
    if compiled.message_error:
        yield errors.invalid(f"{at}.messageExpression", shown, compiled.message_error)
    if compiled.uses_old:
        if place.no_old:
            why = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {place.no_old}"
            yield errors.invalid(f"{at}.rule", compiled.rule["rule"], why)
    elif compiled.rule.get("optionalOldSelf") is not None:
        why = "may not be set if oldSelf is not used in rule"
        yield errors.invalid(f"{at}.optionalOldSelf", compiled.rule["optionalOldSelf"], why)
