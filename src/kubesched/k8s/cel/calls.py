"""Closures for calls: finds the implementation, and guards it against arguments whose types only run time knows.

Where the checker knows the types, the implementation is called as it is. Elsewhere the arguments are compared with the
signatures first, and what fits none of them is an error that names the types. The commonest calls, which are equality,
order, arithmetic and membership, get faster closures fitted to what is known of their operands.

Next: `compiler` asks for these.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any

from kubesched.k8s.cel import operations
from kubesched.k8s.cel.errors import CelAbort, CelEvaluationError
from kubesched.k8s.cel.kinds import CelFunction, CelOverload, CelType, Implementation, TypeKind
from kubesched.k8s.cel.operations import Operation, OperationTable, decode_key, equal, is_same, not_equal
from kubesched.k8s.cel.steps import CelStep, Evaluate, Frame
from kubesched.k8s.cel.values import PYTHON_TYPES, CelDuration, CelTimestamp, OpaqueValue, Uint, go_type_name, type_name

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


_PYTHON_TYPES: dict[TypeKind, type] = {
    TypeKind.BOOL: bool,
    TypeKind.BYTES: bytes,
    TypeKind.DOUBLE: float,
    TypeKind.DURATION: CelDuration,
    TypeKind.INT: int,
    TypeKind.LIST: list,
    TypeKind.STRING: str,
    TypeKind.TIMESTAMP: CelTimestamp,
    TypeKind.UINT: Uint,
}
_PLAINLY_COMPARED = frozenset({TypeKind.BOOL, TypeKind.BYTES, TypeKind.INT, TypeKind.STRING, TypeKind.UINT})
"""Types whose values Python compares as CEL does."""

_TABLES: dict[str, OperationTable] = {
    "_+_": operations.ADD,
    "_-_": operations.SUBTRACT,
    "_*_": operations.MULTIPLY,
    "_/_": operations.DIVIDE,
    "_%_": operations.MODULO,
}
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "_<_": operator.lt,
    "_<=_": operator.le,
    "_>_": operator.gt,
    "_>=_": operator.ge,
}
_IN_SETS = frozenset({bool, int, Uint, float, str})


def fitted(function: str, left: CelType, right: CelType) -> Operation | None:
    """The operation for two types known beforehand, None if it takes the general one."""
    if function in _COMPARISONS and left.kind is right.kind and left.kind in _PLAINLY_COMPARED:
        return _COMPARISONS[function]
    table = _TABLES.get(function)
    if table is None or left.kind not in _PYTHON_TYPES or right.kind not in _PYTHON_TYPES:
        return None
    return table.get((_PYTHON_TYPES[left.kind], _PYTHON_TYPES[right.kind]))


def equality(left: CelStep, right: CelStep, is_negated: bool) -> Evaluate:
    """left == right, or left != right."""
    first, second = left.run, right.run
    if left.type.kind is right.type.kind and left.type.kind in _PLAINLY_COMPARED:
        return _plain_equality(left, right, is_negated)
    compare = not_equal if is_negated else equal
    if right.is_constant and type(right.value) in (str, bool, int):
        return _equality_with(first, right.value, is_negated)
    return lambda frame: compare(first(frame), second(frame))


def _plain_equality(left: CelStep, right: CelStep, is_negated: bool) -> Evaluate:
    first, second = left.run, right.run
    if right.is_constant:
        value = right.value
        if is_negated:
            return lambda frame: first(frame) != value
        return lambda frame: first(frame) == value
    if is_negated:
        return lambda frame: first(frame) != second(frame)
    return lambda frame: first(frame) == second(frame)


def _equality_with(operand: Evaluate, expected: object, is_negated: bool) -> Evaluate:
    """Comparison of an attribute, whatever it is, with a constant."""
    expected_type = type(expected)
    if is_negated:

        def differs(frame: Frame) -> bool:
            value = operand(frame)
            return value != expected if type(value) is expected_type else not_equal(value, expected)

        return differs

    def equals(frame: Frame) -> bool:
        value = operand(frame)
        return value == expected if type(value) is expected_type else equal(value, expected)

    return equals


def applied(function: str, left: CelStep, right: CelStep, general: Operation) -> Evaluate:
    """An operator on two operands; orderings against a constant, as most selectors have them, are special."""
    first, second = left.run, right.run
    apply = fitted(function, left.type, right.type) or general
    if not right.is_constant:
        return lambda frame: apply(first(frame), second(frame))
    value = right.value
    if apply is _COMPARISONS.get(function):
        return _plain_comparisons(first, value)[function]
    if function in _COMPARISONS and type(value) in (int, str):
        return _comparison_with(first, value, _COMPARISONS[function], general)
    return lambda frame: apply(first(frame), value)


def _plain_comparisons(operand: Evaluate, value: Any) -> dict[str, Evaluate]:
    return {
        "_<_": lambda frame: operand(frame) < value,
        "_<=_": lambda frame: operand(frame) <= value,
        "_>_": lambda frame: operand(frame) > value,
        "_>=_": lambda frame: operand(frame) >= value,
    }


def _comparison_with(operand: Evaluate, expected: Any, compare: Operation, general: Operation) -> Evaluate:
    """Comparison of an attribute, whatever it is, with a constant."""
    expected_type = type(expected)

    def run(frame: Frame) -> object:
        value = operand(frame)
        return compare(value, expected) if type(value) is expected_type else general(value, expected)

    return run


def membership_in(elements: list[object]) -> Callable[[object], bool] | None:
    """Membership in a constant list of plain values, which cel-go makes a set of; None for other lists."""
    if any(type(element) not in _IN_SETS for element in elements):
        return None
    texts = frozenset(element for element in elements if type(element) is str)
    others = [element for element in elements if type(element) is not str]

    def is_member(value: object) -> bool:
        if type(value) is str:
            return value in texts
        if type(value) is bytes or (isinstance(value, OpaqueValue) and not value.is_hashable):
            reason = f"hash of unhashable type {go_type_name(value)}"
            raise CelAbort(f"internal error: runtime error: {reason}")
        return any(is_same(value, element) for element in others)

    return is_member
