"""type(), dyn() and the conversions: bool(), bytes(), double(), duration(), int(), string(), timestamp(), uint().

Next: `time_text` reads and writes times, `strings` has what else there is for text.
"""

from __future__ import annotations

import math
import re

from kubesched.k8s.cel.checking.declarations import CelFunction, function, overload
from kubesched.k8s.cel.errors import CelEvaluationError
from kubesched.k8s.cel.library import time_text
from kubesched.k8s.cel.values import arithmetic
from kubesched.k8s.cel.values.go_text import general_double, seconds_text
from kubesched.k8s.cel.values.naming import type_name
from kubesched.k8s.cel.values.scalars import (
    MAX_INT,
    MAX_UINT,
    MIN_INT,
    NANOS_PER_SECOND,
    CelDuration,
    CelTimestamp,
    TypeValue,
    Uint,
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
    nanos = time_text.parse_duration(text)
    if nanos is None:
        raise _failure("string", "google.protobuf.Duration")
    return CelDuration(nanos)


def duration_from_int(_: int) -> CelDuration:
    raise _failure("int", "google.protobuf.Duration")


def timestamp_from_string(text: str) -> CelTimestamp:
    parsed = time_text.parse_timestamp(text)
    if parsed is None:
        raise _failure("string", "google.protobuf.Timestamp")
    return arithmetic.timestamp(*parsed)


def timestamp_from_int(seconds: int) -> CelTimestamp:
    return arithmetic.timestamp(seconds * NANOS_PER_SECOND, 0)


FUNCTIONS: tuple[CelFunction, ...] = (
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
        overload("uint64_to_int64", "(uint) -> int", lambda value: arithmetic.integer(int(value))),
    ),
    function(
        "string",
        overload("string_to_string", "(string) -> string", _same),
        overload("bool_to_string", "(bool) -> string", string_from_bool),
        overload("bytes_to_string", "(bytes) -> string", string_from_bytes),
        overload("double_to_string", "(double) -> string", general_double),
        overload("duration_to_string", "(duration) -> string", seconds_text),
        overload("int64_to_string", "(int) -> string", str),
        overload("timestamp_to_string", "(timestamp) -> string", time_text.write_timestamp),
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
        overload("int64_to_uint64", "(int) -> uint", arithmetic.unsigned),
        overload("string_to_uint64", "(string) -> uint", uint_from_string),
    ),
)

CONVERSIONS = frozenset(one.name for one in FUNCTIONS)
"""Functions that cel-go evaluates before the first device when their argument is a constant."""
