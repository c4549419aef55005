"""Single values as Go's JSON decoder takes them, with its words for those it does not take."""

from __future__ import annotations

import base64
import re
from functools import lru_cache
from typing import Any

from kubesched.k8s.model import quantity, times
from kubesched.playground.apiserver.openapi.schemas import ValueType
from kubesched.playground.apiserver.served_resource import DecodeError

_BOUNDS = {"int32": 2**31, "int64": 2**63, "int": 2**63, "uint8": 2**8}
_ALIAS = re.compile(r"\b[a-z]+(?=v\d+(?:alpha\d+|beta\d+)?\.)")  # a package is called so by who imports it
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
    return f"json: cannot unmarshal {word} into {place} {_ALIAS.sub('', of.go_type or of.form)}"


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
            if isinstance(value, list):
                return _read_bytes(value, where)
            fits = isinstance(value, str)
            if fits and (at := _base64_error(value)) is not None:
                raise DecodeError(f"illegal base64 data at input byte {at}")
        case "quantity":
            return _read_quantity(value)
        case "int-or-string":
            return _read_int_or_string(value, where)
        case _:
            return _read_time(value, of, where)
    if not fits:
        raise DecodeError(wrong_type(value, of, where))
    return value


def _read_bytes(numbers: list[Any], where: str) -> str:
    """A list of numbers is taken for bytes, too."""
    for number in numbers:
        if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 256:
            raise DecodeError(wrong_type(number, ValueType("integer", "uint8"), where))
    return base64.b64encode(bytes(numbers)).decode()


def _base64_error(text: str) -> int | None:
    """Where standard base64 goes wrong, None if it does not."""
    body = text.rstrip("=")
    wrong = re.search(r"[^A-Za-z0-9+/]", body)
    if wrong:
        return wrong.start()
    n_missing, n_padding = -len(body) % 4, len(text) - len(body)
    if n_missing == n_padding and n_missing != 3:
        return None
    if not n_padding:
        return len(body) // 4 * 4
    return len(text) if n_padding < n_missing < 3 else len(body) + (n_missing if n_missing < 3 else 0)


def _read_quantity(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        value = ""
    try:
        return _canonical_text(value) if isinstance(value, str) else str(quantity.parse(value))
    except quantity.QuantityError as error:
        raise DecodeError(str(error)) from None


@lru_cache(maxsize=4096)
def _canonical_text(text: str) -> str:
    return str(quantity.parse(text))


def _read_int_or_string(value: Any, where: str) -> int | str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        if -(2**31) <= value < 2**31:
            return value
        raise DecodeError(f"json: cannot unmarshal number {value} into Go struct field {where} of type int32")
    raise DecodeError(f"json: cannot unmarshal {word_for(value)} into Go struct field {where} of type int32")


_WHOLE_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})")


def _read_time(value: Any, of: ValueType, where: str) -> str:
    if not isinstance(value, str):
        raise DecodeError(f"json: cannot unmarshal {word_for(value)} into Go struct field {where} of type string")
    return _canonical_time(value, of.form == "micro-time")


