"""Values that Python has no type of its own for, and what the type of any value is called.

uint, duration, timestamp, type and optional are CEL's own. OpaqueValue is the base of values that only their library
looks into: quantities, versions, addresses, URLs, formats. A type has a name in CEL, and one in the Go code whose
messages users know.

Next: `containers` for maps and lists, `go_text` for how values are written.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
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
