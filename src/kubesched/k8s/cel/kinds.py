"""The static types of CEL, which of them may stand for which, and the functions that are declared with them.

Two types are equal when kind, name and parameters are. `any` and `dyn` are distinct, because a selector may evaluate
to the first and not to the second. A Substitution is a set of bindings from type parameters to types; a trial that
fails leaves the bindings as they were.

Libraries write a signature as text: `(string, bool) -> kubernetes.Semver` for a function, `string.(int) -> string` for
a member. A capital letter is a type parameter.

Next: the `library` modules declare, `checker` resolves calls against the declarations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from typing import Any


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


_NULLABLE = frozenset({TypeKind.OPAQUE, TypeKind.STRUCT, TypeKind.ANY, TypeKind.DURATION, TypeKind.TIMESTAMP})
_COMPOSITE = frozenset({TypeKind.OPAQUE, TypeKind.LIST, TypeKind.MAP})


class Substitution:
    """What type parameters stand for."""

    def __init__(self) -> None:
        self._bound: dict[str, CelType] = {}

    def assign(self, source: tuple[CelType, ...], target: tuple[CelType, ...]) -> bool:
        """Whether each of `source` may be used where `target` is wanted; binds parameters if all may."""
        before = self._bound.copy()
        if self._assignable_all(source, target):
            return True
        self._bound = before
        return False

    def apply(self, subject: CelType, *, free_to_dyn: bool = False) -> CelType:
        """`subject` with bound parameters replaced, and the free ones by dyn if so asked."""
        if subject.kind is TypeKind.TYPE_PARAM:
            bound = self._bound.get(subject.name)
            if bound is not None:
                return self.apply(bound, free_to_dyn=free_to_dyn)
            return DYN if free_to_dyn else subject
        if not subject.params:
            return subject
        params = tuple(self.apply(param, free_to_dyn=free_to_dyn) for param in subject.params)
        return CelType(subject.kind, subject.name, params)

    def _assignable_all(self, source: tuple[CelType, ...], target: tuple[CelType, ...]) -> bool:
        if len(source) != len(target):
            return False
        return all(self._assignable(one, other) for one, other in zip(source, target, strict=True))

    def _assignable(self, source: CelType, target: CelType) -> bool:
        if target.kind is TypeKind.TYPE_PARAM:
            is_valid, was_bound = self._bind(target, source)
            if is_valid or was_bound:
                return is_valid
        if source.kind is TypeKind.TYPE_PARAM:
            return self._bind(source, target)[0]
        if _is_wildcard(source) or _is_wildcard(target):
            return True
        if source.kind is TypeKind.NULL:
            return target.kind is TypeKind.NULL or target.kind in _NULLABLE
        if target.kind is TypeKind.NULL:
            return source.kind in _NULLABLE
        if source.kind is TypeKind.TYPE:
            return target.kind is TypeKind.TYPE
        if source.kind is not target.kind or source.name != target.name:
            return False
        return self._assignable_all(source.params, target.params) if source.kind in _COMPOSITE else True

    def _bind(self, param: CelType, candidate: CelType) -> tuple[bool, bool]:
        """Whether `candidate` may stand for `param`, and whether something already did."""
        if param == candidate:
            return True, True
        bound = self._bound.get(param.name)
        if bound is None:
            if self._occurs(param, candidate):
                return False, False
            self._bound[param.name] = candidate
            return True, False
        if bound == candidate:
            return True, True
        if not self._assignable(candidate, bound):
            return False, True
        general = more_general(candidate, bound)
        if not self._occurs(param, general):
            self._bound[param.name] = general
        return True, True

    def _occurs(self, param: CelType, inside: CelType) -> bool:
        if param == inside:
            return True
        if inside.kind is TypeKind.TYPE_PARAM:
            bound = self._bound.get(inside.name)
            return bound is not None and self._occurs(param, bound)
        return any(self._occurs(param, part) for part in inside.params)


def more_general(one: CelType, other: CelType) -> CelType:
    """The less specific of two types that agree."""
    return one if _is_equal_or_less_specific(one, other) else other


def _is_equal_or_less_specific(one: CelType, other: CelType) -> bool:
    if one.is_dynamic or one.kind is TypeKind.TYPE_PARAM:
        return True
    if other.is_dynamic or other.kind is TypeKind.TYPE_PARAM or one.kind is not other.kind:
        return False
    if one.kind is TypeKind.TYPE:
        return True
    if one.name != other.name or len(one.params) != len(other.params):
        return False
    return all(_is_equal_or_less_specific(a, b) for a, b in zip(one.params, other.params, strict=True))


def _is_wildcard(subject: CelType) -> bool:
    return subject.is_dynamic or subject.kind is TypeKind.ERROR


Implementation = Callable[..., Any]

_NAMED = {
    simple.name: simple
    for simple in (
        BOOL, BYTES, CIDR, DOUBLE, DYN, INT, IP, NAMED_FORMAT,
        NULL, QUANTITY, SEMVER, STRING, TYPE, UINT, URL,
    )
} | {"duration": DURATION, "timestamp": TIMESTAMP}  # fmt: skip
_TYPE_TOKEN = re.compile(r"\s*([\w.]+|[(),])")


@dataclass(frozen=True, slots=True)
class CelOverload:
    """One signature of a function. For a member, the receiver is the first parameter."""

    id: str
    params: tuple[CelType, ...]
    result: CelType
    is_member: bool
    implementation: Implementation | None


@dataclass(frozen=True, slots=True)
class CelFunction:
    """A function by name. `shared`, where set, serves all overloads and itself looks at the types of its arguments."""

    name: str
    overloads: tuple[CelOverload, ...]
    shared: Implementation | None = None


def overload(identity: str, signature: str, implementation: Implementation | None = None) -> CelOverload:
    """An overload from its signature's text."""
    is_member, params, result = _parse_signature(signature)
    return CelOverload(identity, params, result, is_member, implementation)


