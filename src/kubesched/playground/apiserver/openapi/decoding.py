"""Reads an object as Go would: drops unknown fields, refuses wrong types, writes quantities in canonical form.

After ``decode_object`` the object has exactly the fields that the real server would store, in Go's order, with what Go
writes for fields that were never set. What was unknown is returned as paths ("spec.foo"), in the order of the document.
Defaults of the kinds are not set here: see ``kinds/``.

Objects that have nothing wrong or unknown in them, which are almost all, are read in a quick way: without the paths
that only messages need, and with what is to be known of a struct looked up once. For anything else the object is read
again, which finds the words. Both ways give the same result where the quick one gives any.

Some lists are written even when they hold nothing ("drivers": null). A client that sends an empty one sets the field,
and owns it; the stored object does not tell it from none. So decoding keeps it, and ``forget_empty_lists`` follows once
the owners are recorded.

For manifests that no server has checked, ``unknown_fields`` names the fields that a kind does not have, each with the
nearest name that it has.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from kubesched.k8s.model.spelling import did_you_mean
from kubesched.playground.apiserver.openapi.go_json import read_scalar, wrong_type
from kubesched.playground.apiserver.openapi.schemas import FieldType, ValueType, struct_fields, type_of_kind
from kubesched.playground.apiserver.served_resource import DecodeError, Object

_NEVER_EMPTY = ("struct", "time", "micro-time", "quantity", "int-or-string")


@lru_cache(maxsize=1024)
def declared_defaults(schema_name: str) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Defaults that the schema itself states (a port's protocol), with the values they replace: an empty text, too,
    unless the field is a pointer. Most defaults are set by the kinds."""
    return {
        name: (known.default, (None,) if known.is_pointer else (None, ""))
        for name, known in struct_fields(schema_name).items()
        if known.default not in (None, "", 0, False, {})
    }


def in_order(present: Object, of: ValueType) -> Object:
    """The fields in Go's order, with those that Go writes although they were never set."""
    absent = written_when_absent(of.schema)
    ordered: Object = {}
    for name, known in of.fields.items():
        value = present.get(name)
        if value is None:
            if name in absent:
                value = absent[name]
                ordered[name] = copy.deepcopy(value) if isinstance(value, dict) else value
            continue
        if known.omits_empty and not known.is_pointer and _is_empty(value, known):
            continue
        if known.omits_zero and value == zero_value(known):
            continue
        ordered[name] = value
    return ordered


@lru_cache(maxsize=1024)
def written_when_absent(schema_name: str) -> dict[str, Any]:
    """What Go writes for fields that were never set; most are left out."""
    written: dict[str, Any] = {}
    for name, known in struct_fields(schema_name).items():
        if known.omits_zero or (known.is_pointer and known.omits_empty):
            continue
        value = zero_value(known)
        is_time = known.type.form in ("time", "micro-time") and not known.is_pointer
        if known.omits_empty and not is_time and (value is None or _is_empty(value, known)):
            continue
        written[name] = value
    return written


def is_never_empty(known: FieldType) -> bool:
    """Structs and times are never empty for Go; "omitempty" does not leave them out."""
    return known.type.form in _NEVER_EMPTY


def _is_empty(value: Any, known: FieldType) -> bool:
    return not value and not is_never_empty(known)


def zero_value(known: FieldType) -> Any:
    """What Go writes for a field that was never set."""
    if known.is_pointer:
        return None
    match known.type.form:
        case "struct":
            return in_order({}, known.type)
        case "string":
            return ""
        case "integer" | "number" | "int-or-string":
            return 0
        case "boolean":
            return False
        case "quantity":
            return "0"
    return None


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
    defaults: tuple[tuple[str, tuple[Any, tuple[Any, ...]]], ...]
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
    is_in_order, last = True, -1
    for name, item in value.items():
        known = fields.get(name)
        if known is None:
            raise CloserLookError
        if item is not None:
            present[name] = (
                item if type(item) is str and known.type.form == "string" else _read_quickly(item, known.type)
            )
            if known.position < last:
                is_in_order = False
            last = known.position
    n_given = len(present)
    for name, (default, replaced) in plan.defaults:
        if present.get(name) in replaced:
            present[name] = default
    for name, written in plan.absent:
        if name not in present:
            present[name] = _copied(written)
    names: Iterable[str] = present
    if not is_in_order or len(present) > n_given:
        names = sorted(present, key=lambda name: fields[name].position)
    ordered: Object = {}
    for name in names:
        item, known = present[name], fields[name]
        if item is None:  # written although it was never set
            ordered[name] = None
        elif (item or not known.leaves_out_empty) and item != known.zero:
            ordered[name] = item
    return ordered


def _read_quickly(value: Any, of: ValueType) -> Any:
    form = of.form
    if form == "struct":
        return read_struct(value, of)
    if form == "list":
        return _read_list_quickly(value, of)
    if form == "map":
        return _read_map_quickly(value, of)
    return value if form == "any" else read_scalar(value, of, "")


