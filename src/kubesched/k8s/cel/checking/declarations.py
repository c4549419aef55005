"""What functions there are: their overloads, the types they take and give, and what they do.

Libraries write a signature as text: `(string, bool) -> kubernetes.Semver` for a function, `string.(int) -> string` for
a member. A capital letter is a type parameter.

Next: the `library` modules declare, `checker` resolves calls against the declarations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from kubesched.k8s.cel.checking import kinds
from kubesched.k8s.cel.checking.kinds import CelType, TypeKind

Implementation = Callable[..., Any]

_NAMED = {
    simple.name: simple
    for simple in (
        kinds.BOOL, kinds.BYTES, kinds.CIDR, kinds.DOUBLE, kinds.DYN, kinds.INT, kinds.IP, kinds.NAMED_FORMAT,
        kinds.NULL, kinds.QUANTITY, kinds.SEMVER, kinds.STRING, kinds.TYPE, kinds.UINT, kinds.URL,
    )
} | {"duration": kinds.DURATION, "timestamp": kinds.TIMESTAMP}  # fmt: skip
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
    "list": kinds.list_of,
    "map": kinds.map_of,
    "optional": kinds.optional_of,
    "type": kinds.type_of,
}


def _named_type(name: str, params: tuple[CelType, ...]) -> CelType:
    if params:
        return _GENERIC[name](*params)
    if len(name) == 1 and name.isupper():
        return kinds.type_param(name)
    return _NAMED[name]
