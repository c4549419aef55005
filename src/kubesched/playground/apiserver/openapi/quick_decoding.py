"""The same as ``decoding.py`` for objects that have nothing wrong or unknown in them, which are almost all: without the
paths that only messages need, and with what is to be known of a struct looked up once.

Raises CloserLookError for anything else; ``decoding.py`` then reads the object again and finds the words. Both give the
same result where this one gives any.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from kubesched.playground.apiserver.kinds.kind import Object
from kubesched.playground.apiserver.openapi.go_json import read_scalar
from kubesched.playground.apiserver.openapi.struct_types import FieldType, ValueType, struct_fields
from kubesched.playground.apiserver.openapi.zero_values import (
    declared_defaults,
    is_never_empty,
    written_when_absent,
    zero_value,
)

_NO_ZERO = object()
"""Equal to nothing that is read."""


class CloserLookError(Exception):
    """Something is unknown, or has the wrong type."""


class _FieldPlan(NamedTuple):
    """What reading one field needs."""

    position: int
    type: ValueType
    leaves_out_empty: bool
    zero: Any  # a value that is left out, or _NO_ZERO


class _StructPlan(NamedTuple):
    """What reading one struct needs."""

    fields: dict[str, _FieldPlan]
    defaults: tuple[tuple[str, Any], ...]
    absent: tuple[tuple[str, Any], ...]


@lru_cache(maxsize=2048)
def _plan(schema: str) -> _StructPlan:
    fields = {name: _field_plan(at, known) for at, (name, known) in enumerate(struct_fields(schema).items())}
    return _StructPlan(fields, tuple(declared_defaults(schema).items()), tuple(written_when_absent(schema).items()))


def _field_plan(position: int, known: FieldType) -> _FieldPlan:
    leaves_out_empty = known.omits_empty and not known.is_pointer and not is_never_empty(known)
    return _FieldPlan(position, known.type, leaves_out_empty, zero_value(known) if known.omits_zero else _NO_ZERO)


def read_struct(value: Any, of: ValueType) -> Object:
    """The struct with its fields in Go's order."""
    if type(value) is not dict or of.own_fields is not None:
        raise CloserLookError
    plan = _plan(of.schema)
    fields = plan.fields
    present: Object = {}
    for name, item in value.items():
        known = fields.get(name)
        if known is None:
            raise CloserLookError
        if item is not None:
            present[name] = item if type(item) is str and known.type.form == "string" else _read(item, known.type)
    for name, default in plan.defaults:
        if present.get(name) in (None, ""):
            present[name] = default
    for name, written in plan.absent:
        if name not in present:
            present[name] = _copied(written)
    ordered: Object = {}
    for name in sorted(present, key=lambda name: fields[name].position):
        item, known = present[name], fields[name]
        if item is None:  # written although it was never set
            ordered[name] = None
        elif (item or not known.leaves_out_empty) and item != known.zero:
            ordered[name] = item
    return ordered


def _read(value: Any, of: ValueType) -> Any:
    form = of.form
    if form == "struct":
        return read_struct(value, of)
    if form == "list":
        return _read_list(value, of)
    if form == "map":
        return _read_map(value, of)
    return value if form == "any" else read_scalar(value, of, "")


def _read_list(value: Any, of: ValueType) -> list[Any]:
    element = of.element
    if type(value) is not list or element is None or None in value:
        raise CloserLookError
    if element.form == "struct":
        return [read_struct(item, element) for item in value]
    return [_read(item, element) for item in value]


def _read_map(value: Any, of: ValueType) -> Object:
    element = of.element
    if type(value) is not dict or element is None or None in value.values():
        raise CloserLookError
    return {name: _read(value[name], element) for name in sorted(value)}


def _copied(value: Any) -> Any:
    return {name: _copied(item) for name, item in value.items()} if type(value) is dict else value
