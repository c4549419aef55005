"""matches(), find() and findAll(), with patterns of RE2's syntax.

Next: the package `patterns` reads and runs them.
"""

from __future__ import annotations

from kubesched.k8s.cel.checking.declarations import CelFunction, function, overload
from kubesched.k8s.cel.errors import COST_EXCEEDED, CelAbort, CelEvaluationError, no_such_overload
from kubesched.k8s.cel.values.scalars import CelDuration, CelTimestamp
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
