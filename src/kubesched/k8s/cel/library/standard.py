"""The standard functions: operators, size() and the like, conversions between types, and optional values.

Logical and conditional operators have no implementation here, nor have or() and orValue(): they decide what to
evaluate, so the compiler does them.

Next: `strings`, `lists` and `times` for functions on one type each.
"""

from __future__ import annotations

import math
import re

from kubesched.k8s.cel import operations
from kubesched.k8s.cel.errors import CelEvaluationError, no_such_overload
from kubesched.k8s.cel.kinds import CelFunction, CelOverload, function, overload
from kubesched.k8s.cel.library import times
from kubesched.k8s.cel.values import (
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    NANOS_PER_SECOND,
    NONE,
    CelDuration,
    CelOptional,
    CelTimestamp,
    TypeValue,
    Uint,
    general_double,
    plain,
    seconds_text,
    type_name,
)

_ARITHMETIC = {
    "add": "bytes double duration int list(A) string uint",
    "subtract": "double duration int uint",
    "multiply": "double int uint",
    "divide": "double int uint",
    "modulo": "int uint",
}
_ORDERED = ("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration")
_CROSS_NUMERIC = (
    ("int", "double"), ("int", "uint"), ("uint", "double"), ("uint", "int"), ("double", "int"), ("double", "uint"),
)  # fmt: skip


def size(value: object) -> int:
    """size(value)."""
    if isinstance(value, str | bytes | list | dict):
        return len(value)
    if type(value) in (CelDuration, CelTimestamp):
        raise no_such_overload()
    raise CelEvaluationError("no such overload: size")


def _arithmetic(verb: str, *more: CelOverload) -> tuple[CelOverload, ...]:
    same = (overload(f"{verb}_{name}", f"({name}, {name}) -> {name}") for name in _ARITHMETIC[verb].split())
    return (*same, *more)


def _orderings(verb: str) -> tuple[CelOverload, ...]:
    same = (overload(f"{verb}_{name}", f"({name}, {name}) -> bool") for name in _ORDERED)
    crossed = (overload(f"{verb}_{one}_{other}", f"({one}, {other}) -> bool") for one, other in _CROSS_NUMERIC)
    return (*same, *crossed)


OPERATOR_FUNCTIONS: tuple[CelFunction, ...] = (
    function("_?_:_", overload("conditional", "(bool, A, A) -> A")),
    function("_&&_", overload("logical_and", "(bool, bool) -> bool")),
    function("_||_", overload("logical_or", "(bool, bool) -> bool")),
    function("!_", overload("logical_not", "(bool) -> bool"), shared=operations.logical_not),
    function("@not_strictly_false", overload("not_strictly_false", "(bool) -> bool")),
    function("_==_", overload("equals", "(A, A) -> bool"), shared=operations.equal),
    function("_!=_", overload("not_equals", "(A, A) -> bool"), shared=operations.not_equal),
    function(
        "_+_",
        *_arithmetic(
            "add",
            overload("add_duration_timestamp", "(duration, timestamp) -> timestamp"),
            overload("add_timestamp_duration", "(timestamp, duration) -> timestamp"),
        ),
        shared=operations.operator("_+_", operations.ADD),
    ),
    function(
        "_-_",
        *_arithmetic(
            "subtract",
            overload("subtract_timestamp_duration", "(timestamp, duration) -> timestamp"),
            overload("subtract_timestamp_timestamp", "(timestamp, timestamp) -> duration"),
        ),
        shared=operations.operator("_-_", operations.SUBTRACT),
    ),
    function("_*_", *_arithmetic("multiply"), shared=operations.operator("_*_", operations.MULTIPLY)),
    function("_/_", *_arithmetic("divide"), shared=operations.operator("_/_", operations.DIVIDE)),
    function("_%_", *_arithmetic("modulo"), shared=operations.operator("_%_", operations.MODULO)),
    function(
        "-_",
        overload("negate_double", "(double) -> double"),
        overload("negate_int", "(int) -> int"),
        shared=operations.negate,
    ),
    function("_<_", *_orderings("less"), shared=operations.less),
    function("_<=_", *_orderings("less_equals"), shared=operations.less_equal),
    function("_>_", *_orderings("greater"), shared=operations.greater),
    function("_>=_", *_orderings("greater_equals"), shared=operations.greater_equal),
    function(
        "_[_]",
        overload("index_list", "(list(A), int) -> A"),
        overload("index_map", "(map(A, B), A) -> B"),
        overload("optional_list_index_int", "(optional(list(V)), int) -> optional(V)"),
        overload("optional_map_index_value", "(optional(map(K, V)), K) -> optional(V)"),
    ),
    function(
        "_[?_]",
        overload("list_optindex_optional_int", "(list(V), int) -> optional(V)"),
        overload("optional_list_optindex_optional_int", "(optional(list(V)), int) -> optional(V)"),
        overload("map_optindex_optional_value", "(map(K, V), K) -> optional(V)"),
        overload("optional_map_optindex_optional_value", "(optional(map(K, V)), K) -> optional(V)"),
    ),
    function("_?._", overload("select_optional_field", "(dyn, string) -> optional(V)")),
    function(
        "@in",
        overload("in_list", "(A, list(A)) -> bool"),
        overload("in_map", "(A, map(A, B)) -> bool"),
        shared=operations.contains,
    ),
    function(
        "size",
        overload("size_bytes", "(bytes) -> int"),
        overload("bytes_size", "bytes.() -> int"),
        overload("size_list", "(list(A)) -> int"),
        overload("list_size", "list(A).() -> int"),
        overload("size_map", "(map(A, B)) -> int"),
        overload("map_size", "map(A, B).() -> int"),
        overload("size_string", "(string) -> int"),
        overload("string_size", "string.() -> int"),
        shared=size,
    ),
)


