"""Decodes the text of literal tokens: integers, doubles, strings and bytes with their escapes.

Raises LiteralError with the words of cel-go; the parser knows the place.

Next: `parser` puts the values into nodes.
"""

from __future__ import annotations

import math
import re

from kubesched.k8s.cel.values.scalars import MAX_INT, MAX_UINT, MIN_INT, Uint

_SIMPLE_ESCAPES = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?",
}  # fmt: skip
_ESCAPE = re.compile(r"\\(?:([xX])([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.S)


class LiteralError(ValueError):
    """A literal token that stands for no value."""


def integer(text: str) -> int:
    value = _unsigned(text.removeprefix("-"))
    value = -value if text.startswith("-") else value
    if not MIN_INT <= value <= MAX_INT:
        raise LiteralError("invalid int literal")
    return value


def unsigned(text: str) -> Uint:
    value = _unsigned(text[:-1])
    if value > MAX_UINT:
        raise LiteralError("invalid uint literal")
    return Uint(value)


def double(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise LiteralError("invalid double literal")
    return value


def string(token: str) -> str:
    body, is_raw = _body(token)
    return body if is_raw else _ESCAPE.sub(_escaped_character, body)


def octets(token: str) -> bytes:
    """A bytes literal, with its leading b: hex and octal escapes are bytes, all else is UTF-8."""
    body, is_raw = _body(token[1:])
    if is_raw:
        return body.encode()
    parts: list[bytes] = []
    position = 0
    for match in _ESCAPE.finditer(body):
        parts.append(body[position : match.start()].encode())
        parts.append(_escaped_octets(match))
        position = match.end()
    parts.append(body[position:].encode())
    return b"".join(parts)


def _unsigned(text: str) -> int:
    return int(text[2:], 16) if text.startswith("0x") else int(text)


def _body(token: str) -> tuple[str, bool]:
    text = token.replace("\r\n", "\n").replace("\r", "\n")
    is_raw = text[0] in "rR"
    if is_raw:
        text = text[1:]
    quotes = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    return text[quotes:-quotes], is_raw


def _escaped_character(match: re.Match[str]) -> str:
    _, hexadecimal, short, long, octal, simple = match.groups()
    if simple is not None:
        return _SIMPLE_ESCAPES[simple]
    code = int(octal, 8) if octal is not None else int(hexadecimal or short or long, 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise LiteralError("invalid unicode code point")
    return chr(code)


def _escaped_octets(match: re.Match[str]) -> bytes:
    _, hexadecimal, short, long, octal, simple = match.groups()
    if short is not None or long is not None:
        raise LiteralError("unable to unescape string")
    if simple is not None:
        return _SIMPLE_ESCAPES[simple].encode()
    return bytes((int(octal, 8) if octal is not None else int(hexadecimal, 16),))
