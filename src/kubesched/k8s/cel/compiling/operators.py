"""Closures for equality, order, arithmetic and membership, fitted to what is known of the operands.

Next: `calls` for everything else that is called.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from kubesched.k8s.cel.checking.kinds import CelType, TypeKind
from kubesched.k8s.cel.compiling.steps import CelStep, Evaluate, Frame
from kubesched.k8s.cel.errors import CelAbort
from kubesched.k8s.cel.values import arithmetic
from kubesched.k8s.cel.values.arithmetic import Operation, OperationTable
from kubesched.k8s.cel.values.equality import equal, is_same, not_equal
from kubesched.k8s.cel.values.naming import go_type_name
from kubesched.k8s.cel.values.opaque import OpaqueValue
from kubesched.k8s.cel.values.scalars import CelDuration, CelTimestamp, Uint

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
    "_+_": arithmetic.ADD,
    "_-_": arithmetic.SUBTRACT,
    "_*_": arithmetic.MULTIPLY,
    "_/_": arithmetic.DIVIDE,
    "_%_": arithmetic.MODULO,
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