def function(name: str, *overloads: CelOverload, shared: Implementation | None = None) -> CelFunction:
    return CelFunction(name, overloads, shared)


def merge(libraries: Iterable[Iterable[CelFunction]]) -> dict[str, CelFunction]:
    """All functions by name; a name that several libraries declare has the overloads of all, in that order."""
    merged: dict[str, CelFunction] = {}
    for library in libraries:
        for one in library:
            before = merged.get(one.name)
            if before is not None:
                one = CelFunction(one.name, before.overloads + one.overloads, before.shared or one.shared)
            merged[one.name] = one
    return merged


def type_params(candidate: CelOverload) -> set[str]:
    """The names of the type parameters that an overload's signature has."""
    found: set[str] = set()
    pending = [candidate.result, *candidate.params]
    while pending:
        subject = pending.pop()
        if subject.kind is TypeKind.TYPE_PARAM:
            found.add(subject.name)
        pending.extend(subject.params)
    return found


@cache
def _parse_signature(signature: str) -> tuple[bool, tuple[CelType, ...], CelType]:
    arguments, result = signature.split(" -> ")
    receiver, separator, listed = (
        arguments.partition(".(") if not arguments.startswith("(") else ("", "", arguments[1:])
    )
    params = _parse_list(listed.removesuffix(")"))
    if separator:
        params = (parse_type(receiver), *params)
    return bool(separator), params, parse_type(result)


def parse_type(text: str) -> CelType:
    """A type from text such as `map(string, list(A))`."""
    (parsed,) = _parse_list(text)
    return parsed


def _parse_list(text: str) -> tuple[CelType, ...]:
    tokens = _TYPE_TOKEN.findall(text)
    parsed, rest = _read_list(tokens)
    assert not rest, text
    return parsed


def _read_list(tokens: list[str]) -> tuple[tuple[CelType, ...], list[str]]:
    found: list[CelType] = []
    while tokens and tokens[0] != ")":
        if tokens[0] == ",":
            tokens = tokens[1:]
            continue
        name, tokens = tokens[0], tokens[1:]
        params: tuple[CelType, ...] = ()
        if tokens and tokens[0] == "(":
            params, tokens = _read_list(tokens[1:])
            tokens = tokens[1:]
        found.append(_named_type(name, params))
    return tuple(found), tokens


_GENERIC: dict[str, Callable[..., CelType]] = {
    "list": list_of,
    "map": map_of,
    "optional": optional_of,
    "type": type_of,
}


def _named_type(name: str, params: tuple[CelType, ...]) -> CelType:
    if params:
        return _GENERIC[name](*params)
    if len(name) == 1 and name.isupper():
        return type_param(name)
    return _NAMED[name]
