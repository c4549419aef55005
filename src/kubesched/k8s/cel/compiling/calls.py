"""Finds the implementation of a call, and guards it against arguments whose types only run time knows.

Where the checker knows the types, the implementation is called as it is. Elsewhere the arguments are compared with the
signatures first, and what fits none of them is an error that names the types.

Next: `operators` has faster closures for the commonest operators.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from kubesched.k8s.cel.checking.declarations import CelFunction, CelOverload, Implementation
from kubesched.k8s.cel.checking.kinds import CelType, TypeKind
from kubesched.k8s.cel.compiling.steps import CelStep, Evaluate, Frame
from kubesched.k8s.cel.errors import CelEvaluationError
from kubesched.k8s.cel.values.containers import decode_key
from kubesched.k8s.cel.values.naming import PYTHON_TYPES, type_name
from kubesched.k8s.cel.values.opaque import OpaqueValue

Matcher = Callable[[object], bool]

_UNCHECKED = frozenset({TypeKind.DYN, TypeKind.ANY, TypeKind.TYPE_PARAM})


def implementation(resolved: CelFunction, fitting: tuple[CelOverload, ...], arguments: list[CelType]) -> Implementation:
    """What to call with the values of the arguments."""
    if resolved.shared is not None:
        return resolved.shared
    if len(fitting) != 1:
        return _dispatcher(resolved, len(arguments))
    only = fitting[0]
    assert only.implementation is not None, only.id
    if all(_is_certain(argument, param) for argument, param in zip(arguments, only.params, strict=True)):
        return only.implementation
    return _guarded(resolved.name, only)


def invoke(apply: Implementation, arguments: list[CelStep]) -> Evaluate:
    """The closure that evaluates the arguments and calls."""
    runs = [argument.run for argument in arguments]
    if len(runs) == 1:
        (only,) = runs
        return lambda frame: apply(only(frame))
    if len(runs) == 2:
        first, second = runs
        if arguments[1].is_constant:
            value = arguments[1].value
            return lambda frame: apply(first(frame), value)
        return lambda frame: apply(first(frame), second(frame))

    def run(frame: Frame) -> object:
        return apply(*[argument(frame) for argument in runs])

    return run


def _is_certain(argument: CelType, param: CelType) -> bool:
    """Whether values of the argument's type always fit the parameter."""
    if param.kind in _UNCHECKED:
        return True
    if argument.kind is not param.kind or argument.name != param.name:
        return False
    if param.kind in (TypeKind.LIST, TypeKind.MAP):
        return all(_is_certain(one, other) for one, other in zip(argument.params, param.params, strict=True))
    return True


def _guarded(name: str, only: CelOverload) -> Implementation:
    apply = only.implementation
    matchers = [_matcher(param) for param in only.params]
    assert apply is not None, only.id
    if len(matchers) == 2:
        return _guarded_binary(name, apply, matchers[0], matchers[1])

    def guarded(*values: object) -> object:
        for matches, value in zip(matchers, values, strict=True):
            if not matches(value):
                raise _no_overload(name, values)
        return apply(*values)

    return guarded


def _guarded_binary(name: str, apply: Implementation, first: Matcher, second: Matcher) -> Implementation:
    """The commonest case, an attribute's method with one argument, without loops."""

    def guarded(left: object, right: object) -> object:
        if first(left) and second(right):
            return apply(left, right)
        raise _no_overload(name, (left, right))

    return guarded


def _dispatcher(resolved: CelFunction, n_arguments: int) -> Implementation:
    """Calls the first overload that the values fit, whether it is a member or not: values do not tell."""
    candidates = [
        (candidate.implementation, [_matcher(param) for param in candidate.params])
        for candidate in resolved.overloads
        if len(candidate.params) == n_arguments and candidate.implementation is not None
    ]

    def dispatch(*values: object) -> object:
        for apply, matchers in candidates:
            if all(matches(value) for matches, value in zip(matchers, values, strict=True)):
                return apply(*values)
        raise _no_overload(resolved.name, values)

    return dispatch


def _no_overload(name: str, values: tuple[object, ...]) -> CelEvaluationError:
    return CelEvaluationError(f"no such overload: {name}({', '.join(map(type_name, values))})")


def _matcher(param: CelType) -> Matcher:
    """Whether a value fits a parameter; of lists and maps, one element is looked at."""
    if param.kind in _UNCHECKED:
        return lambda _: True
    if param.kind is TypeKind.LIST:
        element = _matcher(param.params[0])
        return lambda value: type(value) is list and (not value or element(value[0]))
    if param.kind is TypeKind.MAP:
        key, item = map(_matcher, param.params)
        return lambda value: (
            isinstance(value, dict)
            and all(key(decode_key(one)) and item(other) for one, other in list(value.items())[:1])
        )
    python_type = PYTHON_TYPES.get(param.name) or _opaque_types()[param.name]
    return lambda value: type(value) is python_type


@cache
def _opaque_types() -> dict[str, type]:
    return {opaque.type_name: opaque for opaque in OpaqueValue.__subclasses__()}
