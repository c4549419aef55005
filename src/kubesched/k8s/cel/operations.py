"""What may be done with values: the operators, and looking things up in maps and lists.

Values of different types are different, except that numbers compare by value across int, uint and double. A value of a
Kubernetes type on the left refuses a stranger on the right: == then has no value, and != is true. `compare` gives -1, 0
or 1, by way of double where one side is a double.

Integers have 64 bits and do not wrap: an overflow is an error. Division and remainder round towards zero. Each operator
is a table from a pair of types to a function, so that the compiler can pick the function when it knows the types.

A map is a dict. Its boolean keys are stored as BoolKey, because Python would take True for 1. The outermost maps of a
device are DomainMaps, in which any domain is present when it is looked up, and only real ones when it is asked for.

Next: `calls` picks operators, `containers` builds chains of lookups.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

from kubesched.k8s.cel.errors import CelEvaluationError, no_such_overload
from kubesched.k8s.cel.values import (
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    NANOS_PER_SECOND,
    CelDuration,
    CelOptional,
    CelTimestamp,
    OpaqueValue,
    Uint,
    go_type_name,
    plain,
    type_name,
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


_KEY_TYPES = frozenset({str, int, Uint, bool, float})
"""What may be between brackets."""

ABSENT = object()
"""What a lookup gives for a key that is not there."""


class BoolKey(Enum):
    """A boolean as the key of a map."""

    FALSE = False
    TRUE = True


class DomainMap(dict[str, dict[str, object]]):
    """Attributes or capacities by domain; a domain that the device lacks is an empty map."""

    __slots__ = ()

    def __missing__(self, domain: object) -> dict[str, object]:
        return {}


class StructValue(dict[str, object]):
    """A value built with `Type{field: value}`, which knows its type."""

    __slots__ = ("type_name",)

    def __init__(self, type_name: str) -> None:
        super().__init__()
        self.type_name = type_name


class LazyMap(dict[str, object]):
    """A map whose values are computed when they are first asked for; it cannot be iterated in an expression."""

    __slots__ = ("_compute",)

    def __init__(self, compute: Mapping[str, Callable[[], object]]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, key: str) -> object:
        if key not in self._compute:
            raise KeyError(key)
        value = self[key] = self._compute[key]()
        return value

    def __contains__(self, key: object) -> bool:
        return key in self._compute

    def get(self, key: str, default: object = None) -> object:
        return self[key] if key in self._compute else default


def encode_key(key: object) -> object:
    """How a key is stored in a dict."""
    return BoolKey(key) if type(key) is bool else key


def decode_key(key: object) -> object:
    return key.value if type(key) is BoolKey else key


def map_of(pairs: Iterable[tuple[object, object]]) -> dict[object, object]:
    """The map with these entries, of which later ones win."""
    result: dict[object, object] = {}
    for key, value in pairs:
        try:
            result[encode_key(key)] = value
        except TypeError:
            raise CelEvaluationError(f"unsupported map key type: {type_name(key)}") from None
    return result


def keys(mapping: dict[object, object]) -> Iterator[object]:
    return map(decode_key, mapping)


def entries(mapping: dict[object, object]) -> Iterator[tuple[object, object]]:
    return ((decode_key(key), value) for key, value in mapping.items())


def find(container: object, key: object) -> object:
    """What `container[key]` is, or ABSENT. A value that has no parts has none present."""
    if isinstance(container, DomainMap):
        return container[key] if type(key) is str else {}
    if type(key) not in _KEY_TYPES:
        raise CelEvaluationError(f"invalid qualifier type: {go_type_name(key)}")
    if isinstance(container, dict):
        return container.get(encode_key(key), ABSENT)
    if type(container) is list:
        index = list_index(key)
        return container[index] if 0 <= index < len(container) else ABSENT
    return ABSENT


def get(container: object, key: object) -> object:
    """`container[key]`; raises CelEvaluationError if it is not there."""
    found = find(container, key)
    if found is not ABSENT:
        return found
    if type(container) is list:
        raise CelEvaluationError(f"index out of bounds: {plain(key)}")
    raise missing_key(key)


def missing_key(key: object) -> CelEvaluationError:
    return CelEvaluationError(f"no such key: {plain(key)}")


def list_index(key: object) -> int:
    """The index that a number stands for, whatever its type, if it is whole."""
    if type(key) is int:
        return key
    if type(key) is Uint or type(key) is float:
        if key == key and abs(key) <= MAX_INT and int(key) == key and int(key) >= MIN_INT:
            return int(key)
        raise CelEvaluationError(f"unsupported index value {plain(key)} in list")
    raise CelEvaluationError(f"unsupported index type '{type_name(key)}' in list")


def contains(element: object, container: object) -> bool:
    """`element in container`."""
    if type(container) is list:
        return any(is_same(element, other) for other in container)
    if isinstance(container, dict):
        try:
            return encode_key(element) in container
        except TypeError:
            return False
    raise no_such_overload()
