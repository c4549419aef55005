"""How a value is walked field by field: what is owned as a whole, and how items of lists are named.

Values without a schema (custom resources) are walked as apply does then: objects key by key, lists as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from kubesched.playground.apiserver.openapi.struct_types import ANY, ValueType
from kubesched.playground.apiserver.patching.apply.field_sets import key_element, value_element


def is_granular(value: Any, of: ValueType) -> bool:
    """Whether ownership goes below this value: not for scalars, empty containers and what is atomic."""
    if isinstance(value, dict):
        return of.form in ("struct", "map", "any") and not of.is_atomic
    if isinstance(value, list):
        return of.form == "list" and of.list_type in ("map", "set")
    return False


@lru_cache(maxsize=4096)
def key_defaults(of: ValueType) -> dict[str, Any]:
    """Defaults of the keys of a list's items (a port's protocol)."""
    element = of.element
    if element is None or element.form != "struct":
        return {}
    fields = element.fields
    found = {name: fields[name].default for name in of.map_keys if name in fields}
    return {name: value for name, value in found.items() if value is not None}


def named_items(items: list[Any], of: ValueType) -> Iterator[tuple[str, Any]]:
    """Items of a granular list with their path elements, in order."""
    defaults = key_defaults(of) if of.list_type == "map" else {}
    for item in items:
        if of.list_type == "map" and isinstance(item, dict):
            yield key_element(item, of.map_keys, defaults), item
        else:
            yield value_element(item), item


def named_children(value: Any, of: ValueType) -> Iterator[tuple[str, Any, ValueType]]:
    """The parts of a granular value: path element, part, its type."""
    if isinstance(value, dict) and of.form == "struct":
        fields = of.fields
        for name, part in value.items():
            known = fields.get(name)
            yield f"f:{name}", part, ANY if known is None else known.type
    elif isinstance(value, dict):
        element_type = of.element or ANY
        for name, part in value.items():
            yield f"f:{name}", part, element_type
    else:
        for element, item in named_items(value, of):
            yield element, item, of.element or ANY
