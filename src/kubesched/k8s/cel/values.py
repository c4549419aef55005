"""Values that Python has no type of its own for, what the type of any value is called, and values written as Go would.

bool, int, float, str, bytes, None, list and dict are themselves. uint, duration, timestamp, type and optional are CEL's
own. OpaqueValue is the base of values that only their library looks into: quantities, versions, addresses, URLs,
formats. A type has a name in CEL, and one in the Go code whose messages users know.

Next: `operations` for what may be done with values.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar

MIN_INT = -(2**63)
MAX_INT = 2**63 - 1
MAX_UINT = 2**64 - 1

NANOS_PER_SECOND = 10**9


class Uint(int):
    """An unsigned 64-bit integer. Equal to the int of the same value, as CEL has it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{int(self)}u"


@dataclass(frozen=True, slots=True, order=True)
class CelDuration:
    """A span of time in nanoseconds."""

    nanos: int


@dataclass(frozen=True, slots=True)
class CelTimestamp:
    """An instant in nanoseconds since 1970, and the offset from UTC it was written with."""

    nanos: int
    utc_offset_s: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CelTimestamp) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __lt__(self, other: CelTimestamp) -> bool:
        return self.nanos < other.nanos

    @property
    def seconds(self) -> int:
        return self.nanos // NANOS_PER_SECOND


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value, by its run-time name."""

    name: str


class CelOptional:
    """A value or none. Compare with `equality.equal`, which knows how the value inside compares."""

    __slots__ = ("has_value", "value")

    def __init__(self, value: object, *, has_value: bool = True) -> None:
        self.value = value
        self.has_value = has_value


NONE = CelOptional(None, has_value=False)
"""The optional without a value."""


class OpaqueValue(ABC):
    """A value with a type name of its own."""

    __slots__ = ()

    type_name: ClassVar[str]
    """The name that type() gives."""

    go_name: ClassVar[str]
    """The name of the type in Kubernetes' own code, which some messages show."""

    is_hashable: ClassVar[bool] = True
    """Whether Kubernetes' type may be looked up in a set; if not, `in` a constant list fails for it."""

    @abstractmethod
    def same_as(self, other: object) -> bool:
        """Whether `other` is the same value; raises CelEvaluationError if it is not of this type."""


_NAMES: dict[type, tuple[str, str]] = {
    bool: ("bool", "types.Bool"),
    bytes: ("bytes", "types.Bytes"),
    float: ("double", "types.Double"),
    int: ("int", "types.Int"),
    list: ("list", "*types.baseList"),
    str: ("string", "types.String"),
    type(None): ("null_type", "types.Null"),
    CelDuration: ("google.protobuf.Duration", "types.Duration"),
    CelOptional: ("optional_type", "*types.Optional"),
    CelTimestamp: ("google.protobuf.Timestamp", "types.Timestamp"),
    TypeValue: ("type", "*types.Type"),
    Uint: ("uint", "types.Uint"),
}


PYTHON_TYPES: dict[str, type] = {names[0]: python_type for python_type, names in _NAMES.items()}
"""The Python type of the values of a CEL type, where there is just one."""


def type_name(value: object) -> str:
    """The name of a value's type in CEL."""
    names = _NAMES.get(type(value))
    if names is not None:
        return names[0]
    return value.type_name if isinstance(value, OpaqueValue) else "map"


def go_type_name(value: object) -> str:
    """The name of a value's type in cel-go or Kubernetes."""
    names = _NAMES.get(type(value))
    if names is not None:
        return names[1]
    return value.go_name if isinstance(value, OpaqueValue) else "*types.baseMap"


_QUOTED = {
    "\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v", '"': r"\"", "\\": r"\\",
}  # fmt: skip


def general_double(value: float) -> str:
    """The shortest text that reads back as `value`, with an exponent when that is large or small (%g)."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1.0, value) < 0 else "0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    point = len(digits) + exponent - 1
    if -4 <= point < 6:
        return fixed_double(value)
    text = "".join(map(str, digits))
    mantissa = text[0] + ("." + text[1:] if len(text) > 1 else "")
    return f"{'-' if sign else ''}{mantissa}e{'-' if point < 0 else '+'}{abs(point):02d}"


def fixed_double(value: float) -> str:
    """The shortest text that reads back as `value`, never with an exponent (%f of the shortest digits)."""
    if not math.isfinite(value):
        return general_double(value)
    return format(Decimal(repr(value)).normalize(), "f") if value else ("-0" if math.copysign(1, value) < 0 else "0")


def quote(text: str) -> str:
    """A Go string literal (%q)."""
    return '"' + "".join(_quoted(char) for char in text) + '"'


def _quoted(char: str) -> str:
    if char in _QUOTED:
        return _QUOTED[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def seconds_text(duration: CelDuration) -> str:
    """A duration as decimal seconds: 5400s, 0.000000002s."""
    whole, rest = divmod(abs(duration.nanos), NANOS_PER_SECOND)
    seconds = whole + rest / 1e9
    return f"{'-' if duration.nanos < 0 else ''}{fixed_double(float(seconds))}s"


def plain(value: object) -> str:
    """A value in the middle of a message (%v)."""
    if value is None:
        return "null"
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is float:
        return general_double(value)
    if type(value) is Uint:
        return str(int(value))
    if type(value) is list:
        return "[" + ", ".join(map(plain, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{plain(_plain_key(key))}: {plain(item)}" for key, item in value.items()) + "}"
    if type(value) is CelDuration:
        return seconds_text(value)
    if type(value) is CelOptional:
        return f"optional({plain(value.value)})" if value.has_value else "optional.none()"
    return value.name if type(value) is TypeValue else str(value)


def _plain_key(key: object) -> object:
    """Boolean keys are stored under an enumeration whose value is the key."""
    return getattr(key, "value", key)
