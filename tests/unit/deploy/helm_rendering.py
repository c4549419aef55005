"""Renders the chart in deploy/helm as helm does, for tests where helm is not installed: Go's templates, as far as the
chart uses them. Whatever it does not know is an error, never a guess.

What is there: actions with trimming, comments, `if`/`else if`/`else`, `with`, `range` over lists, `define`, variables,
pipelines, fields, and the functions in `_FUNCTIONS`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

_ACTION = re.compile(r"\{\{(-?)\s*(/\*.*?\*/|(?:\"(?:[^\"\\]|\\.)*\"|[^\"])*?)\s*(-?)\}\}", re.DOTALL)
_WORD = re.compile(r"\"(?:[^\"\\]|\\.)*\"|\(|\)|\||:=|[^\s()|]+")


class TemplateError(Exception):
    """The chart refuses its values, or uses what this renderer does not know."""


@dataclass
class Node:
    """Text, an action, or a block with its branches: [(condition, children), …]."""

    kind: str
    text: str = ""
    branches: list[tuple[str, list[Node]]] = field(default_factory=list)


def _tokens(source: str) -> Iterator[tuple[str, str]]:
    place, trims = 0, False
    for found in _ACTION.finditer(source):
        text = source[place : found.start()]
        text = text.lstrip() if trims else text
        yield "text", text.rstrip() if found[1] else text
        if not found[2].startswith("/*"):
            yield "action", found[2]
        place, trims = found.end(), bool(found[3])
    yield "text", source[place:].lstrip() if trims else source[place:]


def _parse(tokens: Iterator[tuple[str, str]], inside: bool = False) -> tuple[list[Node], str]:
    """Nodes until the end of the block, and the word that ended them."""
    nodes: list[Node] = []
    for kind, text in tokens:
        word, _, rest = text.partition(" ")
        if kind == "text":
            nodes.append(Node("text", text))
        elif word in ("end", "else"):
            assert inside, f"{word} outside of a block"
            return nodes, text
        elif word in ("if", "with", "range", "define"):
            nodes.append(_block(word, rest, tokens))
        else:
            nodes.append(Node("action", text))
    if inside:
        raise TemplateError("a block has no end")
    return nodes, ""


def _block(word: str, condition: str, tokens: Iterator[tuple[str, str]]) -> Node:
    block = Node(word)
    while True:
        children, ended_by = _parse(tokens, inside=True)
        block.branches.append((condition, children))
        if ended_by == "end":
            return block
        condition = ended_by.removeprefix("else").strip().removeprefix("if ") if " " in ended_by else "true"


def _is_true(value: Any) -> bool:
    return bool(value)


def _to_yaml(value: Any) -> str:
    """Sorted by key, lists not indented: as helm writes it."""
    return str(yaml.safe_dump(value, default_flow_style=False, sort_keys=True, width=10**6)).rstrip("\n")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def _required(message: str, value: Any) -> Any:
    if value in (None, ""):
        raise TemplateError(message)
    return value


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "toYaml": _to_yaml,
    "indent": lambda n, text: "\n".join(" " * n + line for line in text.split("\n")),
    "nindent": lambda n, text: "\n" + "\n".join(" " * n + line for line in text.split("\n")),
    "quote": lambda text: '"' + _shown(text).replace("\\", "\\\\").replace('"', '\\"') + '"',
    "default": lambda fallback, value=None: value if _is_true(value) else fallback,
    "required": _required,
    "not": lambda value: not _is_true(value),
    "trunc": lambda n, text: text[:n],
    "trimSuffix": lambda suffix, text: text.removesuffix(suffix),
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
}


class Chart:
    """The templates of one chart."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.defaults: dict[str, Any] = yaml.safe_load((folder / "values.yaml").read_text())
        self._chart = yaml.safe_load((folder / "Chart.yaml").read_text())
        self._defined: dict[str, list[Node]] = {}
        self._files: dict[str, list[Node]] = {}
        for path in sorted((folder / "templates").iterdir()):
            nodes, _ = _parse(_tokens(path.read_text()))
            self._files[path.name] = nodes
            for node in nodes:
                if node.kind == "define":
                    name, children = node.branches[0]
                    self._defined[name.strip('"')] = children

    def values(self, *given: dict[str, Any]) -> dict[str, Any]:
        found = self.defaults
        for one in given:
            found = _merged(found, one)
        return found

    def text(
        self, name: str, values: dict[str, Any], release: str = "kubesched", namespace: str = "kube-system"
    ) -> str:
        """One file as rendered."""
        chart = {
            "Name": self._chart["name"],
            "Version": self._chart["version"],
            "AppVersion": self._chart["appVersion"],
        }
        top = {"Values": values, "Release": {"Name": release, "Namespace": namespace}, "Chart": chart}
        return self._render(self._files[name], top, {"$": top})

    def objects(self, *given: dict[str, Any], **where: str) -> list[dict[str, Any]]:
        """All objects, with the defaults and these values over them."""
        values = self.values(*given)
        texts = [self.text(name, values, **where) for name in self._files if name.endswith(".yaml")]
        return [document for text in texts for document in yaml.safe_load_all(text) if document]

    def _render(self, nodes: list[Node], dot: Any, variables: dict[str, Any]) -> str:
        return "".join(self._one(node, dot, variables) for node in nodes)

    def _one(self, node: Node, dot: Any, variables: dict[str, Any]) -> str:
        if node.kind == "text":
            return node.text
        if node.kind == "define":
            return ""
        if node.kind == "action":
            return _shown(self._action(node.text, dot, variables))
        if node.kind == "range":
            (condition, children), *_ = node.branches
            items = self._evaluate(condition, dot, variables) or []
            return "".join(self._render(children, item, dict(variables)) for item in items)
        for condition, children in node.branches:
            value = True if condition == "true" else self._evaluate(condition, dot, variables)
            if _is_true(value):
                return self._render(children, value if node.kind == "with" else dot, dict(variables))
        return ""

    def _action(self, text: str, dot: Any, variables: dict[str, Any]) -> Any:
        name, is_set, expression = text.partition(":=")
        if is_set and name.strip().startswith("$"):
            variables[name.strip()] = self._evaluate(expression.strip(), dot, variables)
            return ""
        return self._evaluate(text, dot, variables)

    def _evaluate(self, expression: str, dot: Any, variables: dict[str, Any]) -> Any:
        piped: list[Any] = []
        for command in expression.split("|"):
            words = _WORD.findall(command)
            if words[0] == "include":
                piped = [self._render(self._defined[words[1].strip('"')], self._value(words[2], dot, variables), {})]
                continue
            if words[0] in _FUNCTIONS:
                arguments = [self._value(word, dot, variables) for word in words[1:]]
                piped = [_FUNCTIONS[words[0]](*arguments, *piped)]
                continue
            if len(words) != 1 or piped:
                raise TemplateError(f"not understood: {command.strip()}")
            piped = [self._value(words[0], dot, variables)]
        return piped[0]

    def _value(self, word: str, dot: Any, variables: dict[str, Any]) -> Any:
        if word.startswith('"'):
            return word[1:-1].replace('\\"', '"')
        if re.fullmatch(r"-?\d+", word):
            return int(word)
        root, _, path = word.partition(".")
        if root and root not in variables:
            raise TemplateError(f"not understood: {word}")
        value = variables[root] if root else dot
        for name in path.split(".") if path else ():
            value = value.get(name) if isinstance(value, dict) else None
        return value


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Maps are joined, everything else is replaced."""
    found = dict(below)
    for name, value in above.items():
        both = isinstance(value, dict) and isinstance(found.get(name), dict)
        found[name] = _merged(found[name], value) if both else value
    return found