def _read_list_quickly(value: Any, of: ValueType) -> list[Any]:
    element = of.element
    if type(value) is not list or element is None or None in value:
        raise CloserLookError
    if element.form == "struct":
        return [read_struct(item, element) for item in value]
    return [_read_quickly(item, element) for item in value]


def _read_map_quickly(value: Any, of: ValueType) -> Object:
    element = of.element
    if type(value) is not dict or element is None or None in value.values():
        raise CloserLookError
    return {name: _read_quickly(value[name], element) for name in sorted(value)}


def _copied(value: Any) -> Any:
    return {name: _copied(item) for name, item in value.items()} if type(value) is dict else value


def decode_object(obj: Object, kind_type: ValueType) -> list[str]:
    """Normalises in place and returns the paths of unknown fields."""
    unknown: list[str] = []
    try:
        fresh = read_struct(obj, kind_type)
    except (CloserLookError, DecodeError):
        fresh = _read_struct(obj, kind_type, "", "", unknown)
    obj.clear()
    obj.update(fresh)
    return unknown


def _read(value: Any, of: ValueType, path: str, where: str, unknown: list[str]) -> Any:
    """``path`` has indices, for unknown fields; ``where`` is "Struct.field.path" without them, for Go's errors."""
    match of.form:
        case "any":
            return value
        case "struct":
            return _read_struct(value, of, path, where, unknown)
        case "list":
            return _read_list(value, of, path, where, unknown)
        case "map":
            return _read_map(value, of, path, where, unknown)
    return read_scalar(value, of, where)


def _read_struct(value: Any, of: ValueType, path: str, where: str, unknown: list[str]) -> Object:
    if not isinstance(value, dict):
        raise DecodeError(wrong_type(value, of, where))
    fields = of.fields
    present: Object = {}
    field_path = where.partition(".")[2]
    for name, item in value.items():
        known = fields.get(name)
        inner = f"{path}.{name}" if path else name
        if known is None:
            unknown.append(inner)
        elif item is not None:
            own = known.go_path
            go_path = f"{of.struct_name}.{field_path}.{own}" if field_path else f"{of.struct_name}.{own}"
            present[name] = _read(item, known.type, inner, go_path, unknown)
    for name, (default, replaced) in declared_defaults(of.schema).items():
        if present.get(name) in replaced:
            present[name] = default
    return in_order(present, of)


def _read_list(value: Any, of: ValueType, path: str, where: str, unknown: list[str]) -> list[Any]:
    if not isinstance(value, list):
        raise DecodeError(wrong_type(value, of, where))
    element = of.element
    assert element is not None
    return [
        _zero_element(element) if item is None else _read(item, element, f"{path}[{index}]", where, unknown)
        for index, item in enumerate(value)
    ]


def _zero_element(element: ValueType) -> Any:
    return zero_value(FieldType("", element, is_pointer=False, omits_empty=False, omits_zero=False))


def _read_map(value: Any, of: ValueType, path: str, where: str, unknown: list[str]) -> Object:
    if not isinstance(value, dict):
        raise DecodeError(wrong_type(value, of, where))
    element = of.element
    assert element is not None
    items = {
        name: _zero_element(element) if item is None else _read(item, element, f"{path}.{name}", where, unknown)
        for name, item in value.items()
    }
    return dict(sorted(items.items()))


def put_in_order(value: Object, schema_name: str) -> None:
    """Fields in Go's order again, in place, after defaults were added at the end."""
    ordered = {name: value[name] for name in _go_order(schema_name) if name in value}
    value.clear()
    value.update(ordered)


@lru_cache(maxsize=64)
def _go_order(schema_name: str) -> tuple[str, ...]:
    return tuple(struct_fields(schema_name))


def zero_object(kind_type: ValueType) -> Object:
    """An object of the kind with nothing set, as Go writes it."""
    return in_order({}, kind_type) if kind_type.form == "struct" else {}


def unknown_fields(document: Any, api_version: str, kind: str) -> Iterator[tuple[str, str]]:
    """(path, hint) for each, in the order of the document; none for a kind that is not built in."""
    group, _, version = api_version.rpartition("/")
    found = type_of_kind(group, version, kind)
    if found is not None:
        yield from _unknown_below(document, found, "")


def _unknown_below(value: Any, of: ValueType, path: str) -> Iterator[tuple[str, str]]:
    element = of.element
    if of.form == "struct" and isinstance(value, dict):
        fields = of.fields
        for name, item in value.items():
            inner = f"{path}.{name}" if path else str(name)
            known = fields.get(name)
            if known is None:
                yield inner, did_you_mean(str(name), fields)
            elif item is not None:
                yield from _unknown_below(item, known.type, inner)
    elif of.form == "list" and isinstance(value, list) and element is not None:
        for index, item in enumerate(value):
            yield from _unknown_below(item, element, f"{path}[{index}]")
    elif of.form == "map" and isinstance(value, dict) and element is not None:
        for name, item in value.items():
            yield from _unknown_below(item, element, f"{path}.{name}")
