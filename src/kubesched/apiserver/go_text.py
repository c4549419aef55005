"""Values and their types as Go words them: messages of the real server are full of them.

Read ``kinds/field_errors.py`` for the errors about fields, which write values as JSON.
"""

from __future__ import annotations

import json
from typing import Any

_TYPES = {str: "string", bool: "bool", int: "int64", float: "float64", list: "[]interface {}"}
_JSON_KINDS = {list: "array", str: "string", bool: "bool", dict: "object", type(None): "null"}


def printed(value: Any) -> str:
    """A value as Go prints it plainly (``%v``)."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{name}:{printed(value[name])}" for name in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(printed(item) for item in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return "<nil>" if value is None else str(value)


def in_source(value: Any) -> str:
    """A value as Go would write it in source (``%#v``)."""
    if isinstance(value, dict):
        inner = ", ".join(f"{in_source(name)}:{in_source(value[name])}" for name in sorted(value))
        return f"map[string]interface {{}}{{{inner}}}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(in_source(item) for item in value) + "}"
    if isinstance(value, str):
        return quoted(value)
    return "interface {}(nil)" if value is None else printed(value)


def quoted(text: str) -> str:
    """Go's ``%q`` for what occurs in objects: JSON's form without its escapes of letters."""
    return json.dumps(text, ensure_ascii=False)


def type_name(value: Any) -> str:
    """The Go type that a value decodes to (``%T``)."""
    return _TYPES.get(type(value), "map[string]interface {}")


def json_kind(value: object) -> str:
    """What a value is called where it cannot be decoded: "cannot unmarshal array into ..."."""
    return _JSON_KINDS.get(type(value), "number")
