"""Kubernetes quantities and semantic versions: quantity(), semver(), their tests, comparisons and arithmetic.

The API machinery keeps small quantities as an int64 and a power of ten, large and binary fractions as a decimal, and
says "integer" only of the former. Its sums come back as another Go type, which == takes on its left side only. Both
can be seen from an expression, so both are kept here.

The order of versions is that of the specification: a pre-release comes before its release, build metadata counts for
nothing. With normalisation, a leading v, missing parts and leading zeros are forgiven.

Next: `strings`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from kubesched.k8s.cel.errors import CelEvaluationError, no_such_overload
from kubesched.k8s.cel.kinds import CelFunction, function, overload
from kubesched.k8s.cel.values import MAX_INT, MAX_UINT, MIN_INT, OpaqueValue, quote
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


_DIGITS = re.compile(r"[0-9]*")
_ALPHANUMERIC = re.compile(r"[0-9A-Za-z-]*")


class SemverError(ValueError):
    """A text is not a semantic version."""


@dataclass(frozen=True, slots=True, eq=False)
class Semver(OpaqueValue):
    """A semantic version. `prerelease` has its parts as they compare: numbers before texts."""

    type_name: ClassVar[str] = "kubernetes.Semver"
    go_name: ClassVar[str] = "cel.Semver"
    is_hashable: ClassVar[bool] = False

    text: str
    numbers: tuple[int, int, int]
    prerelease: tuple[tuple[int, int, str], ...]

    @property
    def rank(self) -> tuple[object, ...]:
        """What versions with the same numbers are ordered by."""
        return (not self.prerelease, self.prerelease)

    def same_as(self, other: object) -> bool:
        if type(other) is not Semver:
            raise no_such_overload()
        return self.numbers == other.numbers and self.prerelease == other.prerelease

    def __str__(self) -> str:
        return self.text


def parse(text: str) -> Semver:
    """The version that a text stands for; raises SemverError."""
    if not text:
        raise SemverError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise SemverError("No Major.Minor.Patch elements found")
    major, minor = _number(parts[0], "major"), _number(parts[1], "minor")
    rest, has_build, build = parts[2].partition("+")
    patch, has_prerelease, prerelease = rest.partition("-")
    numbers = (major, minor, _number(patch, "patch"))
    ranks = tuple(map(_prerelease_part, prerelease.split("."))) if has_prerelease else ()
    for part in build.split(".") if has_build else ():
        _check_build(part)
    return Semver(text, numbers, ranks)


def normalize(text: str) -> str:
    """The text without what a strict parser refuses but people write."""
    parts = [_without_leading_zeros(part) for part in text.removeprefix("v").split(".", 2)]
    if len(parts) < 3 and re.search(r"[+-]", parts[-1]):
        raise SemverError("short version cannot contain PreRelease/Build meta data")
    return ".".join(parts + ["0"] * (3 - len(parts)))


def _without_leading_zeros(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    return stripped if stripped[:1] in tuple("0123456789") else "0" + stripped


def _number(text: str, name: str) -> int:
    if not _DIGITS.fullmatch(text):
        raise SemverError(f"Invalid character(s) found in {name} number {quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise SemverError(f"{name.capitalize()} number must not contain leading zeroes {quote(text)}")
    return _unsigned(text)


def _unsigned(text: str) -> int:
    if not text:
        raise SemverError('strconv.ParseUint: parsing "": invalid syntax')
    if int(text) > MAX_UINT:
        raise SemverError(f"strconv.ParseUint: parsing {quote(text)}: value out of range")
    return int(text)


def _prerelease_part(text: str) -> tuple[int, int, str]:
    if not text:
        raise SemverError("Prerelease is empty")
    if _DIGITS.fullmatch(text):
        if len(text) > 1 and text[0] == "0":
            raise SemverError(f"Numeric PreRelease version must not contain leading zeroes {quote(text)}")
        return (0, _unsigned(text), "")
    if not _ALPHANUMERIC.fullmatch(text):
        raise SemverError(f"Invalid character(s) found in prerelease {quote(text)}")
    return (1, 0, text)


def _check_build(text: str) -> None:
    if not text:
        raise SemverError("Build meta data is empty")
    if not _ALPHANUMERIC.fullmatch(text):
        raise SemverError(f"Invalid character(s) found in build meta data {quote(text)}")


def version_from_text(text: str, is_normalized: bool = False) -> Semver:
    """semver(text) and semver(text, true)."""
    try:
        return parse(normalize(text) if is_normalized else text)
    except SemverError as error:
        raise CelEvaluationError(str(error)) from None


def is_semver(text: str, is_normalized: bool = False) -> bool:
    try:
        parse(normalize(text) if is_normalized else text)
    except SemverError:
        return False
    return True


def compare_versions(left: Semver, right: Semver) -> int:
    if left.numbers != right.numbers:
        return 1 if left.numbers > right.numbers else -1
    if left.prerelease == right.prerelease:
        return 0
    return 1 if left.rank > right.rank else -1


def _part(index: int, version: Semver) -> int:
    number = version.numbers[index]
    return number if number <= MAX_INT else number - 2**64


_S = "kubernetes.Semver"

VERSION_FUNCTIONS: tuple[CelFunction, ...] = (
    function(
        "semver",
        overload("string_to_semver", f"(string) -> {_S}", version_from_text),
        overload("string_bool_to_semver", f"(string, bool) -> {_S}", version_from_text),
    ),
    function(
        "isSemver",
        overload("is_semver_string", "(string) -> bool", is_semver),
        overload("is_semver_string_bool", "(string, bool) -> bool", is_semver),
    ),
    function(
        "isGreaterThan",
        overload(
            "semver_is_greater_than", f"{_S}.({_S}) -> bool", lambda left, right: compare_versions(left, right) > 0
        ),
    ),
    function(
        "isLessThan",
        overload("semver_is_less_than", f"{_S}.({_S}) -> bool", lambda left, right: compare_versions(left, right) < 0),
    ),
    function("compareTo", overload("semver_compare_to", f"{_S}.({_S}) -> int", compare_versions)),
    function("major", overload("semver_major", f"{_S}.() -> int", lambda version: _part(0, version))),
    function("minor", overload("semver_minor", f"{_S}.() -> int", lambda version: _part(1, version))),
    function("patch", overload("semver_patch", f"{_S}.() -> int", lambda version: _part(2, version))),
)
