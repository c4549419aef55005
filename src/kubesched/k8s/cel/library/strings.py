"""Functions on strings: the standard ones and cel-go's strings extension, version 2.

Positions count code points. What is out of range is an error, not an empty string.

Next: `string_format` for format(), `regexes` for matches() and find().
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.k8s.cel.checking.declarations import CelFunction, function, overload
from kubesched.k8s.cel.errors import CelEvaluationError, no_such_overload
from kubesched.k8s.cel.library.string_format import format_string
from kubesched.k8s.cel.values.go_text import plain

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


def quote(text: str) -> str:
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
    function("strings.quote", overload("strings_quote", "(string) -> string", quote)),
    function(
        "join",
        overload("list_join", "list(string).() -> string", join),
        overload("list_join_string", "list(string).(string) -> string", join),
    ),
)
