"""The static types of CEL, and the two ways they are written in messages.

Two types are equal when kind, name and parameters are. `any` and `dyn` are told apart, because a selector may evaluate
to the first and not to the second.

Next: `unification` says which type may stand for which.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class TypeKind(Enum):
    """What sort of type it is; the name and parameters say the rest."""

    ANY = auto()
    BOOL = auto()
    BYTES = auto()
    DOUBLE = auto()
    DURATION = auto()
    DYN = auto()
    ERROR = auto()
    INT = auto()
    LIST = auto()
    MAP = auto()
    NULL = auto()
    OPAQUE = auto()
    STRING = auto()
    STRUCT = auto()
    TIMESTAMP = auto()
    TYPE = auto()
    TYPE_PARAM = auto()
    UINT = auto()


@dataclass(frozen=True, slots=True)
class CelType:
    """A type, by the name it has at run time, and its type parameters."""

    kind: TypeKind
    name: str
    params: tuple[CelType, ...] = ()

    @property
    def is_dynamic(self) -> bool:
        return self.kind is TypeKind.DYN or self.kind is TypeKind.ANY

    @property
    def is_optional(self) -> bool:
        return self.kind is TypeKind.OPAQUE and self.name == OPTIONAL_NAME

    def __str__(self) -> str:
        """As in "must evaluate to bool or the unknown type, not ..."."""
        name = f"<{self.name}>" if self.kind is TypeKind.TYPE_PARAM else self.name
        return f"{name}({', '.join(map(str, self.params))})" if self.params else name


OPTIONAL_NAME = "optional_type"

ANY = CelType(TypeKind.ANY, "google.protobuf.Any")
BOOL = CelType(TypeKind.BOOL, "bool")
BYTES = CelType(TypeKind.BYTES, "bytes")
DOUBLE = CelType(TypeKind.DOUBLE, "double")
DURATION = CelType(TypeKind.DURATION, "google.protobuf.Duration")
DYN = CelType(TypeKind.DYN, "dyn")
ERROR = CelType(TypeKind.ERROR, "error")
INT = CelType(TypeKind.INT, "int")
NULL = CelType(TypeKind.NULL, "null_type")
STRING = CelType(TypeKind.STRING, "string")
TIMESTAMP = CelType(TypeKind.TIMESTAMP, "google.protobuf.Timestamp")
TYPE = CelType(TypeKind.TYPE, "type")
UINT = CelType(TypeKind.UINT, "uint")

CIDR = CelType(TypeKind.OPAQUE, "net.CIDR")
DEVICE = CelType(TypeKind.STRUCT, "kubernetes.DRADevice")
IP = CelType(TypeKind.OPAQUE, "net.IP")
NAMED_FORMAT = CelType(TypeKind.STRUCT, "kubernetes.NamedFormat")
QUANTITY = CelType(TypeKind.STRUCT, "kubernetes.Quantity")
SEMVER = CelType(TypeKind.STRUCT, "kubernetes.Semver")
URL = CelType(TypeKind.STRUCT, "kubernetes.URL")

_WRITTEN_BY_KIND = {
    TypeKind.ANY: "any",
    TypeKind.DURATION: "duration",
    TypeKind.ERROR: "!error!",
    TypeKind.NULL: "null",
    TypeKind.TIMESTAMP: "timestamp",
}


def list_of(element: CelType) -> CelType:
    return CelType(TypeKind.LIST, "list", (element,))


def map_of(key: CelType, value: CelType) -> CelType:
    return CelType(TypeKind.MAP, "map", (key, value))


def optional_of(value: CelType) -> CelType:
    return CelType(TypeKind.OPAQUE, OPTIONAL_NAME, (value,))


def type_of(described: CelType) -> CelType:
    return CelType(TypeKind.TYPE, "type", (described,))


def type_param(name: str) -> CelType:
    return CelType(TypeKind.TYPE_PARAM, name)


def unwrap_optional(candidate: CelType) -> tuple[CelType, bool]:
    """The type inside an optional, and whether it was one."""
    return (candidate.params[0], True) if candidate.is_optional else (candidate, False)


def written(subject: CelType) -> str:
    """As in "found no matching overload for ... applied to ..."."""
    by_kind = _WRITTEN_BY_KIND.get(subject.kind)
    if by_kind is not None:
        return by_kind
    if not subject.params:
        return subject.name
    return f"{subject.name}({', '.join(map(written, subject.params))})"


def written_call(arguments: list[CelType], is_member: bool) -> str:
    """The types a function was applied to: `string.(int)` for a member, `(string, int)` otherwise."""
    if is_member:
        return f"{written(arguments[0])}.({', '.join(map(written, arguments[1:]))})"
    return f"({', '.join(map(written, arguments))})"
