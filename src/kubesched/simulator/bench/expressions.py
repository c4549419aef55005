"""The `{{ … }}` of template files: numbers, the fields `.Index` and `.Count`, and arithmetic on them.

This much of Go's template language is what workload files use; anything else is refused. Arithmetic is that of
scheduler_perf: in floating point, cut to a whole number by the functions whose names end in `Int`.

Next: `templates`, which finds expressions in files.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import NoReturn

Number = int | float
Fields = Mapping[str, Number]
Expression = Callable[[Fields], Number]

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<field>\.[A-Za-z_]\w*)|(?P<name>[A-Za-z_]\w*)|(?P<paren>[()]))"
)
_AT_LEAST_TWO = math.inf


def _divide(a: Number, b: Number) -> float:
    if b == 0:
        raise ExpressionError("division by zero")
    return a / b


def _mod(a: Number, b: Number) -> int:
    if int(b) == 0:
        raise ExpressionError("division by zero")
    return int(math.fmod(int(a), int(b)))


_FUNCTIONS: dict[str, tuple[Callable[..., Number], float]] = {
    "AddFloat": (lambda *numbers: float(sum(numbers)), _AT_LEAST_TWO),
    "AddInt": (lambda *numbers: int(sum(numbers)), _AT_LEAST_TWO),
    "SubtractFloat": (lambda a, b: float(a - b), 2),
    "SubtractInt": (lambda a, b: int(a - b), 2),
    "MultiplyFloat": (lambda *numbers: float(math.prod(numbers)), _AT_LEAST_TWO),
    "MultiplyInt": (lambda *numbers: int(math.prod(numbers)), _AT_LEAST_TWO),
    "DivideFloat": (_divide, 2),
    "DivideInt": (lambda a, b: int(_divide(a, b)), 2),
    "Mod": (_mod, 2),
}


class ExpressionError(ValueError):
    """An expression cannot be understood, or has no value."""


def parse_expression(text: str) -> Expression:
    """A function of the fields, from what stands between the braces."""
    return _Parser(text).whole()


def print_number(value: Number) -> str:
    """As Go prints it: whole numbers without a point."""
    return str(int(value)) if value == int(value) else repr(float(value))


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._position = 0

    def whole(self) -> Expression:
        found = self._operation()
        if self._position != len(self._tokens):
            self._refuse(f"unexpected {self._tokens[self._position][1]!r}")
        return found

    def _operation(self) -> Expression:
        """A function with its arguments, or a single value."""
        kind, token = self._next()
        if kind != "name":
            return self._value(kind, token)
        if token not in _FUNCTIONS:
            self._refuse(f"unknown function {token!r}")
        function, n_arguments = _FUNCTIONS[token]
        arguments = []
        while self._position < len(self._tokens) and self._tokens[self._position][1] != ")":
            arguments.append(self._value(*self._next()))
        if len(arguments) < 2 if n_arguments == _AT_LEAST_TWO else len(arguments) != n_arguments:
            self._refuse(f"{token} does not take {len(arguments)} arguments")
        return lambda fields: function(*(argument(fields) for argument in arguments))

    def _value(self, kind: str, token: str) -> Expression:
        if kind == "name" or token == ")":
            self._refuse(f"unexpected {token!r}")
        if kind == "number":
            number: Number = float(token) if "." in token else int(token)
            return lambda fields: number
        if kind == "field":
            return self._field(token[1:])
        inside = self._operation()
        if self._next() != ("paren", ")"):
            self._refuse("a closing parenthesis is missing")
        return inside

    def _field(self, name: str) -> Expression:
        def value(fields: Fields) -> Number:
            if name not in fields:
                raise ExpressionError(f"{{{{{self._text}}}}}: unknown field .{name}")
            return fields[name]

        return value

    def _next(self) -> tuple[str, str]:
        if self._position == len(self._tokens):
            self._refuse("it ends too early")
        self._position += 1
        return self._tokens[self._position - 1]

    def _refuse(self, problem: str) -> NoReturn:
        raise ExpressionError(f"{{{{{self._text}}}}}: {problem}")


def _tokens(text: str) -> list[tuple[str, str]]:
    found = []
    position, end = 0, len(text.rstrip())
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise ExpressionError(f"{{{{{text}}}}}: not understood at {text[position:].strip()!r}")
        kind = match.lastgroup
        assert kind is not None
        found.append((kind, match[kind]))
        position = match.end()
    return found