@lru_cache(maxsize=4096)
def _canonical_time(value: str, has_micros: bool) -> str:
    """One request and the next tell the same times again and again."""
    layout = _MICRO_LAYOUT if has_micros else _TIME_LAYOUT
    try:
        at_s = times.parse_instant(value)
    except times.InstantError:
        if (whole := _WHOLE_TIME.match(value)) and whole.end() < len(value):
            raise DecodeError(f'parsing time "{value}": extra text: "{value[whole.end() :]}"') from None
        raise DecodeError(f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"') from None
    if not has_micros:
        return times.print_instant(at_s)
    if "." not in value:
        zone = value[19:]
        raise DecodeError(f'parsing time "{value}" as "{layout}": cannot parse "{zone}" as ".000000"')
    return _print_micro(value, at_s)


def _print_micro(text: str, at_s: float) -> str:
    fraction = re.search(r"\.(\d+)", text)
    micros = (fraction.group(1) if fraction else "").ljust(6, "0")[:6]
    return f"{times.print_instant(int(at_s))[:-1]}.{micros}Z"


_PLAIN_TYPES: dict[str, type] = {"string": str, "boolean": bool, "integer": int}
_CLOSER_LOOK = ("bytes", "number")


def needs_no_restoring(value: Any, of: ValueType) -> bool:
    """Whether `restore_error` surely has nothing to say, and `restore_whole_numbers` nothing to change. So it is of
    nearly every object, and to ask this costs a fraction of the two."""
    if value is None:
        return True
    form = of.form
    if form == "struct":
        if type(value) is not dict:
            return False
        fields = of.fields
        for name, item in value.items():
            known = fields.get(name)
            if known is not None and not needs_no_restoring(item, known.type):
                return False
        return True
    if form == "map":
        element = of.element
        if element is None or type(value) is not dict:
            return False
        return all(needs_no_restoring(item, element) for item in value.values())
    if form == "list":
        element = of.element
        if element is None or type(value) is not list:
            return False
        return all(needs_no_restoring(item, element) for item in value)
    plain = _PLAIN_TYPES.get(form)
    return type(value) is plain if plain is not None else form not in _CLOSER_LOOK


def restore_error(value: Any, of: ValueType) -> str:
    """The first thing that does not fit, in the words of the real server where it does not read JSON but plain values.

    Strategic merge patches and server-side apply end there; "" when all fits, or when only a JSON decoder would tell.
    """
    if value is None:
        return ""
    if of.form == "struct":
        if not isinstance(value, dict):
            return f"cannot restore struct from: {_kind_word(value)}"
        errors = (restore_error(value[name], known.type) for name, known in of.fields.items() if name in value)
        return next(filter(None, errors), "")
    if of.form == "map":
        if not isinstance(value, dict):
            return f"cannot restore map from {_kind_word(value)}"
        return next(filter(None, (restore_error(value[name], of.element or of) for name in sorted(value))), "")
    if of.form == "list":
        if not isinstance(value, list):
            return f"cannot restore slice from {_kind_word(value)}"
        return next(filter(None, (restore_error(item, of.element or of) for item in value)), "")
    return _scalar_error(value, of)


def restore_whole_numbers(value: Any, of: ValueType) -> None:
    """Numbers like 80.0 become integers where integers belong, in place: plain values are read so, JSON is not."""
    if of.form == "struct" and isinstance(value, dict):
        for name, known in of.fields.items():
            if name in value:
                value[name] = _whole(value[name], known.type)
                restore_whole_numbers(value[name], known.type)
    elif of.form == "map" and isinstance(value, dict) and of.element is not None:
        for name in value:
            value[name] = _whole(value[name], of.element)
            restore_whole_numbers(value[name], of.element)
    elif of.form == "list" and isinstance(value, list) and of.element is not None:
        for at, item in enumerate(value):
            value[at] = _whole(item, of.element)
            restore_whole_numbers(item, of.element)


def _whole(value: Any, of: ValueType) -> Any:
    return int(value) if of.form == "integer" and isinstance(value, float) and value.is_integer() else value


def _scalar_error(value: Any, of: ValueType) -> str:
    found = _kind_word(value)
    if of.form == "bytes":
        if not isinstance(value, str):
            return f"cannot restore slice from {found}"
        at = _base64_error(value)
        return "" if at is None else f"error decoding from json: illegal base64 data at input byte {at}"
    wanted = {"string": "string", "boolean": "bool", "integer": of.go_type or of.format, "number": "float64"}.get(
        of.form
    )
    if wanted is None or found == wanted or (of.form == "number" and found == "int64"):
        return ""
    if of.form == "integer" and found == "int64":
        return ""
    if of.form == "integer" and isinstance(value, float):
        return "" if value.is_integer() else f"cannot convert float64 to {wanted}"
    if (found, wanted) == ("int64", "string"):
        return f"cannot convert int64 to {of.go_type or 'string'}"
    return f"unrecognized type: {wanted}"


def _kind_word(value: Any) -> str:
    words = {str: "string", bool: "bool", int: "int64", float: "float64", list: "slice"}
    return words.get(type(value), "map")
