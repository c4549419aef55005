"""Cuts an expression into tokens: the longest match wins, keywords before identifiers.

What is no token is reported and skipped, so that the parser still sees the rest.

Next: `parser` reads the tokens, `literals` decodes numbers and strings.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kubesched.k8s.cel.syntax.source import SourceText

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
