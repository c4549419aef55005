"""Writes values as Go would: numbers, quoted strings, and whole values in messages.

Next: `library.standard` and `library.strings` use these.
"""

from __future__ import annotations

import math
from decimal import Decimal

from kubesched.k8s.cel.values.scalars import NANOS_PER_SECOND, CelDuration, CelOptional, TypeValue, Uint

_QUOTED = {
    "\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v", '"': r"\"", "\\": r"\\",
}  # fmt: skip


def general_double(value: float) -> str:
    """The shortest text that reads back as `value`, with an exponent when that is large or small (%g)."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1.0, value) < 0 else "0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    point = len(digits) + exponent - 1
    if -4 <= point < 6:
        return fixed_double(value)
    text = "".join(map(str, digits))
    mantissa = text[0] + ("." + text[1:] if len(text) > 1 else "")
    return f"{'-' if sign else ''}{mantissa}e{'-' if point < 0 else '+'}{abs(point):02d}"


def fixed_double(value: float) -> str:
    """The shortest text that reads back as `value`, never with an exponent (%f of the shortest digits)."""
    if not math.isfinite(value):
        return general_double(value)
    return format(Decimal(repr(value)).normalize(), "f") if value else ("-0" if math.copysign(1, value) < 0 else "0")


def quote(text: str) -> str:
    """A Go string literal (%q)."""
    return '"' + "".join(_quoted(char) for char in text) + '"'


def _quoted(char: str) -> str:
    if char in _QUOTED:
        return _QUOTED[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def seconds_text(duration: CelDuration) -> str:
    """A duration as decimal seconds: 5400s, 0.000000002s."""
    whole, rest = divmod(abs(duration.nanos), NANOS_PER_SECOND)
    seconds = whole + rest / 1e9
    return f"{'-' if duration.nanos < 0 else ''}{fixed_double(float(seconds))}s"


def plain(value: object) -> str:
    """A value in the middle of a message (%v)."""
    if value is None:
        return "null"
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is float:
        return general_double(value)
    if type(value) is Uint:
        return str(int(value))
    if type(value) is list:
        return "[" + ", ".join(map(plain, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{plain(_plain_key(key))}: {plain(item)}" for key, item in value.items()) + "}"
    if type(value) is CelDuration:
        return seconds_text(value)
    if type(value) is CelOptional:
        return f"optional({plain(value.value)})" if value.has_value else "optional.none()"
    return value.name if type(value) is TypeValue else str(value)


def _plain_key(key: object) -> object:
    """Boolean keys are stored under an enumeration whose value is the key."""
    return getattr(key, "value", key)
