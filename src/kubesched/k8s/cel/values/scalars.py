"""Values that Python has no type of its own for: uint, duration, timestamp, type, optional.

Next: `opaque` for the types of the Kubernetes libraries.
"""

from __future__ import annotations

from dataclasses import dataclass

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
