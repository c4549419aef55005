"""Values and their types as Go words them: messages of the real server are full of them.

Read ``kinds/field_errors.py`` for the errors about fields, which write values as JSON.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

_TYPES = {str: "string", bool: "bool", int: "int64", float: "float64", list: "[]interface {}"}
_ESCAPES = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
    '"': r"\"",
}
_JSON_KINDS = {list: "array", str: "string", bool: "bool", dict: "object", type(None): "null"}


def printed(value: Any) -> str:
    """A value as Go prints it plainly (``%v``)."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{name}:{printed(value[name])}" for name in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(printed(item) for item in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return _printed_number(value)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return _printed_number(float(value))  # what is no int64 has been read as a number with fractions
    return "<nil>" if value is None else str(value)


def _printed_number(value: float) -> str:
    """A number with fractions in its shortest form; with an exponent from a million on, and below a ten-thousandth."""
    if value == 0 or 1e-4 <= abs(value) < 1e6:
        return repr(value).removesuffix(".0")
    mantissa, _, exponent = f"{Decimal(repr(value)).normalize():e}".partition("e")
    return f"{mantissa}e{int(exponent):+03d}"


def as_text(value: Any) -> str:
    """A value where Go expects a text (``%s``)."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return "map[" + " ".join(f"{name}:{as_text(value[name])}" for name in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(as_text(item) for item in value) + "]"
    return "%!s(<nil>)" if value is None else f"%!s({type_name(value)}={printed(value)})"


def in_source(value: Any) -> str:
    """A value as Go would write it in source (``%#v``)."""
    if isinstance(value, dict):
        inner = ", ".join(f"{in_source(name)}:{in_source(value[name])}" for name in sorted(value))
        return f"map[string]interface {{}}{{{inner}}}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(in_source(item) for item in value) + "}"
    if isinstance(value, str):
        return quoted(value)
    return "interface {}(nil)" if value is None else printed(value)


def quoted(text: str) -> str:
    """A text as Go would write it in source (``%q``)."""
    if text.isprintable():
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return '"' + "".join(map(_quoted_letter, text)) + '"'


def _quoted_letter(letter: str) -> str:
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    if letter.isprintable():
        return letter
    code = ord(letter)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def type_name(value: Any) -> str:
    """The Go type that a value decodes to (``%T``)."""
    return _TYPES.get(type(value), "map[string]interface {}")


def json_kind(value: object) -> str:
    """What a value is called where it cannot be decoded: "cannot unmarshal array into ..."."""
    return _JSON_KINDS.get(type(value), "number")
