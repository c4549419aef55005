"""Lists that are written even when they hold nothing ("drivers": null), and what becomes of empty ones.

A client that sends an empty list sets the field, and owns it; the stored object does not tell it from none. So decoding
keeps it, and ``forget_empty_lists`` follows once the owners are recorded.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kubesched.playground.apiserver.openapi.struct_types import ValueType, struct_fields


def forget_empty_lists(value: Any, kind_type: ValueType) -> None:
    """Empty lists become None, in place, where Go would write null."""
    if kind_type.form == "struct" and kind_type.schema:
        for path in _places(kind_type.schema):
            _forget(value, path)


def _forget(value: Any, path: tuple[str, ...]) -> None:
    if isinstance(value, list):
        for item in value:
            _forget(item, path)
    elif isinstance(value, dict):
        inner = value.get(path[0])
        if len(path) > 1:
            _forget(inner, path[1:])
        elif inner == []:
            value[path[0]] = None


@lru_cache(maxsize=256)
def _places(schema: str) -> tuple[tuple[str, ...], ...]:
    """Where a struct and those below it have such lists."""
    return tuple(_below(schema, ()))


def _below(schema: str, above: tuple[str, ...]) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name, known in struct_fields(schema).items():
        inner: ValueType | None = known.type
        if known.type.form == "list":
            if not known.omits_empty and not known.is_pointer:
                found.append((name,))
            inner = known.type.element
        if inner is not None and inner.form == "struct" and inner.schema and inner.schema not in above:
            found += [(name, *rest) for rest in _below(inner.schema, (*above, schema))]
    return found
