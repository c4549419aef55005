"""The operators on values: == and !=, < and its kin, +, -, *, / and %, and the negations.

Values of different types are different, except that numbers compare by value across int, uint and double. A value of a
Kubernetes type on the left refuses a stranger on the right: == then has no value, and != is true. `compare` gives -1, 0
or 1, by way of double where one side is a double.

Integers have 64 bits and do not wrap: an overflow is an error. Division and remainder round towards zero. Each operator
is a table from a pair of types to a function, so that the compiler can pick the function when it knows the types.

Next: `compiling.calls` picks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from kubesched.k8s.cel.errors import CelEvaluationError, no_such_overload
from kubesched.k8s.cel.values.scalars import (
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    NANOS_PER_SECOND,
    CelDuration,
    CelOptional,
    CelTimestamp,
    OpaqueValue,
    Uint,
)

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


Operation = Callable[[Any, Any], object]
OperationTable = Mapping[tuple[type, type], Operation]

MIN_TIMESTAMP_S = -62135596800
MAX_TIMESTAMP_S = 253402300799


def integer(value: int) -> int:
    if MIN_INT <= value <= MAX_INT:
        return value
    raise CelEvaluationError("integer overflow")


def unsigned(value: int) -> Uint:
    if 0 <= value <= MAX_UINT:
        return Uint(value)
    raise CelEvaluationError("unsigned integer overflow")


def timestamp(nanos: int, utc_offset_s: int) -> CelTimestamp:
    if MIN_TIMESTAMP_S <= nanos // NANOS_PER_SECOND <= MAX_TIMESTAMP_S:
        return CelTimestamp(nanos, utc_offset_s)
    raise CelEvaluationError("timestamp overflow")


def _quotient(left: int, right: int) -> int:
    if right == 0:
        raise CelEvaluationError("division by zero")
    magnitude = abs(left) // abs(right)
    return magnitude if (left < 0) == (right < 0) else -magnitude


def _remainder(left: int, right: int) -> int:
    if right == 0:
        raise CelEvaluationError("modulus by zero")
    if right == -1 and left == MIN_INT:
        raise CelEvaluationError("integer overflow")
    magnitude = abs(left) % abs(right)
    return -magnitude if left < 0 else magnitude


def _divide_doubles(left: float, right: float) -> float:
    if right != 0.0:
        return left / right
    if left == 0.0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def _multiply_doubles(left: float, right: float) -> float:
    return left * right


def _since(left: CelTimestamp, right: CelTimestamp) -> CelDuration:
    return CelDuration(integer(left.nanos - right.nanos))


ADD: OperationTable = {
    (int, int): lambda left, right: integer(left + right),
    (Uint, Uint): lambda left, right: unsigned(int(left) + int(right)),
    (float, float): lambda left, right: left + right,
    (str, str): lambda left, right: left + right,
    (bytes, bytes): lambda left, right: left + right,
    (list, list): lambda left, right: left + right,
    (CelDuration, CelDuration): lambda left, right: CelDuration(integer(left.nanos + right.nanos)),
    (CelDuration, CelTimestamp): lambda left, right: timestamp(left.nanos + right.nanos, right.utc_offset_s),
    (CelTimestamp, CelDuration): lambda left, right: timestamp(left.nanos + right.nanos, left.utc_offset_s),
}
SUBTRACT: OperationTable = {
    (int, int): lambda left, right: integer(left - right),
    (Uint, Uint): lambda left, right: unsigned(int(left) - int(right)),
    (float, float): lambda left, right: left - right,
    (CelDuration, CelDuration): lambda left, right: CelDuration(integer(left.nanos - right.nanos)),
    (CelTimestamp, CelDuration): lambda left, right: timestamp(left.nanos - right.nanos, left.utc_offset_s),
    (CelTimestamp, CelTimestamp): _since,
}
MULTIPLY: OperationTable = {
    (int, int): lambda left, right: integer(left * right),
    (Uint, Uint): lambda left, right: unsigned(int(left) * int(right)),
    (float, float): _multiply_doubles,
}
DIVIDE: OperationTable = {
    (int, int): lambda left, right: integer(_quotient(left, right)),
    (Uint, Uint): lambda left, right: Uint(_quotient(left, right)),
    (float, float): _divide_doubles,
}
MODULO: OperationTable = {
    (int, int): _remainder,
    (Uint, Uint): lambda left, right: Uint(_remainder(left, right)),
}

_RECEIVERS = frozenset({str, CelDuration, CelTimestamp})


def operator(name: str, table: OperationTable) -> Operation:
    """The operator for values whose types are only known at run time."""
    left_types = {left for left, _ in table}

    def apply(left: object, right: object) -> object:
        operation = table.get((type(left), type(right)))
        if operation is not None:
            return operation(left, right)
        if type(left) in left_types or type(left) in _RECEIVERS:
            raise no_such_overload()
        raise CelEvaluationError(f"no such overload: {name}")

    return apply


def negate(value: object) -> object:
    """-value."""
    if type(value) is int:
        return integer(-value)
    if type(value) is float:
        return -value
    if type(value) is CelDuration:
        return CelDuration(integer(-value.nanos))
    if type(value) is bool or type(value) in _RECEIVERS:
        raise no_such_overload()
    raise CelEvaluationError("no such overload: -_")


def logical_not(value: object) -> bool:
    """!value."""
    if value is True or value is False:
        return not value
    raise no_such_overload()
