"""Reads tokens into a tree, by the grammar of the CEL specification with optional syntax.

Faults of meaning (a reserved word, a number too large, a malformed macro) are collected and reading goes on; the first
fault of grammar ends it. Messages follow cel-go, whose parser may add consequences of that first fault.

The text is cut into tokens first, and those that are literals are decoded: numbers, strings and bytes with their
escapes. The longest match wins, keywords before identifiers. What is no token is reported and skipped, so that the
parser still sees the rest. A literal without a value raises LiteralError with the words of cel-go; the parser knows the
place.

Next: `checker` types the tree.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from kubesched.k8s.cel import macros
from kubesched.k8s.cel.errors import NOWHERE, CelCompileError, SourceText
from kubesched.k8s.cel.macros import MacroError
from kubesched.k8s.cel.nodes import (
    CallExpr,
    ErrorExpr,
    Expr,
    ListExpr,
    LiteralExpr,
    MapEntry,
    MapExpr,
    NameExpr,
    SelectExpr,
    StructExpr,
)
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


_MAX_DEPTH = 250
_MAX_CODE_POINTS = 100_000

_OPERATORS = {
    "||": (1, "_||_"),
    "&&": (2, "_&&_"),
    **dict.fromkeys(("<", "<=", ">=", ">", "==", "!="), (3, "")),
    "in": (3, "@in"),
    **dict.fromkeys(("+", "-"), (4, "")),
    **dict.fromkeys(("*", "/", "%"), (5, "")),
}
"""How tightly each operator binds, and its function's name where that is not the sign between underscores."""

_NO_OPERATOR = (0, "")

_RESERVED = frozenset(
    (
        "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
        "package", "namespace", "null", "return", "true", "var", "void", "while",
    )
)  # fmt: skip
_OPERAND = (
    "'['", "'{'", "'('", "'.'", "'-'", "'!'", "'true'", "'false'", "'null'",
    NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER,
)  # fmt: skip
_NUMBERS = frozenset({NUM_INT, NUM_FLOAT})


class _GrammarError(Exception):
    """The tokens are no expression. The message is already reported."""


def parse(source: SourceText) -> Expr:
    """The tree of the expression; raises CelCompileError with all that is wrong."""
    if len(source.text) > _MAX_CODE_POINTS:
        message = f"expression code point size exceeds limit: size: {len(source.text)}, limit {_MAX_CODE_POINTS}"
        source.report(NOWHERE, message)
        source.raise_issues()
    parser = _Parser(source)
    try:
        tree = parser.whole()
    except _GrammarError:
        source.raise_issues()
        raise CelCompileError("compilation failed") from None
    source.raise_issues()
    return tree


