"""A check of values against a JSON schema, as far as the chart's schema goes; a keyword that it does not know fails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
}
_ANNOTATIONS = {"$schema", "title", "then"}


def violations(value: Any, schema: dict[str, Any], path: str = "") -> Iterator[str]:
    """Where the value is not as the schema says."""
    for keyword, rule in schema.items():
        if keyword in _ANNOTATIONS:
            continue
        yield from (f"{path or 'values'}: {why}" for why in _broken(keyword, rule, value, schema))
    if isinstance(value, dict):
        for name, inner in value.items():
            known = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if isinstance(known, dict):
                yield from violations(inner, known, f"{path}.{name}")
    if isinstance(value, list) and "items" in schema:
        for place, inner in enumerate(value):
            yield from violations(inner, schema["items"], f"{path}[{place}]")


def _broken(keyword: str, rule: Any, value: Any, schema: dict[str, Any]) -> Iterator[str]:
    match keyword:
        case "type":
            if not isinstance(value, _TYPES[rule]) or (rule == "integer" and isinstance(value, bool)):
                yield f"is no {rule}"
        case "required":
            if isinstance(value, dict):
                yield from (f"has no {name}" for name in rule if name not in value)
        case "additionalProperties":
            if rule is False and isinstance(value, dict):
                yield from (f"has a strange {name}" for name in value if name not in schema["properties"])
        case "pattern":
            if isinstance(value, str) and not re.search(rule, value):
                yield f"does not match {rule}"
        case "enum" | "const":
            if value not in (rule if keyword == "enum" else [rule]):
                yield f"is not {rule}"
        case "minLength" | "minItems":
            if isinstance(value, str | list) and len(value) < rule:
                yield f"is shorter than {rule}"
        case "maxLength":
            if isinstance(value, str) and len(value) > rule:
                yield f"is longer than {rule}"
        case "minimum":
            if isinstance(value, int) and value < rule:
                yield f"is less than {rule}"
        case "maximum":
            if isinstance(value, int) and value > rule:
                yield f"is more than {rule}"
        case "not":
            if not list(violations(value, rule)):
                yield "has what it must not have"
        case "anyOf":
            if all(list(violations(value, one)) for one in rule):
                yield "fits none"
        case "if":
            if not list(violations(value, rule)):
                yield from violations(value, schema["then"])
        case "properties" | "items":
            pass
        case _:
            raise AssertionError(f"unknown keyword {keyword}")
