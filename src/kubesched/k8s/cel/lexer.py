"""Cuts an expression into tokens, and decodes those that are literals: numbers, strings and bytes with their escapes.

The longest match wins, keywords before identifiers. What is no token is reported and skipped, so that the parser still
sees the rest. A literal without a value raises LiteralError with the words of cel-go; the parser knows the place.

Next: `parser` reads the tokens and puts the values into nodes.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from kubesched.k8s.cel.errors import SourceText
from kubesched.k8s.cel.values import MAX_INT, MAX_UINT, MIN_INT, Uint

NUM_FLOAT = "NUM_FLOAT"
NUM_INT = "NUM_INT"
NUM_UINT = "NUM_UINT"
STRING = "STRING"
BYTES = "BYTES"
IDENTIFIER = "IDENTIFIER"
ESC_IDENTIFIER = "ESC_IDENTIFIER"
END = "<EOF>"

KEYWORDS = frozenset({"in", "true", "false", "null"})

_ESCAPE = r"""\\(?:[abfnrtv"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"""
_RAW_STRING = "|".join(
    (r'[rR]""".*?"""', r"[rR]'''.*?'''", r'[rR]"[^"\n\r]*"', r"[rR]'[^'\n\r]*'"),
)
_PLAIN_STRING = "|".join(
    (
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
    )
)
_STRING = f"(?:{_RAW_STRING}|{_PLAIN_STRING})"
_EXPONENT = r"[eE][+-]?[0-9]+"
_TOKEN = re.compile(
    rf"""
    (?P<BLANK>(?:[\t\ \r\n\f]+|//[^\n]*)+)
  | (?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:{_EXPONENT})?|[0-9]+{_EXPONENT}|\.[0-9]+(?:{_EXPONENT})?)
  | (?P<NUM_UINT>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])
  | (?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)
  | (?P<BYTES>[bB]{_STRING})
  | (?P<STRING>{_STRING})
  | (?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<ESC_IDENTIFIER>`[A-Za-z0-9_.\-/\ ]+`)
  | (?P<SIGN>==|!=|<=|>=|&&|\|\||[<>\[\]{{}}().,\-!?:+*/%])
    """,
    re.VERBOSE | re.DOTALL,
)
_STRING_BODY = {quote: re.compile(rf"(?:{_ESCAPE}|[^\\{quote}\n\r])*") for quote in "\"'"}
_HALF_OPERATORS = frozenset("|&=")


@dataclass(frozen=True, slots=True)
class CelToken:
    """A piece of the expression. `kind` is a name such as STRING, or the sign or keyword itself."""

    kind: str
    text: str
    offset: int


def tokenize(source: SourceText) -> list[CelToken]:
    """All tokens, ending with one of kind END; what is none is reported to `source`."""
    tokens: list[CelToken] = []
    text, position = source.text, 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            end = _end_of_garbage(text, position)
            source.report(position, f"Syntax error: token recognition error at: '{text[position:end]}'")
            position = end
            continue
        kind = str(match.lastgroup)
        if kind != "BLANK":
            tokens.append(_token(kind, match.group(), position))
        position = match.end()
    tokens.append(CelToken(END, END, len(text)))
    return tokens


def _token(kind: str, text: str, offset: int) -> CelToken:
    if kind == "SIGN" or text in KEYWORDS:
        return CelToken(text, text, offset)
    return CelToken(kind, text, offset)


def _end_of_garbage(text: str, start: int) -> int:
    """Up to and including the character at which no token could go on."""
    body = _STRING_BODY.get(text[start])
    if body is not None:
        broken = body.match(text, start + 1)
        end = (broken.end() if broken else start) + 1
        if text[end - 1 : end] == "\\":
            end += _length_of_broken_escape(text[end:])
        return min(end, len(text))
    if text[start] in _HALF_OPERATORS:
        return min(start + 2, len(text))
    return start + 1


def _length_of_broken_escape(rest: str) -> int:
    prefix = re.match(r"[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[0-3][0-7]?", rest)
    return (prefix.end() if prefix else 0) + 1


_SIMPLE_ESCAPES = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?",
}  # fmt: skip
_ESCAPE_SEQUENCE = re.compile(
    r"\\(?:([xX])([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.S
)


class LiteralError(ValueError):
    """A literal token that stands for no value."""


def integer_literal(text: str) -> int:
    value = _unsigned(text.removeprefix("-"))
    value = -value if text.startswith("-") else value
    if not MIN_INT <= value <= MAX_INT:
        raise LiteralError("invalid int literal")
    return value


def unsigned_literal(text: str) -> Uint:
    value = _unsigned(text[:-1])
    if value > MAX_UINT:
        raise LiteralError("invalid uint literal")
    return Uint(value)


def double_literal(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise LiteralError("invalid double literal")
    return value


def string_literal(token: str) -> str:
    body, is_raw = _body(token)
    return body if is_raw else _ESCAPE_SEQUENCE.sub(_escaped_character, body)


def bytes_literal(token: str) -> bytes:
    """A bytes literal, with its leading b: hex and octal escapes are bytes, all else is UTF-8."""
    body, is_raw = _body(token[1:])
    if is_raw:
        return body.encode()
    parts: list[bytes] = []
    position = 0
    for match in _ESCAPE_SEQUENCE.finditer(body):
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
