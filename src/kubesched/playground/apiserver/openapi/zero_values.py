"""What Go writes for fields that were never set, and which values it leaves out; the order of fields.

``decoding.py`` and ``quick_decoding.py`` build on this.
"""

from __future__ import annotations

import copy
from functools import lru_cache
from typing import Any

from kubesched.playground.apiserver.kinds.kind import Object
from kubesched.playground.apiserver.openapi.struct_types import FieldType, ValueType, struct_fields

_NEVER_EMPTY = ("struct", "time", "micro-time", "quantity", "int-or-string")


@lru_cache(maxsize=1024)
def declared_defaults(schema_name: str) -> dict[str, Any]:
    """Defaults that the schema itself states (a port's protocol); most defaults are set by the kinds."""
    declared = {name: known.default for name, known in struct_fields(schema_name).items()}
    return {name: default for name, default in declared.items() if default not in (None, "", 0, False, {})}


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
