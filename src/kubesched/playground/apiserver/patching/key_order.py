"""The order of keys in a patched object, where a message shows it as text.

The real server's patchers decode only the objects that a patch reaches into, and write those with sorted keys; all
others stay as they were. Only messages about patches that leave a wrong object need this.
"""

from __future__ import annotations

from typing import Any

from kubesched.playground.apiserver.openapi.struct_types import ValueType


def in_go_order(value: Any, of: ValueType | None) -> Any:
    """The object with the fields of its structs in Go's order, also those that defaults added at the end."""
    if isinstance(value, list):
        element = of.element if of is not None and of.form == "list" else None
        return value if element is None else [in_go_order(item, element) for item in value]
    if not isinstance(value, dict) or of is None or of.form not in ("struct", "map"):
        return value
    if of.form == "map":
        return {name: in_go_order(item, of.element) for name, item in value.items()}
    fields = of.fields
    known = {name: in_go_order(value[name], field.type) for name, field in fields.items() if name in value}
    return known | {name: item for name, item in value.items() if name not in fields}


def as_written(patched: Any, patch: Any) -> Any:
    """The object with sorted keys wherever the patch (a merge patch or JSON patch operations) reached into it."""
    if isinstance(patch, list):
        for operation in patch:
            for name in ("from", "path") if isinstance(operation, dict) else ():
                if isinstance(operation.get(name), str):
                    patched = _sorted_along(patched, operation[name].split("/")[1:])
        return patched
    return _sorted_where_merged(patched, patch)


def _sorted_along(value: Any, path: list[str]) -> Any:
    if not path:
        return value
    first = path[0].replace("~1", "/").replace("~0", "~")
    if isinstance(value, dict):
        return {name: _sorted_along(value[name], path[1:]) if name == first else value[name] for name in sorted(value)}
    if isinstance(value, list) and first.isdecimal() and int(first) < len(value):
        place = int(first)
        return [*value[:place], _sorted_along(value[place], path[1:]), *value[place + 1 :]]
    return value


def _sorted_where_merged(value: Any, patch: Any) -> Any:
    if not isinstance(value, dict) or not isinstance(patch, dict):
        return _sorted_throughout(value)
    return {
        name: _sorted_where_merged(value[name], patch[name]) if name in patch else value[name] for name in sorted(value)
    }


def _sorted_throughout(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted_throughout(value[name]) for name in sorted(value)}
    return [_sorted_throughout(item) for item in value] if isinstance(value, list) else value
