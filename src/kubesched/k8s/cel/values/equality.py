"""== and != between any two values.

Values of different types are different, except that numbers compare by value across int, uint and double. A value of a
Kubernetes type on the left refuses a stranger on the right: == then has no value, and != is true.

Next: `ordering` for < and its kin.
"""

from __future__ import annotations

from kubesched.k8s.cel.errors import CelEvaluationError
from kubesched.k8s.cel.values.opaque import OpaqueValue
from kubesched.k8s.cel.values.scalars import CelOptional, CelTimestamp, Uint

_PLAIN = frozenset({str, int, bool, bytes, float, Uint, CelTimestamp})
"""Types for which Python's == on two values of the type is CEL's."""


def equal(left: object, right: object) -> bool:
    """left == right; raises CelEvaluationError where that has no value."""
    left_type, right_type = type(left), type(right)
    if left_type is right_type and left_type in _PLAIN:
        return left == right
    if left is None or right is None:
        return left is right
    if isinstance(left, OpaqueValue):
        return left.same_as(right)
    if left_type is list:
        return right_type is list and _equal_lists(left, right)  # type: ignore[arg-type]
    if isinstance(left, dict):
        return isinstance(right, dict) and _equal_maps(left, right)
    if left_type is CelOptional:
        return right_type is CelOptional and _equal_optionals(left, right)  # type: ignore[arg-type]
    if left_type is bool or right_type is bool:
        return False
    if isinstance(left, int | float) and isinstance(right, int | float):
        return _equal_numbers(left, right)
    return left_type is right_type and left == right


def not_equal(left: object, right: object) -> bool:
    """left != right, which also holds where == has no value."""
    return not is_same(left, right)


def is_same(left: object, right: object) -> bool:
    """Whether left == right has the value true."""
    try:
        return equal(left, right)
    except CelEvaluationError:
        return False


def is_not_different(left: object, right: object) -> bool:
    """Whether left == right has any value but false: what lists and maps ask of their elements."""
    try:
        return equal(left, right)
    except CelEvaluationError:
        return True


def _equal_numbers(left: float, right: float) -> bool:
    if type(left) is float or type(right) is float:
        return float(left) == float(right)
    return left == right


def _equal_lists(left: list[object], right: list[object]) -> bool:
    return len(left) == len(right) and all(map(is_not_different, left, right))


def _equal_maps(left: dict[object, object], right: dict[object, object]) -> bool:
    if len(left) != len(right):
        return False
    return all(key in right and is_not_different(value, right[key]) for key, value in left.items())


def _equal_optionals(left: CelOptional, right: CelOptional) -> bool:
    if not (left.has_value and right.has_value):
        return left.has_value == right.has_value
    return equal(left.value, right.value)
