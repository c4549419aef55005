"""Reads tokens into a tree, by the grammar of the CEL specification with optional syntax.

Faults of meaning (a reserved word, a number too large, a malformed macro) are collected and reading goes on; the first
fault of grammar ends it. Messages follow cel-go, whose parser may add consequences of that first fault.

Next: `checker` types the tree.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.k8s.cel import lexer, macros
from kubesched.k8s.cel.errors import NOWHERE, CelCompileError, SourceText
from kubesched.k8s.cel.lexer import END, CelToken
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
    lexer.NUM_FLOAT, lexer.NUM_INT, lexer.NUM_UINT, lexer.STRING, lexer.BYTES, lexer.IDENTIFIER,
)  # fmt: skip
_NUMBERS = frozenset({lexer.NUM_INT, lexer.NUM_FLOAT})


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
        self._tokens = lexer.tokenize(source)
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
        if name.kind == lexer.ESC_IDENTIFIER:
            self._source.report(name.offset, "unsupported syntax: '`'")
        elif name.kind != lexer.IDENTIFIER:
            raise self._no_member_name(name)
        self._advance()
        if is_optional:
            return CallExpr(dot.offset, "_?._", None, [operand, LiteralExpr(name.offset, name.text)])
        if self._token.kind == "(" and name.kind == lexer.IDENTIFIER:
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
        if token.kind in (lexer.IDENTIFIER, "."):
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
        except lexer.LiteralError as error:
            self._source.report(offset, str(error))
            return ErrorExpr(offset)

    def _name(self) -> Expr:
        dot = self._accept(".")
        token = self._expect(lexer.IDENTIFIER)
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
        while self._tokens[position].kind == "." and self._tokens[position + 1].kind == lexer.IDENTIFIER:
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
            name = self._accept(lexer.ESC_IDENTIFIER) or self._expect(lexer.IDENTIFIER, lexer.ESC_IDENTIFIER)
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
    lexer.NUM_INT: lexer.integer_literal,
    lexer.NUM_UINT: lexer.unsigned_literal,
    lexer.NUM_FLOAT: lexer.double_literal,
    lexer.STRING: lexer.string_literal,
    lexer.BYTES: lexer.bytes_literal,
    "true": lambda _: True,
    "false": lambda _: False,
    "null": lambda _: None,
}
_NAMED_KINDS = frozenset(
    {lexer.NUM_FLOAT, lexer.NUM_INT, lexer.NUM_UINT, lexer.STRING, lexer.BYTES, lexer.IDENTIFIER, END}
    | {lexer.ESC_IDENTIFIER}
)


def _shown(kind: str) -> str:
    return kind if kind in _NAMED_KINDS else f"'{kind}'"
