"""What can be wrong with a field, in the API server's words; values are written as it writes them.

Paths are plain texts: ``child(path, "name")``, ``index(path, 3)``, ``key(path, "cpu")``. ``served_resource.py`` has
InvalidField itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from kubesched.playground.apiserver.go_text import quoted
from kubesched.playground.apiserver.served_resource import InvalidField


def child(path: str, *names: str) -> str:
    return ".".join((path, *names)) if path else ".".join(names)


def index(path: str, position: int) -> str:
    return f"{path}[{position}]"


def key(path: str, name: str) -> str:
    return f"{path}[{name}]"


def required(path: str, detail: str = "") -> InvalidField:
    return InvalidField("FieldValueRequired", path, _with_detail("Required value", detail))


def invalid(path: str, value: Any, detail: str) -> InvalidField:
    return InvalidField("FieldValueInvalid", path, _with_detail(f"Invalid value: {show(value)}", detail))


def unsupported(path: str, value: Any, supported: Iterable[str]) -> InvalidField:
    listed = ", ".join(f'"{one}"' for one in supported)
    detail = f": supported values: {listed}" if listed else ""
    return InvalidField("FieldValueNotSupported", path, f"Unsupported value: {show(value)}{detail}")


def duplicate(path: str, value: Any) -> InvalidField:
    return InvalidField("FieldValueDuplicate", path, f"Duplicate value: {show(value)}")


def forbidden(path: str, detail: str) -> InvalidField:
    return InvalidField("FieldValueForbidden", path, f"Forbidden: {detail}")


def internal(path: str, detail: str) -> InvalidField:
    """The check itself failed."""
    return InvalidField("InternalError", path, f"Internal error: {detail}")


def missing(path: str, value: Any, detail: str = "") -> InvalidField:
    """The field names something that is not there."""
    return InvalidField("FieldValueNotFound", path, _with_detail(f"Not found: {show(value)}", detail))


def too_many(path: str, n_found: int, n_most: int) -> InvalidField:
    noun = "item" if n_most == 1 else "items"
    return InvalidField("FieldValueTooMany", path, f"Too many: {n_found}: must have at most {n_most} {noun}")


def too_long(path: str, n_most: int) -> InvalidField:
    return InvalidField("FieldValueTooLong", path, f"Too long: may not be more than {n_most} bytes")


def all_invalid(path: str, value: Any, details: Iterable[str]) -> list[InvalidField]:
    return [invalid(path, value, detail) for detail in details]


def immutable(path: str, value: Any) -> InvalidField:
    return invalid(path, value, "field is immutable")


def show(value: Any) -> str:
    """A value within a message: texts quoted, all else as JSON."""
    if isinstance(value, str):
        return quoted(value)
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for sign in "<>&":  # as Go's encoder writes them
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _with_detail(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text
