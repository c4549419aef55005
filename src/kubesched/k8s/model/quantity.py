"""Kubernetes quantities: exact values, parsed and printed as the API machinery does.

A quantity is an integer number of nano-units plus the notation it was written in. Whoever asks for fewer digits gets
the value rounded away from zero, so that asking for a little never becomes asking for nothing. What an int64 cannot
hold leaves as the largest int64: asking for too much stays asking for too much.

Next: `requests` adds them up for a pod.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from kubesched.k8s.errors import KubeschedError

NANO = 10**9
MAX_INT64 = 2**63 - 1

_SHAPE = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)")
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]{1,19})")
_LARGEST_EXPONENT = 1000
_MOST_DIGITS = 4000
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_NAMES = {power: suffix for suffix, power in _DECIMAL.items()}
_BINARY_NAMES = {power: suffix for suffix, power in _BINARY.items()}

_WRONG_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_WRONG_NUMBER = "unable to parse numeric part of quantity"
_WRONG_SUFFIX = "unable to parse quantity's suffix"


class QuantityError(KubeschedError, ValueError):
    """A text is not a quantity."""


class Notation(Enum):
    """How a quantity was written, and so how it is printed."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


@dataclass(frozen=True, slots=True, order=False)
class Quantity:
    """An exact amount. Equality and order look at the value alone, not at how it was written."""

    nanos: int
    notation: Notation = Notation.DECIMAL_SI
    written: str = ""
    """The text it was read from, if that is how it is printed again."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.nanos == other.nanos

    def __hash__(self) -> int:
        return hash(self.nanos)

    def __lt__(self, other: Quantity) -> bool:
        return self.nanos < other.nanos

    def __le__(self, other: Quantity) -> bool:
        return self.nanos <= other.nanos

    def __gt__(self, other: Quantity) -> bool:
        return self.nanos > other.nanos

    def __ge__(self, other: Quantity) -> bool:
        return self.nanos >= other.nanos

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos + other.nanos, self.notation if self.nanos else other.notation)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nanos - other.nanos, self.notation if self.nanos else other.notation)

    def __bool__(self) -> bool:
        return self.nanos != 0

    @property
    def value(self) -> int:
        """Whole units, rounded away from zero."""
        return _capped(_divide_away_from_zero(self.nanos, NANO))

    @property
    def milli_value(self) -> int:
        """Thousandths, rounded away from zero."""
        return _capped(_divide_away_from_zero(self.nanos, NANO // 1000))

    @property
    def is_whole(self) -> bool:
        return self.nanos % NANO == 0

    def __str__(self) -> str:
        if self.written:
            return self.written
        if self.nanos == 0:
            return "0"
        if self.notation is Notation.BINARY_SI and self.is_whole and abs(self.nanos) >= 1024 * NANO:
            return _print_binary(self.nanos // NANO)
        return _print_decimal(self.nanos, self.notation is Notation.DECIMAL_EXPONENT)


@lru_cache(maxsize=65536, typed=True)
def parse(text: str | int | float) -> Quantity:
    """The quantity that a manifest's text, or number, stands for."""
    source = (text if isinstance(text, str) else repr(text)).strip()
    shape = _SHAPE.fullmatch(source) if source else None
    if shape is None:
        raise QuantityError(_WRONG_FORMAT)
    sign, whole, fraction, suffix = (
        shape.group(1),
        shape.group(2).lstrip("0") or "0",
        shape.group(3) or "",
        shape.group(4),
    )
    power, notation = _read_suffix(suffix)
    digits = whole + fraction
    is_short = _is_short(len(digits), len(fraction), power, notation)
    has_digits = bool(shape.group(2) or fraction)
    if len(digits) > _MOST_DIGITS or not (has_digits or is_short):
        raise QuantityError(_WRONG_NUMBER)
    nanos, printed_as = _scale(int(digits), len(fraction), power, notation)
    is_kept = is_short and _is_kept(digits, power - len(fraction), notation)
    return Quantity(-nanos if sign == "-" else nanos, printed_as, source if is_kept else "")


def from_milli(milli: int) -> Quantity:
    return Quantity(milli * (NANO // 1000))


def from_int(units: int, notation: Notation = Notation.DECIMAL_SI) -> Quantity:
    return Quantity(units * NANO, notation)


def _read_suffix(suffix: str) -> tuple[int, Notation]:
    """The power (of two for binary suffixes, else of ten) that a suffix stands for."""
    if suffix in _BINARY:
        return _BINARY[suffix], Notation.BINARY_SI
    if suffix in _DECIMAL:
        return _DECIMAL[suffix], Notation.DECIMAL_SI
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None:
        raise QuantityError(_WRONG_SUFFIX)
    power = max(-_LARGEST_EXPONENT, min(_LARGEST_EXPONENT, int(exponent.group(1))))
    return power, Notation.DECIMAL_EXPONENT


def _is_short(n_digits: int, places: int, power: int, notation: Notation) -> bool:
    """Whether the API machinery reads this many digits straight into an int64. Only then it may keep the text, and
    takes no digits at all for zero."""
    if notation is Notation.BINARY_SI:
        return places == 0 and n_digits + power * 3 // 10 < 15
    return n_digits <= 18 and power - places >= -9


def _is_kept(digits: str, power: int, notation: Notation) -> bool:
    """Whether the API machinery takes a text for canonical (it looks less closely than it prints)."""
    if notation is Notation.BINARY_SI:
        return int(digits) % 8 != 0
    return power % 3 == 0 and not digits.endswith("000") and not digits.startswith("0")


def _scale(magnitude: int, places: int, power: int, notation: Notation) -> tuple[int, Notation]:
    """Nano-units, and the notation to print them in."""
    if notation is not Notation.BINARY_SI:
        return _shift(magnitude, power - places + 9), notation
    nanos = _divide_away_from_zero((magnitude << power) * NANO, 10**places)
    nanos = min(nanos, MAX_INT64 * NANO)
    return nanos, Notation.DECIMAL_SI if 0 < nanos < NANO else Notation.BINARY_SI


def _shift(magnitude: int, power: int) -> int:
    if power >= 0:
        return int(magnitude * 10**power)
    return _divide_away_from_zero(magnitude, 10**-power)


def _divide_away_from_zero(number: int, divisor: int) -> int:
    return -(-number // divisor) if number > 0 else number // divisor


def _capped(number: int) -> int:
    return max(-MAX_INT64 - 1, min(MAX_INT64, number))


def _print_binary(units: int) -> str:
    power = 0
    while units % 1024 == 0 and power < 60:
        units //= 1024
        power += 10
    return f"{units}{_BINARY_NAMES[power]}" if power else str(units)


def _print_decimal(nanos: int, with_exponent: bool) -> str:
    power = -9
    while nanos % 1000 == 0 and (with_exponent or power < 18):
        nanos //= 1000
        power += 3
    if with_exponent:
        return f"{nanos}e{power}" if power else str(nanos)
    return f"{nanos}{_DECIMAL_NAMES[power]}"
