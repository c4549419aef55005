"""string.format(): %s, %d, %f, %e, %b, %x, %X and %o with the arguments of a list.

This is the extension's version 2, which writes numbers for the en_US locale: thousands separated by commas for %f, and
%e as `2.718280 × 10⁰⁰`.

Next: `checking.validators` checks constant format strings against the types of their arguments.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from kubesched.k8s.cel.errors import CelEvaluationError
from kubesched.k8s.cel.library.time_text import write_timestamp
from kubesched.k8s.cel.values.containers import entries
from kubesched.k8s.cel.values.go_text import general_double, quote, seconds_text
from kubesched.k8s.cel.values.naming import type_name
from kubesched.k8s.cel.values.scalars import CelDuration, CelTimestamp, TypeValue, Uint

_DEFAULT_PRECISION = 6
_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_NOT_FINITE = frozenset({"NaN", "Infinity", "-Infinity"})
_CLAUSE = re.compile(r"%(?:(%)|(\.([0-9]*))?(.)?)", re.DOTALL)

COMPLAINTS = {
    "s": "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and "
    "timestamps, was given {}",
    "d": "decimal clause can only be used on integers, was given {}",
    "f": "fixed-point clause can only be used on doubles, was given {}",
    "e": "scientific clause can only be used on doubles, was given {}",
    "b": "only integers and bools can be formatted as binary, was given {}",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given {}",
    "o": "octal clause can only be used on integers, was given {}",
}
"""By clause, what it says to an argument that it does not take."""


class FormatError(ValueError):
    """A format string, or an argument of it, that makes no sense. `argument` is the index of the latter."""

    def __init__(self, message: str, argument: int | None = None) -> None:
        super().__init__(message)
        self.argument = argument


def format_string(pattern: str, arguments: list[object]) -> str:
    """pattern.format(arguments)."""

    def substitute(index: int, clause: str, precision: int | None) -> str:
        return _write(clause, precision, arguments[index])

    try:
        return expand(pattern, len(arguments), substitute)
    except FormatError as error:
        raise CelEvaluationError(str(error)) from None


def expand(pattern: str, n_arguments: int, substitute: Callable[[int, str, int | None], str]) -> str:
    """The pattern with every clause replaced by what `substitute` makes of index, clause and precision."""
    index = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal index
        if match.group(1):
            return "%"
        if index >= n_arguments:
            raise FormatError(f"index {index} out of range")
        clause, precision = _parse_clause(match)
        try:
            text = substitute(index, clause, precision)
        except FormatError as error:
            raise FormatError(f"error during formatting: {error}", error.argument) from None
        index += 1
        return text

    return _CLAUSE.sub(replace, pattern)


def _parse_clause(match: re.Match[str]) -> tuple[str, int | None]:
    has_precision, digits, clause = match.group(2), match.group(3), match.group(4)
    trouble = "could not parse formatting clause: error while parsing precision: "
    if clause is None:
        raise FormatError(
            f"{trouble}could not find end of precision specifier" if has_precision else "unexpected end of string"
        )
    if has_precision and not digits:
        reason = 'error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax'
        raise FormatError(trouble + reason)
    if clause not in "sdfebxXo":
        raise FormatError(f'could not parse formatting clause: unrecognized formatting clause "{clause}"')
    return clause, int(digits) if digits else None


def _write(clause: str, precision: int | None, argument: object) -> str:
    text = _WRITERS[clause.lower()](argument, _DEFAULT_PRECISION if precision is None else precision)
    if text is None:
        raise FormatError(COMPLAINTS[clause.lower()].format(type_name(argument)))
    return text.upper() if clause == "X" else text


def _string(argument: object, _: int = 0) -> str | None:
    match argument:
        case None:
            return "null"
        case bool():
            return "true" if argument else "false"
        case str():
            return argument
        case bytes():
            return argument.decode(errors="replace")
        case int():
            return str(int(argument))
        case float():
            return general_double(argument)
        case list():
            return "[" + ", ".join(map(_element, argument)) + "]"
        case dict():
            pairs = sorted((_map_key(key), _element(value)) for key, value in entries(argument))
            return "{" + ", ".join(f"{key}:{value}" for key, value in pairs) + "}"
        case TypeValue():
            return argument.name
        case CelDuration():
            return seconds_text(argument)
        case CelTimestamp():
            return write_timestamp(argument)
        case _:
            return None


def _element(value: object) -> str:
    """A value inside a list or map, as a CEL literal."""
    if type(value) is float:
        return f"{value:.6f}" if math.isfinite(value) else quote(general_double(value))
    text = _string(value)
    if text is None:
        raise FormatError(f"no formatting function for {type_name(value)}")
    if type(value) is str:
        return quote(text)
    if type(value) is bytes:
        return "b" + quote(text)
    if type(value) is CelTimestamp:
        return f"timestamp({quote(text)})"
    return f"duration({quote(text)})" if type(value) is CelDuration else text


def _map_key(key: object) -> str:
    if type(key) not in (str, bool, int, Uint):
        raise FormatError(f"no formatting function for map key of type {type_name(key)}")
    return _element(key)


def _decimal(argument: object, _: int) -> str | None:
    return str(int(argument)) if type(argument) in (int, Uint) else None  # type: ignore[call-overload]


def _double(argument: object) -> float | None:
    if type(argument) is str and argument in _NOT_FINITE:
        return float(argument)
    return argument if type(argument) is float else None


def _fixed(argument: object, precision: int) -> str | None:
    value = _double(argument)
    if value is None:
        return None
    return f"{value:,.{precision}f}" if math.isfinite(value) else _not_finite(value)


def _scientific(argument: object, _: int) -> str | None:
    """The precision is ignored: the extension takes it for a width."""
    value = _double(argument)
    if value is None:
        return None
    if not math.isfinite(value):
        return _not_finite(value)
    mantissa, _e, exponent = f"{value:.6e}".partition("e")
    sign = "-" if exponent.startswith("-") else ""
    return f"{mantissa}\u202f×\u202f10{(sign + exponent[1:]).translate(_SUPERSCRIPT)}"


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "∞" if value > 0 else "-∞"


def _binary(argument: object, _: int) -> str | None:
    if type(argument) is bool:
        return "1" if argument else "0"
    return format(int(argument), "b") if type(argument) in (int, Uint) else None  # type: ignore[call-overload]


def _hexadecimal(argument: object, _: int) -> str | None:
    if type(argument) is str:
        return argument.encode().hex()
    if type(argument) is bytes:
        return argument.hex()
    return format(int(argument), "x") if type(argument) in (int, Uint) else None  # type: ignore[call-overload]


def _octal(argument: object, _: int) -> str | None:
    return format(int(argument), "o") if type(argument) in (int, Uint) else None  # type: ignore[call-overload]


_WRITERS: dict[str, Callable[[object, int], str | None]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "x": _hexadecimal,
    "o": _octal,
}
