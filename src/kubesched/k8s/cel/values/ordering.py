"""<, <=, > and >= between values of types that have an order.

`compare` gives -1, 0 or 1. Numbers compare across int, uint and double, by way of double where one of them is a double.

Next: `arithmetic`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from kubesched.k8s.cel.errors import CelEvaluationError, no_such_overload
from kubesched.k8s.cel.values.scalars import CelDuration, CelTimestamp, Uint

_NOT_A_NUMBER = "NaN values cannot be ordered"
_SELF_ORDERED = frozenset({str, int, bool, bytes, Uint, CelDuration, CelTimestamp})
_NUMBERS = frozenset({int, Uint, float})


def is_ordered(value: object) -> bool:
    return type(value) in _SELF_ORDERED or type(value) is float


def compare(left: Any, right: Any) -> int:
    """-1, 0 or 1 as left is less than, equal to or greater than right."""
    left_type, right_type = type(left), type(right)
    if left_type is right_type and left_type in _SELF_ORDERED:
        return -1 if left < right else int(right < left)
    if left_type is float and math.isnan(left):
        raise CelEvaluationError(_NOT_A_NUMBER)
    if left_type not in _NUMBERS or right_type not in _NUMBERS:
        raise no_such_overload()
    if math.isnan(right):
        raise CelEvaluationError(_NOT_A_NUMBER)
    if left_type is float or right_type is float:
        left, right = float(left), float(right)
    return -1 if left < right else int(right < left)


def ordering(operator: str, accepted: frozenset[int]) -> Callable[[object, object], bool]:
    """The operator that holds where `compare` gives one of `accepted`."""

    def holds(left: object, right: object) -> bool:
        if not is_ordered(left):
            raise CelEvaluationError(f"no such overload: {operator}")
        return compare(left, right) in accepted

    return holds


less = ordering("_<_", frozenset({-1}))
less_equal = ordering("_<=_", frozenset({-1, 0}))
greater = ordering("_>_", frozenset({1}))
greater_equal = ordering("_>=_", frozenset({0, 1}))
