"""The schema of a custom resource at work: it drops unknown fields, sets defaults and says what is wrong.

Structural schemas as definitions carry them: properties, items, additionalProperties, defaults, required,
enumerations and bounds. Rules in CEL, ``allOf``, ``anyOf``, ``oneOf`` and ``not`` are not evaluated.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from kubesched.apiserver.kinds import field_errors as errors
from kubesched.apiserver.kinds.kind import InvalidField, Object
from kubesched.patterns import PatternError, PatternWorkError, compile_pattern

_KEEP = "x-kubernetes-preserve-unknown-fields"
_AT_ROOT = ("apiVersion", "kind", "metadata")
_TYPES: dict[str, tuple[type[Any], ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}
_WORDS = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


def shape(obj: Object, schema: Object) -> list[str]:
    """Drops what the schema does not know and sets its defaults, in place; returns the paths of what was dropped."""
    unknown: list[str] = []
    _shape(obj, schema, "", unknown)
    return unknown


def _shape(value: Any, schema: Object, path: str, unknown: list[str]) -> None:
    if isinstance(value, list):
        for position, item in enumerate(value):
            _shape(item, schema.get("items", {_KEEP: True}), f"{path}[{position}]", unknown)
    if not isinstance(value, dict):
        return
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties")
    keeps = schema.get(_KEEP) or others is True or not schema
    for name in list(value):
        inner = f"{path}.{name}" if path else name
        if name in properties:
            _shape(value[name], properties[name], inner, unknown)
        elif isinstance(others, dict):
            _shape(value[name], others, inner, unknown)
        elif not keeps and not (not path and name in _AT_ROOT):
            del value[name]
            unknown.append(inner)
    for name, part in properties.items():
        if "default" in part and value.get(name) is None:
            value[name] = copy.deepcopy(part["default"])
            _shape(value[name], part, f"{path}.{name}" if path else name, [])


def schema_errors(value: Any, schema: Object, path: str = "") -> list[InvalidField]:
    """What is wrong with a value, in the words of the real server."""
    if value is None and schema.get("nullable"):
        return []
    wanted = schema.get("type")
    if wanted in _TYPES and not _is(value, wanted) and not schema.get("x-kubernetes-int-or-string"):
        word = _WORDS.get(type(value), "null")
        message = f'Invalid value: "{word}": {path} in body must be of type {wanted}: "{word}"'
        return [InvalidField("FieldValueTypeInvalid", path, message)]
    found = _bound_errors(value, schema, path)
    if isinstance(value, dict):
        found += _member_errors(value, schema, path)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            found += schema_errors(item, schema.get("items", {}), errors.index(path, position))
    return found


def _is(value: Any, wanted: str) -> bool:
    if isinstance(value, bool):
        return wanted == "boolean"
    if isinstance(value, float) and wanted == "integer":
        return value.is_integer()
    return isinstance(value, _TYPES[wanted])


def _member_errors(value: Object, schema: Object, path: str) -> list[InvalidField]:
    found = [errors.required(errors.child(path, name)) for name in schema.get("required", []) if name not in value]
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    for name, part in value.items():
        inner = properties.get(name, others if isinstance(others, dict) else None)
        if inner is not None and not (not path and name in _AT_ROOT):
            found += schema_errors(part, inner, errors.child(path, name))
    return found


def _bound_errors(value: Any, schema: Object, path: str) -> list[InvalidField]:
    found: list[InvalidField] = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(errors.unsupported(path, value, [str(one) for one in schema["enum"]]))
    if isinstance(value, int | float) and not isinstance(value, bool):
        if "minimum" in schema and value < schema["minimum"]:
            found.append(_beyond(path, value, f"greater than or equal to {schema['minimum']}"))
        if "maximum" in schema and value > schema["maximum"]:
            found.append(_beyond(path, value, f"less than or equal to {schema['maximum']}"))
    if isinstance(value, str):
        if len(value) < schema.get("minLength", 0):
            found.append(_beyond(path, value, f"at least {schema['minLength']} chars long"))
        if len(value) > schema.get("maxLength", len(value)):
            found.append(errors.too_long(path, schema["maxLength"]))
        if schema.get("pattern"):
            found += _pattern_errors(value, schema["pattern"], path)
    if isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            found.append(_beyond(path, len(value), f"have at least {schema['minItems']} items"))
        if len(value) > schema.get("maxItems", len(value)):
            found.append(errors.too_many(path, len(value), schema["maxItems"]))
    return found


def _pattern_errors(value: str, pattern: str, path: str) -> list[InvalidField]:
    try:
        if compile_pattern(pattern).is_found_in(value):
            return []
        wanted = f"'{pattern}'"
    except PatternError as error:
        wanted = f"'{pattern}, but pattern is invalid: {error}'"
    except PatternWorkError as error:
        wanted = f"'{pattern}', but {error}"
    return [errors.invalid(path, value, f"{path} in body should match {wanted}")]


def definition_pattern_errors(versions: list[Object]) -> list[InvalidField]:
    """Patterns in the schemas of a definition's versions that are none.

    Where all versions have the same schema, the real server names it by the place that it has in older API versions.
    """
    schemas = [(version.get("schema") or {}).get("openAPIV3Schema") for version in versions]
    if schemas and all(schema == schemas[0] for schema in schemas):
        return list(_broken_patterns(schemas[0], "spec.validation.openAPIV3Schema"))
    return [
        error
        for position, schema in enumerate(schemas)
        for error in _broken_patterns(schema, f"{errors.index('spec.versions', position)}.schema.openAPIV3Schema")
    ]


def _broken_patterns(schema: Any, path: str) -> Iterator[InvalidField]:
    if not isinstance(schema, dict):
        return
    for name in ("items", "additionalProperties", "not"):
        yield from _broken_patterns(schema.get(name), f"{path}.{name}")
    for name, part in sorted((schema.get("properties") or {}).items()):
        yield from _broken_patterns(part, f"{path}.properties[{name}]")
    for name in ("anyOf", "allOf", "oneOf"):
        for position, part in enumerate(schema.get(name) or ()):
            yield from _broken_patterns(part, errors.index(f"{path}.{name}", position))
    if schema.get("pattern"):
        try:
            compile_pattern(schema["pattern"])
        except PatternError as error:
            why = f"must be a valid regular expression, but isn't: {error}"
            yield errors.invalid(f"{path}.pattern", schema["pattern"], why)


def _beyond(path: str, value: Any, bound: str) -> InvalidField:
    verb = "should" if bound.startswith("have") else "should be"
    return errors.invalid(path, value, f"{path} in body {verb} {bound}")
