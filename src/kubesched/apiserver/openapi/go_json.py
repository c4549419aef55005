"""Single values as Go's JSON decoder takes them, with its words for those it does not take."""

from __future__ import annotations

import re
from typing import Any

from kubesched.apiserver.kinds.kind import DecodeError
from kubesched.apiserver.openapi.struct_types import ValueType
from kubesched.model import quantity, times

_BOUNDS = {"int32": 2**31, "int64": 2**63, "int": 2**63, "uint8": 2**8}
_TIME_LAYOUT = "2006-01-02T15:04:05Z07:00"
_MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"


def word_for(value: Any) -> str:
    """Go's word for a JSON value."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def wrong_type(value: Any, of: ValueType, where: str) -> str:
    """The message for a value of the wrong type; ``where`` is "Container.spec.containers.image"."""
    word = word_for(value)
    if of.form == "integer" and word == "number":
        word = f"number {value}"
    place = f"Go struct field {where} of type" if where else "Go value of type"
    return f"json: cannot unmarshal {word} into {place} {of.go_type or of.form}"


def read_scalar(value: Any, of: ValueType, where: str) -> Any:
    """The value as stored. Raises DecodeError."""
    match of.form:
        case "string":
            fits = isinstance(value, str)
        case "boolean":
            fits = isinstance(value, bool)
        case "number":
            fits = isinstance(value, int | float) and not isinstance(value, bool)
        case "integer":
            fits = isinstance(value, int) and not isinstance(value, bool)
            bound = _BOUNDS.get(of.go_type, 2**31 if of.format == "int32" else 2**63)
            fits = fits and -bound <= value < bound
        case "bytes":
            fits = isinstance(value, str)
            if fits and (at := _base64_mistake(value)) is not None:
                raise DecodeError(f"illegal base64 data at input byte {at}")
        case "quantity":
            return _read_quantity(value)
        case "int-or-string":
            return _read_int_or_string(value)
        case _:
            return _read_time(value, of)
    if not fits:
        raise DecodeError(wrong_type(value, of, where))
    return value


def _base64_mistake(text: str) -> int | None:
    """Where standard base64 goes wrong, None if it does not."""
    body = text.rstrip("=")
    wrong = re.search(r"[^A-Za-z0-9+/]", body)
    if wrong:
        return wrong.start()
    return None if len(text) % 4 == 0 and len(text) - len(body) <= 2 else len(text)


def _read_quantity(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        value = ""
    try:
        return str(quantity.parse(value))
    except quantity.QuantityError as error:
        raise DecodeError(str(error)) from None


def _read_int_or_string(value: Any) -> int | str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise DecodeError(f"json: cannot unmarshal {word_for(value)} into Go value of type int32")


def _read_time(value: Any, of: ValueType) -> str:
    layout = _MICRO_LAYOUT if of.form == "micro-time" else _TIME_LAYOUT
    if not isinstance(value, str):
        raise DecodeError(f"json: cannot unmarshal {word_for(value)} into Go value of type string")
    try:
        at_s = times.parse_instant(value)
    except times.InstantError:
        raise DecodeError(f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"') from None
    if of.form == "time":
        return times.print_instant(at_s)
    if "." not in value:
        zone = value[19:]
        raise DecodeError(f'parsing time "{value}" as "{layout}": cannot parse "{zone}" as ".000000"')
    return _print_micro(value, at_s)


def _print_micro(text: str, at_s: float) -> str:
    fraction = re.search(r"\.(\d+)", text)
    micros = (fraction.group(1) if fraction else "").ljust(6, "0")[:6]
    return f"{times.print_instant(int(at_s))[:-1]}.{micros}Z"
