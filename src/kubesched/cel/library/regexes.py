"""matches(), find() and findAll(), with patterns of RE2's syntax.

Next: `re2` compiles the patterns.
"""

from __future__ import annotations

from kubesched.cel.checking.declarations import CelFunction, function, overload
from kubesched.cel.errors import CelEvaluationError, no_such_overload
from kubesched.cel.library import re2
from kubesched.cel.library.re2 import Re2Pattern
from kubesched.cel.library.re2_classes import PatternError
from kubesched.cel.values.scalars import CelDuration, CelTimestamp


def _compiled(pattern: str, prefix: str = "") -> Re2Pattern:
    try:
        return re2.compile_pattern(pattern)
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
    return _compiled(pattern).is_found_in(text)


def find(text: str, pattern: str) -> str:
    """The first match, or an empty string."""
    span = _compiled(pattern, "Illegal regex: ").find_span(text)
    return text[slice(*span)] if span is not None else ""


def find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    """All matches that do not overlap, at most `limit`; an empty one right after another match does not count."""
    compiled = _compiled(pattern, "Illegal regex: ")
    found: list[str] = []
    position, previous_end = 0, -1
    while position <= len(text) and len(found) != limit:
        span = compiled.find_span(text, position)
        if span is None:
            break
        start, end = span
        is_counted = end > position or start != previous_end
        position = end if end > position else position + 1
        previous_end = end
        if is_counted:
            found.append(text[start:end])
    return found


FUNCTIONS: tuple[CelFunction, ...] = (
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
