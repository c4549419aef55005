"""Kubernetes quantities in expressions: quantity(), compareTo(), isGreaterThan(), add(), asInteger() and so on.

The API machinery keeps small quantities as an int64 and a power of ten, large and binary fractions as a decimal, and
says "integer" only of the former. Its sums come back as another Go type, which == takes on its left side only. Both
can be seen from an expression, so both are kept here.

Next: `semvers`.
"""

from __future__ import annotations

import re
from typing import ClassVar

from kubesched.k8s.cel.checking.declarations import CelFunction, function, overload
from kubesched.k8s.cel.errors import CelEvaluationError, no_such_overload
from kubesched.k8s.cel.values.scalars import MAX_INT, MIN_INT, OpaqueValue
from kubesched.k8s.model import quantity as quantities
from kubesched.k8s.model.quantity import NANO, Notation, Quantity, QuantityError

_MAX_DIGITS = 18
_SHAPE = re.compile(r"([+-]?)0*+([0-9]*+)(?:\.([0-9]*+))?+([A-Za-z]*+)([+-]?[0-9]*+)")
_DECIMAL_POWERS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_POWERS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

Amount = tuple[int, int]
"""An int64 and the power of ten to multiply it with."""


class CelQuantity(OpaqueValue):
    """A quantity in an expression. Give it the text it was written as, or the amount if it was computed."""

    __slots__ = ("_amount", "_text", "is_sum", "nanos", "quantity")

    type_name: ClassVar[str] = "kubernetes.Quantity"
    go_name: ClassVar[str] = "cel.Quantity"

    def __init__(
        self, quantity: Quantity, text: str | None = None, *, amount: Amount | None = None, is_sum: bool = False
    ) -> None:
        self.quantity = quantity
        self.nanos = quantity.nanos
        self.is_sum = is_sum
        self._text = text
        self._amount = amount

    @property
    def amount(self) -> Amount | None:
        """How the API machinery keeps it; None where that is a decimal."""
        if self._text is not None:
            self._amount, self._text = _amount(self._text), None
        return self._amount

    def same_as(self, other: object) -> bool:
        if type(other) is not CelQuantity or other.is_sum:
            raise no_such_overload()
        return self.nanos == other.nanos

    def __str__(self) -> str:
        return str(self.quantity)


def from_quantity(quantity: Quantity) -> CelQuantity:
    """A quantity of an API object, where it is written in its canonical form."""
    return CelQuantity(quantity, str(quantity))


def from_text(text: str) -> CelQuantity:
    """quantity(text)."""
    try:
        return CelQuantity(quantities.parse(text), text)
    except QuantityError as error:
        raise CelEvaluationError(str(error)) from None


def is_quantity(text: str) -> bool:
    try:
        quantities.parse(text)
    except QuantityError:
        return False
    return True


def _amount(text: str) -> Amount | None:
    """How the API machinery keeps a quantity with this text."""
    shape = _SHAPE.fullmatch(text)
    assert shape is not None, text
    sign, whole, fraction, suffix, exponent = shape.groups()
    whole, fraction = whole or "0", fraction or ""
    power, factor = 0, 1
    if suffix in _BINARY_POWERS:
        bits = _BINARY_POWERS[suffix]
        if fraction or 15 - len(whole) - bits * 3 // 10 - 1 < 0:
            return None
        factor = 1 << bits
    else:
        power = _DECIMAL_POWERS.get(suffix, 0) if not exponent else int(exponent)
        if len(whole) + len(fraction) > _MAX_DIGITS:
            return None
    power -= len(fraction)
    value = int(whole + fraction) * factor
    return (-value if sign == "-" else value, power) if power >= -9 and value <= MAX_INT else None


def compare_to(left: CelQuantity, right: CelQuantity) -> int:
    return (left.nanos > right.nanos) - (left.nanos < right.nanos)


def is_greater_than(left: CelQuantity, right: CelQuantity) -> bool:
    return left.nanos > right.nanos


def is_less_than(left: CelQuantity, right: CelQuantity) -> bool:
    return left.nanos < right.nanos


def sign(quantity: CelQuantity) -> int:
    return (quantity.nanos > 0) - (quantity.nanos < 0)


def as_approximate_float(quantity: CelQuantity) -> float:
    if quantity.amount is None:
        return quantity.nanos / NANO
    value, power = quantity.amount
    return float(value) * float(f"1e{power}")


def _integer(quantity: CelQuantity) -> int | None:
    if quantity.amount is None or quantity.amount[1] < 0:
        return None
    value, power = quantity.amount
    scaled = int(value * 10**power)
    return scaled if MIN_INT <= scaled <= MAX_INT else None


def is_integer(quantity: CelQuantity) -> bool:
    return _integer(quantity) is not None


def as_integer(quantity: CelQuantity) -> int:
    value = _integer(quantity)
    if value is None:
        raise CelEvaluationError("cannot convert value to integer")
    return value


def add(left: CelQuantity, right: CelQuantity) -> CelQuantity:
    amount = _add_amounts(left.amount, right.amount)
    return CelQuantity(left.quantity + right.quantity, amount=amount, is_sum=True)


def subtract(left: CelQuantity, right: CelQuantity) -> CelQuantity:
    negated = (-right.amount[0], right.amount[1]) if right.amount is not None else None
    amount = _add_amounts(left.amount, negated)
    return CelQuantity(left.quantity - right.quantity, amount=amount, is_sum=True)


def _add_amounts(left: Amount | None, right: Amount | None) -> Amount | None:
    if left is None or right is None:
        return None
    if right[0] == 0 or left[0] == 0:
        return left if right[0] == 0 else right
    power = min(left[1], right[1])
    total = left[0] * 10 ** (left[1] - power) + right[0] * 10 ** (right[1] - power)
    return (int(total), power) if MIN_INT <= total <= MAX_INT else None


def _from_int(value: int) -> CelQuantity:
    return CelQuantity(quantities.from_int(value, Notation.DECIMAL_EXPONENT), amount=(value, 0))


_Q = "kubernetes.Quantity"

FUNCTIONS: tuple[CelFunction, ...] = (
    function("quantity", overload("string_to_quantity", f"(string) -> {_Q}", from_text)),
    function("isQuantity", overload("is_quantity_string", "(string) -> bool", is_quantity)),
    function("sign", overload("quantity_sign", f"({_Q}) -> int", sign)),
    function("isGreaterThan", overload("quantity_is_greater_than", f"{_Q}.({_Q}) -> bool", is_greater_than)),
    function("isLessThan", overload("quantity_is_less_than", f"{_Q}.({_Q}) -> bool", is_less_than)),
    function("compareTo", overload("quantity_compare_to", f"{_Q}.({_Q}) -> int", compare_to)),
    function("asApproximateFloat", overload("quantity_get_float", f"{_Q}.() -> double", as_approximate_float)),
    function("asInteger", overload("quantity_get_int", f"{_Q}.() -> int", as_integer)),
    function("isInteger", overload("quantity_is_integer", f"{_Q}.() -> bool", is_integer)),
    function(
        "add",
        overload("quantity_add", f"{_Q}.({_Q}) -> {_Q}", add),
        overload("quantity_add_int", f"{_Q}.(int) -> {_Q}", lambda left, value: add(left, _from_int(value))),
    ),
    function(
        "sub",
        overload("quantity_sub", f"{_Q}.({_Q}) -> {_Q}", subtract),
        overload("quantity_sub_int", f"{_Q}.(int) -> {_Q}", lambda left, value: subtract(left, _from_int(value))),
    ),
)