_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_HEXADECIMAL = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+")
_SPECIAL = re.compile(r"[+-]?inf(?:inity)?|nan", re.IGNORECASE)


def _same(value: object) -> object:
    return value


def type_value(value: object) -> TypeValue:
    return TypeValue(type_name(value))


def _failure(source: str, target: str) -> CelEvaluationError:
    return CelEvaluationError(f"type conversion error from '{source}' to '{target}'")


def bool_from_string(text: str) -> bool:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    raise _failure("string", "bool")


def int_from_string(text: str) -> int:
    if re.fullmatch(r"[+-]?[0-9]+", text) and MIN_INT <= int(text) <= MAX_INT:
        return int(text)
    raise _failure("string", "int")


def uint_from_string(text: str) -> Uint:
    if re.fullmatch(r"[0-9]+", text) and int(text) <= MAX_UINT:
        return Uint(text)
    raise _failure("string", "uint")


def double_from_string(text: str) -> float:
    value: float | None = None
    if _DECIMAL.fullmatch(text):
        value = float(text)
    elif _HEXADECIMAL.fullmatch(text):
        value = float.fromhex(text)
    elif _SPECIAL.fullmatch(text):
        return float(text)
    if value is None or math.isinf(value):
        raise _failure("string", "double")
    return value


def int_from_double(value: float) -> int:
    if math.isfinite(value) and float(MIN_INT) < value < float(MAX_INT):
        return int(value)
    raise CelEvaluationError("integer overflow")


def uint_from_double(value: float) -> Uint:
    if math.isfinite(value) and 0 <= value < 2.0**64:
        return Uint(int(value))
    raise CelEvaluationError("unsigned integer overflow")


def string_from_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelEvaluationError("invalid UTF-8 in bytes, cannot convert to string") from None


def string_from_bool(value: bool) -> str:
    return "true" if value else "false"


def duration_from_string(text: str) -> CelDuration:
    nanos = times.parse_duration(text)
    if nanos is None:
        raise _failure("string", "google.protobuf.Duration")
    return CelDuration(nanos)


def duration_from_int(_: int) -> CelDuration:
    raise _failure("int", "google.protobuf.Duration")


def timestamp_from_string(text: str) -> CelTimestamp:
    parsed = times.parse_timestamp(text)
    if parsed is None:
        raise _failure("string", "google.protobuf.Timestamp")
    return operations.timestamp(*parsed)


def timestamp_from_int(seconds: int) -> CelTimestamp:
    return operations.timestamp(seconds * NANOS_PER_SECOND, 0)


CONVERSION_FUNCTIONS: tuple[CelFunction, ...] = (
    function("type", overload("type", "(A) -> type(A)"), shared=type_value),
    function("dyn", overload("to_dyn", "(A) -> dyn"), shared=_same),
    function(
        "bool",
        overload("bool_to_bool", "(bool) -> bool", _same),
        overload("string_to_bool", "(string) -> bool", bool_from_string),
    ),
    function(
        "bytes",
        overload("bytes_to_bytes", "(bytes) -> bytes", _same),
        overload("string_to_bytes", "(string) -> bytes", str.encode),
    ),
    function(
        "double",
        overload("double_to_double", "(double) -> double", _same),
        overload("int64_to_double", "(int) -> double", float),
        overload("string_to_double", "(string) -> double", double_from_string),
        overload("uint64_to_double", "(uint) -> double", float),
    ),
    function(
        "duration",
        overload("duration_to_duration", "(duration) -> duration", _same),
        overload("int64_to_duration", "(int) -> duration", duration_from_int),
        overload("string_to_duration", "(string) -> duration", duration_from_string),
    ),
    function(
        "int",
        overload("int64_to_int64", "(int) -> int", _same),
        overload("double_to_int64", "(double) -> int", int_from_double),
        overload("duration_to_int64", "(duration) -> int", lambda value: value.nanos),
        overload("string_to_int64", "(string) -> int", int_from_string),
        overload("timestamp_to_int64", "(timestamp) -> int", lambda value: value.seconds),
        overload("uint64_to_int64", "(uint) -> int", lambda value: operations.integer(int(value))),
    ),
    function(
        "string",
        overload("string_to_string", "(string) -> string", _same),
        overload("bool_to_string", "(bool) -> string", string_from_bool),
        overload("bytes_to_string", "(bytes) -> string", string_from_bytes),
        overload("double_to_string", "(double) -> string", general_double),
        overload("duration_to_string", "(duration) -> string", seconds_text),
        overload("int64_to_string", "(int) -> string", str),
        overload("timestamp_to_string", "(timestamp) -> string", times.write_timestamp),
        overload("uint64_to_string", "(uint) -> string", lambda value: str(int(value))),
    ),
    function(
        "timestamp",
        overload("timestamp_to_timestamp", "(timestamp) -> timestamp", _same),
        overload("int64_to_timestamp", "(int) -> timestamp", timestamp_from_int),
        overload("string_to_timestamp", "(string) -> timestamp", timestamp_from_string),
    ),
    function(
        "uint",
        overload("uint64_to_uint64", "(uint) -> uint", _same),
        overload("double_to_uint64", "(double) -> uint", uint_from_double),
        overload("int64_to_uint64", "(int) -> uint", operations.unsigned),
        overload("string_to_uint64", "(string) -> uint", uint_from_string),
    ),
)

CONVERSIONS = frozenset(one.name for one in CONVERSION_FUNCTIONS)
"""Functions that cel-go evaluates before the first device when their argument is a constant."""


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


OPTIONAL_FUNCTIONS: tuple[CelFunction, ...] = (
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
