"""Template files: one Kubernetes object in YAML, with `{{ … }}` where objects made from it differ.

A file is parsed once. What stands between braces is cut out before and filled in for each object, so that thousands of
objects cost no more YAML. A plain scalar that was filled in is read again (`80{{ .Index }}` is a number); a quoted one
stays a text.

Next: `object_factory`, which makes typed objects from what comes out here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from kubesched.k8s.model.kubernetes_yaml import KubernetesLoader, check_bounds, key_text
from kubesched.simulator.bench.errors import WorkloadError
from kubesched.simulator.bench.expressions import (
    Expression,
    ExpressionError,
    Fields,
    Number,
    parse_expression,
    print_number,
)

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
    """Which of the expressions stand in `metadata.name`: objects that differ only there are alike."""
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
        mark = getattr(problem, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise WorkloadError(path, where, f"not YAML: {getattr(problem, 'problem', None) or problem}") from None
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
