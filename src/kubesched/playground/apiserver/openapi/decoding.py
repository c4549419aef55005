"""Reads an object as Go would: drops unknown fields, refuses wrong types, writes quantities in canonical form.

After ``decode_object`` the object has exactly the fields that the real server would store, in Go's order. What was
unknown is returned as paths ("spec.foo"), in the order of the document. Defaults of the kinds are not set here: see
``kinds/``. ``quick_decoding.py`` reads what has nothing wrong in it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kubesched.playground.apiserver.kinds.kind import DecodeError, Object
from kubesched.playground.apiserver.openapi.go_json import read_scalar, wrong_type
from kubesched.playground.apiserver.openapi.quick_decoding import CloserLookError, read_struct
from kubesched.playground.apiserver.openapi.struct_types import FieldType, ValueType, struct_fields
from kubesched.playground.apiserver.openapi.zero_values import declared_defaults, in_order, zero_value


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
    for name, default in declared_defaults(of.schema).items():
        if present.get(name) in (None, ""):
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
