"""Optional values: optional.of() and its kin, value(), hasValue(), first(), last(), unwrapping.

or() and orValue() look at their second argument only if they need it, so the compiler does them.

Next: `quantities`.
"""

from __future__ import annotations

from kubesched.k8s.cel.checking.declarations import CelFunction, function, overload
from kubesched.k8s.cel.errors import CelEvaluationError
from kubesched.k8s.cel.values.go_text import plain
from kubesched.k8s.cel.values.scalars import NONE, CelDuration, CelOptional, CelTimestamp, Uint

_YEAR_ONE_NANOS = -62135596800 * 10**9
_EMPTY_IS_ZERO = (str, bytes, list, dict, bool, int, Uint, float)


def of_non_zero(value: object) -> CelOptional:
    return NONE if _is_zero(value) else CelOptional(value)


def _is_zero(value: object) -> bool:
    if value is None:
        return True
    if isinstance(value, _EMPTY_IS_ZERO):
        return not value
    if type(value) is CelDuration:
        return value.nanos == 0
    return type(value) is CelTimestamp and value.nanos == _YEAR_ONE_NANOS


def value_of(optional: CelOptional) -> object:
    if not optional.has_value:
        raise CelEvaluationError("optional.none() dereference")
    return optional.value


def unwrap(optionals: list[object]) -> list[object]:
    """The values of those that have one."""
    values: list[object] = []
    for optional in optionals:
        if type(optional) is not CelOptional:
            raise CelEvaluationError(f"value {plain(optional)} is not optional")
        if optional.has_value:
            values.append(optional.value)
    return values


FUNCTIONS: tuple[CelFunction, ...] = (
    function("optional.of", overload("optional_of", "(V) -> optional(V)", CelOptional)),
    function("optional.ofNonZeroValue", overload("optional_ofNonZeroValue", "(V) -> optional(V)", of_non_zero)),
    function("optional.none", overload("optional_none", "() -> optional(V)", lambda: NONE)),
    function("value", overload("optional_value", "optional(V).() -> V", value_of)),
    function("hasValue", overload("optional_hasValue", "optional(V).() -> bool", lambda optional: optional.has_value)),
    function("or", overload("optional_or_optional", "optional(V).(optional(V)) -> optional(V)")),
    function("orValue", overload("optional_orValue_value", "optional(V).(V) -> V")),
    function(
        "first",
        overload("list_first", "list(V).() -> optional(V)", lambda items: CelOptional(items[0]) if items else NONE),
    ),
    function(
        "last",
        overload("list_last", "list(V).() -> optional(V)", lambda items: CelOptional(items[-1]) if items else NONE),
    ),
    function("optional.unwrap", overload("optional_unwrap", "(list(optional(V))) -> list(V)", unwrap)),
    function("unwrapOpt", overload("optional_unwrapOpt", "list(optional(V)).() -> list(V)", unwrap)),
)
