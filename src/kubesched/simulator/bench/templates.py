"""Template files: one Kubernetes object in YAML, with `{{ … }}` where objects made from it differ.

A file is parsed once. What stands between braces is cut out before and filled in for each object, so that thousands of
objects cost no more YAML. A plain scalar that was filled in is read again (`80{{ .Index }}` is a number); a quoted one
stays a text.

Between braces stand numbers, the fields `.Index` and `.Count`, and arithmetic on them: this much of Go's template
language is what workload files use; anything else is refused. Arithmetic is that of scheduler_perf: in floating point,
cut to a whole number by the functions whose names end in `Int`.

Next: `object_factory`, which makes typed objects from what comes out here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

import yaml

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.kubernetes_yaml import KubernetesLoader, check_bounds, key_text, yaml_problem
from kubesched.simulator.bench.operations import WorkloadError

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


class ExpressionError(KubeschedError, ValueError):
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


Manifest = dict[str, Any]
Fill = Callable[[tuple[str, ...]], Any]
"""From the values of all expressions to a piece of the manifest."""

_BRACES = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_FIRST_HOLE = 0xE000
"""An expression becomes a character of the private use area while the YAML is parsed."""
_MAX_HOLES = 0x1900
_HOLE = re.compile(f"[{chr(_FIRST_HOLE)}-{chr(_FIRST_HOLE + _MAX_HOLES - 1)}]")


@dataclass(frozen=True, slots=True)
class Template:
    """One file. `values` are those of its expressions, in order; `manifest` is the same for the same values."""

    path: str
    kind: str
    api_version: str
    expressions: tuple[Expression, ...]
    in_name: frozenset[int]
    """Which of the expressions stand in `metadata.name`: objects that differ only there are otherwise the same."""
    _fill: Fill

    def values(self, index: int = 0, count: int = 1) -> tuple[str, ...]:
        if not self.expressions:
            return ()
        fields: Fields = {"Index": index, "Count": count}
        return tuple(print_number(self._evaluate(expression, fields)) for expression in self.expressions)

    def manifest(self, values: tuple[str, ...] = ()) -> Manifest:
        """A new manifest; its parts are shared where nothing is filled in."""
        found: Manifest = self._fill(values)
        return dict(found) if not self.expressions else found

    def _evaluate(self, expression: Expression, fields: Fields) -> Number:
        try:
            return expression(fields)
        except ExpressionError as problem:
            raise WorkloadError(self.path, "", str(problem)) from None


def load_template(path: Path) -> Template:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise WorkloadError(str(path), "", str(getattr(problem, "strerror", None) or problem)) from None
    return parse_template(text, str(path))


def parse_template(text: str, path: str) -> Template:
    expressions: list[Expression] = []

    def cut_out(match: re.Match[str]) -> str:
        try:
            expressions.append(parse_expression(match[1]))
        except ExpressionError as problem:
            raise WorkloadError(path, "", str(problem)) from None
        if len(expressions) > _MAX_HOLES:
            raise WorkloadError(path, "", f"more than {_MAX_HOLES} expressions")
        return chr(_FIRST_HOLE + len(expressions) - 1)

    if _HOLE.search(text):
        raise WorkloadError(path, "", "characters of Unicode's private use area are not allowed")
    node = _compose(_BRACES.sub(cut_out, text), path)
    if not isinstance(node, yaml.MappingNode):
        raise WorkloadError(path, "", "not a Kubernetes object: a mapping with apiVersion and kind is expected")
    fill = _fill_of(node)
    found = fill(tuple("0" for _ in expressions))
    kind, api_version = found.get("kind"), found.get("apiVersion")
    for field, value in (("kind", kind), ("apiVersion", api_version)):
        if not isinstance(value, str) or not value:
            raise WorkloadError(path, field, "a text is required")
    return Template(path, str(kind), str(api_version), tuple(expressions), _holes_in_name(node), fill)


def _holes_in_name(node: yaml.Node) -> frozenset[int]:
    for field in ("metadata", "name"):
        if not isinstance(node, yaml.MappingNode):
            return frozenset()
        node = next((value for key, value in node.value if key.value == field), yaml.ScalarNode("", ""))
    return frozenset(ord(hole) - _FIRST_HOLE for hole in _HOLE.findall(str(node.value)))


def _compose(text: str, path: str) -> yaml.Node | None:
    try:
        check_bounds(text)
        found: yaml.Node | None = yaml.compose(text, Loader=KubernetesLoader)
    except yaml.YAMLError as problem:
        raise WorkloadError(path, "", yaml_problem(problem)) from None
    return found


def _fill_of(node: yaml.Node) -> Fill:
    """What fills in this part of the file; a part without expressions is made once."""
    if not _has_holes(node):
        value = _constant(node)
        return lambda values: value
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    if isinstance(node, yaml.SequenceNode):
        items = [_fill_of(item) for item in node.value]
        return lambda values: [item(values) for item in items]
    pairs = [(_fill_of(key), _fill_of(value)) for key, value in node.value]
    return lambda values: {key_text(key(values)): value(values) for key, value in pairs}


def _has_holes(node: yaml.Node) -> bool:
    if isinstance(node, yaml.ScalarNode):
        return _HOLE.search(node.value) is not None
    if isinstance(node, yaml.SequenceNode):
        return any(_has_holes(item) for item in node.value)
    return any(_has_holes(key) or _has_holes(value) for key, value in node.value)


def _constant(node: yaml.Node) -> Any:
    loader = KubernetesLoader("")
    try:
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _scalar(node: yaml.ScalarNode) -> Fill:
    text, is_plain = node.value, not node.style

    def filled(values: tuple[str, ...]) -> Any:
        whole = _HOLE.sub(lambda match: values[ord(match[0]) - _FIRST_HOLE], text)
        return _plain(whole) if is_plain else whole

    return filled


@lru_cache(maxsize=4096)
def _plain(text: str) -> Any:
    """A scalar without quotes, as YAML reads it."""
    node = yaml.compose(text, Loader=KubernetesLoader)
    return _constant(node) if isinstance(node, yaml.ScalarNode) else text