class _Parser:
    def __init__(self, source: SourceText) -> None:
        self._source = source
        self._tokens = tokenize(source)
        self._position = 0
        self._depth = 0

    def whole(self) -> Expr:
        tree = self._expression()
        self._expect(END)
        return tree

    # -- tokens ------------------------------------------------------------------------------------------------------

    @property
    def _token(self) -> CelToken:
        return self._tokens[self._position]

    def _advance(self) -> CelToken:
        token = self._tokens[self._position]
        self._position += 1
        return token

    def _accept(self, kind: str) -> CelToken | None:
        return self._advance() if self._token.kind == kind else None

    def _expect(self, kind: str, *alternatives: str) -> CelToken:
        if self._token.kind == kind:
            return self._token if kind == END else self._advance()
        raise self._unexpected(*(_shown(expected) for expected in (kind, *alternatives)))

    def _unexpected(self, *expected: str) -> _GrammarError:
        token = self._token
        wanted = expected[0] if len(expected) == 1 else "{" + ", ".join(expected) + "}"
        follower = self._tokens[min(self._position + 1, len(self._tokens) - 1)]
        verb = "extraneous" if token.kind != END and _shown(follower.kind) in expected else "mismatched"
        return self._grammar_error(f"{verb} input '{token.text}' expecting {wanted}")

    def _grammar_error(self, message: str) -> _GrammarError:
        self._source.report(self._token.offset, f"Syntax error: {message}")
        return _GrammarError()

    # -- operators ---------------------------------------------------------------------------------------------------

    def _expression(self) -> Expr:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            self._source.report(NOWHERE, f"expression recursion limit exceeded: {_MAX_DEPTH}")
            raise _GrammarError
        condition = self._operation(0)
        question = self._accept("?")
        if question is not None:
            when_true = self._operation(0)
            self._expect(":")
            when_false = self._expression()
            condition = CallExpr(question.offset, "_?_:_", None, [condition, when_true, when_false])
        self._depth -= 1
        return condition

    def _operation(self, floor: int) -> Expr:
        """Operators that bind tighter than `floor`.

        A chain of one logical operator becomes a single call with all its terms: they are evaluated in the same order.
        """
        left, length = self._unary(), 0
        chain: CallExpr | None = None
        while True:
            sign = self._token
            precedence, function = _OPERATORS.get(sign.kind, _NO_OPERATOR)
            if precedence <= floor:
                return left
            self._advance()
            right = self._operation(precedence)
            if chain is not None and chain.function == function:
                chain.args.append(right)
                continue
            call = CallExpr(sign.offset, function or f"_{sign.kind}_", None, [left, right])
            chain = call if sign.kind in ("&&", "||") else None
            left, length = call, self._longer(length)

    def _longer(self, length: int) -> int:
        if length >= _MAX_DEPTH:
            self._source.report(NOWHERE, "max recursion depth exceeded")
            raise _GrammarError
        return length + 1

    def _unary(self) -> Expr:
        first = self._token
        if first.kind not in ("!", "-"):
            return self._member()
        if first.kind == "-" and self._tokens[self._position + 1].kind in _NUMBERS:
            return self._member()
        count = 0
        while self._accept(first.kind):
            count += 1
        operand = self._member()
        if count % 2 == 0:
            return operand
        return CallExpr(first.offset, "!_" if first.kind == "!" else "-_", None, [operand])

    # -- members -----------------------------------------------------------------------------------------------------

    def _member(self) -> Expr:
        operand, length = self._primary(), 0
        while self._token.kind in (".", "["):
            operand = self._selection(operand) if self._token.kind == "." else self._index(operand)
            length = self._longer(length)
        return operand

    def _selection(self, operand: Expr) -> Expr:
        dot = self._advance()
        is_optional = self._accept("?") is not None
        name = self._token
        if name.kind == ESC_IDENTIFIER:
            self._source.report(name.offset, "unsupported syntax: '`'")
        elif name.kind != IDENTIFIER:
            raise self._no_member_name(name)
        self._advance()
        if is_optional:
            return CallExpr(dot.offset, "_?._", None, [operand, LiteralExpr(name.offset, name.text)])
        if self._token.kind == "(" and name.kind == IDENTIFIER:
            opening = self._advance()
            return self._call(opening.offset, name.text, operand, self._arguments())
        return SelectExpr(dot.offset, operand, name.text)

    def _no_member_name(self, name: CelToken) -> _GrammarError:
        if name.kind in ("true", "false", "null"):
            return self._grammar_error(f"mismatched input '{name.text}' expecting IDENTIFIER")
        text = "" if name.kind == END else name.text
        return self._grammar_error(f"no viable alternative at input '.{text}'")

    def _index(self, operand: Expr) -> Expr:
        opening = self._advance()
        function = "_[?_]" if self._accept("?") else "_[_]"
        index = self._expression()
        self._expect("]")
        return CallExpr(opening.offset, function, None, [operand, index])

    def _arguments(self) -> list[Expr]:
        arguments: list[Expr] = []
        if self._accept(")"):
            return arguments
        while True:
            arguments.append(self._expression())
            if not self._accept(","):
                break
        self._expect(")", ",")
        return arguments

    def _call(self, offset: int, function: str, target: Expr | None, args: list[Expr]) -> Expr:
        try:
            expanded = macros.expand(offset, function, target, args)
        except MacroError as error:
            self._source.report(error.offset, error.message)
            return ErrorExpr(offset)
        return expanded if expanded is not None else CallExpr(offset, function, target, args)

    # -- primaries ---------------------------------------------------------------------------------------------------

    def _primary(self) -> Expr:
        token = self._token
        if token.kind in _LITERALS or (token.kind == "-" and self._tokens[self._position + 1].kind in _NUMBERS):
            return self._literal()
        if token.kind in (IDENTIFIER, "."):
            return self._name()
        if self._accept("("):
            inner = self._expression()
            self._expect(")")
            return inner
        if self._accept("["):
            return self._list(token.offset)
        if self._accept("{"):
            return self._map(token.offset)
        raise self._unexpected(*_OPERAND)

    def _literal(self) -> Expr:
        token = self._advance()
        offset, text = token.offset, token.text
        if token.kind == "-":
            token = self._advance()
            text += token.text
        try:
            return LiteralExpr(offset, _LITERALS[token.kind](text))
        except LiteralError as error:
            self._source.report(offset, str(error))
            return ErrorExpr(offset)

    def _name(self) -> Expr:
        dot = self._accept(".")
        token = self._expect(IDENTIFIER)
        start = dot.offset if dot is not None else token.offset
        if self._is_struct():
            return self._struct(token)
        name = "." + token.text if dot is not None else token.text
        opening = self._accept("(")
        args = self._arguments() if opening is not None else []
        if token.text in _RESERVED:
            self._source.report(start, f"reserved identifier: {token.text}")
            return ErrorExpr(start)
        if opening is None:
            return NameExpr(token.offset, name)
        return self._call(opening.offset, name, None, args)

    def _is_struct(self) -> bool:
        """Whether what follows a name is `.more.names {`."""
        position = self._position
        while self._tokens[position].kind == "." and self._tokens[position + 1].kind == IDENTIFIER:
            position += 2
        return self._tokens[position].kind == "{"

    def _struct(self, first: CelToken) -> Expr:
        names = [first.text]
        while self._accept("."):
            names.append(self._advance().text)
        opening = self._advance()
        fields: list[tuple[str, MapEntry]] = []
        while self._token.kind != "}":
            is_optional = self._accept("?") is not None
            name = self._accept(ESC_IDENTIFIER) or self._expect(IDENTIFIER, ESC_IDENTIFIER)
            colon = self._expect(":")
            key = LiteralExpr(colon.offset, name.text.strip("`"))
            fields.append((name.text.strip("`"), MapEntry(key, self._expression(), is_optional)))
            if not self._accept(","):
                break
        self._expect("}", ",")
        return StructExpr(opening.offset, ".".join(names), fields)

    def _list(self, offset: int) -> Expr:
        elements: list[Expr] = []
        optional: set[int] = set()
        while self._token.kind != "]":
            if self._accept("?"):
                optional.add(len(elements))
            elements.append(self._expression())
            if not self._accept(","):
                break
        self._expect("]", ",")
        return ListExpr(offset, elements, frozenset(optional))

    def _map(self, offset: int) -> Expr:
        entries: list[MapEntry] = []
        while self._token.kind != "}":
            is_optional = self._accept("?") is not None
            key = self._expression()
            self._expect(":")
            entries.append(MapEntry(key, self._expression(), is_optional))
            if not self._accept(","):
                break
        self._expect("}", ",")
        return MapExpr(offset, entries)


_LITERALS: dict[str, Callable[[str], object]] = {
    NUM_INT: integer_literal,
    NUM_UINT: unsigned_literal,
    NUM_FLOAT: double_literal,
    STRING: string_literal,
    BYTES: bytes_literal,
    "true": lambda _: True,
    "false": lambda _: False,
    "null": lambda _: None,
}
_NAMED_KINDS = frozenset({NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER, END} | {ESC_IDENTIFIER})


def _shown(kind: str) -> str:
    return kind if kind in _NAMED_KINDS else f"'{kind}'"
