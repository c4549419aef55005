"""Functions on strings: the standard ones, cel-go's strings extension (version 2) with format(), and RE2 patterns.

Positions count code points. What is out of range is an error, not an empty string. format() writes numbers for the
en_US locale: thousands separated by commas for %f, and %e as `2.718280 × 10⁰⁰`. The package `patterns` reads and runs
the patterns of matches(), find() and findAll().

Next: `checker` checks constant format strings against the types of their arguments.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from kubesched.k8s.cel.errors import COST_EXCEEDED, CelAbort, CelEvaluationError, no_such_overload
from kubesched.k8s.cel.kinds import CelFunction, function, overload
from kubesched.k8s.cel.library.times import write_timestamp
from kubesched.k8s.cel.operations import entries
from kubesched.k8s.cel.values import (
    CelDuration,
    CelTimestamp,
    TypeValue,
    Uint,
    general_double,
    plain,
    quote,
    seconds_text,
    type_name,
)
from kubesched.k8s.patterns import Pattern, PatternError, PatternWorkError, compile_pattern


def _compiled(pattern: str, prefix: str = "") -> Pattern:
    try:
        return compile_pattern(pattern)
    except PatternError as error:
        raise CelEvaluationError(f"{prefix}{error}") from None


def matches(text: object, pattern: object) -> bool:
    """Whether the pattern is found anywhere in the text."""
    if type(text) is not str:
        if type(text) in (CelDuration, CelTimestamp):
            raise no_such_overload()
        raise CelEvaluationError("no such overload: matches")
    if type(pattern) is not str:
        raise no_such_overload()
    try:
        return _compiled(pattern).is_found_in(text)
    except PatternWorkError:
        raise CelAbort(COST_EXCEEDED) from None


def find(text: str, pattern: str) -> str:
    """The first match, or an empty string."""
    found = find_all(text, pattern, 1)
    return found[0] if found else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """All matches that do not overlap, at most `limit`; an empty one right after another match does not count."""
    try:
        return _compiled(pattern, "Illegal regex: ").find_all(text, limit)
    except PatternWorkError:
        raise CelAbort(COST_EXCEEDED) from None


REGEX_FUNCTIONS: tuple[CelFunction, ...] = (
    function(
        "matches",
        overload("matches", "(string, string) -> bool"),
        overload("matches_string", "string.(string) -> bool"),
        shared=matches,
    ),
    function("find", overload("string_find_string", "string.(string) -> string", find)),
    function(
        "findAll",
        overload("string_find_all_string", "string.(string) -> list(string)", find_all),
        overload("string_find_all_string_int", "string.(string, int) -> list(string)", find_all),
    ),
)


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


_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_SPACES = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""What Unicode calls white space."""

_QUOTED = str.maketrans(
    {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v", "\\": r"\\", '"': r"\""}
)


def _out_of_range(index: int) -> CelEvaluationError:
    return CelEvaluationError(f"index out of range: {index}")


def char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def index_of(text: str, sought: str, start: int = 0) -> int:
    if sought == "":
        return start
    if start < 0:
        raise _out_of_range(start)
    return text.find(sought, start)


def last_index_of(text: str, sought: str) -> int:
    return len(text) if sought == "" else text.rfind(sought)


def last_index_of_before(text: str, sought: str, start: int) -> int:
    """The last place at or before `start`."""
    if sought == "":
        return start
    if start < 0:
        raise _out_of_range(start)
    return -1 if start >= len(text) else text.rfind(sought, 0, start + len(sought))


def substring(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


def substring_range(text: str, start: int, end: int) -> str:
    if start > end:
        raise CelEvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:end]


def replace(text: str, old: str, new: str, limit: int = -1) -> str:
    return text.replace(old, new, max(limit, -1))


def split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if limit < 0 or limit > len(text):
        return list(text)
    return [*text[: limit - 1], text[limit - 1 :]]


def join(parts: list[object], separator: str = "") -> str:
    for part in parts:
        if type(part) is not str:
            raise CelEvaluationError(f"join: invalid input: {plain(part)}")
    return separator.join(map(str, parts))


def quoted(text: str) -> str:
    return f'"{text.translate(_QUOTED)}"'


def _unguarded(test: Callable[[str, str], bool]) -> Callable[[object, object], bool]:
    """Tests whose type faults cel-go reports without the function's name."""

    def apply(text: object, other: object) -> bool:
        if type(text) is str and type(other) is str:
            return test(text, other)
        raise no_such_overload()

    return apply


def _contains(text: str, sought: str) -> bool:
    return sought in text


FUNCTIONS: tuple[CelFunction, ...] = (
    function("contains", overload("contains_string", "string.(string) -> bool"), shared=_unguarded(_contains)),
    function("endsWith", overload("ends_with_string", "string.(string) -> bool"), shared=_unguarded(str.endswith)),
    function(
        "startsWith", overload("starts_with_string", "string.(string) -> bool"), shared=_unguarded(str.startswith)
    ),
    function("charAt", overload("string_char_at_int", "string.(int) -> string", char_at)),
    function(
        "indexOf",
        overload("string_index_of_string", "string.(string) -> int", index_of),
        overload("string_index_of_string_int", "string.(string, int) -> int", index_of),
    ),
    function(
        "lastIndexOf",
        overload("string_last_index_of_string", "string.(string) -> int", last_index_of),
        overload("string_last_index_of_string_int", "string.(string, int) -> int", last_index_of_before),
    ),
    function("lowerAscii", overload("string_lower_ascii", "string.() -> string", lambda text: text.translate(_LOWER))),
    function("upperAscii", overload("string_upper_ascii", "string.() -> string", lambda text: text.translate(_UPPER))),
    function(
        "replace",
        overload("string_replace_string_string", "string.(string, string) -> string", replace),
        overload("string_replace_string_string_int", "string.(string, string, int) -> string", replace),
    ),
    function(
        "split",
        overload("string_split_string", "string.(string) -> list(string)", split),
        overload("string_split_string_int", "string.(string, int) -> list(string)", split),
    ),
    function(
        "substring",
        overload("string_substring_int", "string.(int) -> string", substring),
        overload("string_substring_int_int", "string.(int, int) -> string", substring_range),
    ),
    function("trim", overload("string_trim", "string.() -> string", lambda text: text.strip(_SPACES))),
    function("format", overload("string_format", "string.(list(dyn)) -> string", format_string)),
    function("strings.quote", overload("strings_quote", "(string) -> string", quoted)),
    function(
        "join",
        overload("list_join", "list(string).() -> string", join),
        overload("list_join_string", "list(string).(string) -> string", join),
    ),
)
