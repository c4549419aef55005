"""Reads an object as Go would: drops unknown fields, refuses wrong types, writes quantities in canonical form.

After ``decode_object`` the object has exactly the fields that the real server would store, in Go's order. What was
unknown is returned as paths ("spec.foo"), in the order of the document. Defaults of the kinds are not set here: see
``kinds/``.
"""

from __future__ import annotations

import copy
from functools import lru_cache
from typing import Any

from kubesched.apiserver.kinds.kind import DecodeError, Object
from kubesched.apiserver.openapi.go_json import read_scalar, wrong_type
from kubesched.apiserver.openapi.struct_types import FieldType, ValueType, struct_fields


def decode_object(obj: Object, kind_type: ValueType) -> list[str]:
    """Normalises in place and returns the paths of unknown fields."""
    unknown: list[str] = []
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
            go_path = f"{of.struct_name}.{field_path}.{name}" if field_path else f"{of.struct_name}.{name}"
            present[name] = _read(item, known.type, inner, go_path, unknown)
    for name, default in _declared_defaults(of.schema).items():
        if present.get(name) in (None, ""):
            present[name] = default
    return _in_order(present, of)


@lru_cache(maxsize=1024)
def _declared_defaults(schema_name: str) -> dict[str, Any]:
    """Defaults that the schema itself states (a port's protocol); most defaults are set by the kinds."""
    declared = {name: known.default for name, known in struct_fields(schema_name).items()}
    return {name: default for name, default in declared.items() if default not in (None, "", 0, False, {})}


def _in_order(present: Object, of: ValueType) -> Object:
    """The fields in Go's order, with those that Go writes although they were never set."""
    absent = _written_when_absent(of.schema)
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
        # the real server stores objects in a form that does not tell an empty list from none
        ordered[name] = None if value == [] and known.type.form == "list" else value
    return ordered


@lru_cache(maxsize=1024)
def _written_when_absent(schema_name: str) -> dict[str, Any]:
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


def _is_empty(value: Any, known: FieldType) -> bool:
    """Structs and times are never empty for Go; "omitempty" does not leave them out."""
    if known.type.form in ("struct", "time", "micro-time", "quantity", "int-or-string"):
        return False
    return value in ("", 0, False) or (isinstance(value, list | dict) and not value)


def zero_value(known: FieldType) -> Any:
    """What Go writes for a field that was never set."""
    if known.is_pointer:
        return None
    match known.type.form:
        case "struct":
            return _in_order({}, known.type)
        case "string":
            return ""
        case "integer" | "number" | "int-or-string":
            return 0
        case "boolean":
            return False
        case "quantity":
            return "0"
    return None


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


def zero_object(kind_type: ValueType) -> Object:
    """An object of the kind with nothing set, as Go writes it."""
    return _in_order({}, kind_type) if kind_type.form == "struct" else {}
