"""+, -, *, / and % for every pair of types that has them, and the negations.

Integers have 64 bits and do not wrap: an overflow is an error. Division and remainder round towards zero. Each operator
is a table from a pair of types to a function, so that the compiler can pick the function when it knows the types.

Next: `compiling.operators` picks.
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
    CelTimestamp,
    Uint,
)

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
