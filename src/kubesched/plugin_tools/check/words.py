"""The words a plugin knows: label keys, values, resource names and numbers that stand in its source and arguments.

A plugin that looks at the label `example.com/quiet` says nothing about clusters that never have it. What it looks at
stands in its text, so clusters are drawn with these words in them.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass

_KEY = re.compile(r"([a-z0-9.-]{1,60}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,60}[A-Za-z0-9])?")
_MOST_WORDS = 40
_LARGEST = 10_000


@dataclass(frozen=True, slots=True)
class Words:
    """In the order in which they occur, each once."""

    texts: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    keys: tuple[str, ...] = ()
    """Labels and annotations that it was seen to ask for."""
    values: tuple[str, ...] = ()
    """What it was seen to compare their values with."""

    @property
    def resources(self) -> tuple[str, ...]:
        """Those that can be the name of an extended resource."""
        return tuple(text for text in self.texts if "/" in text and not text.startswith("kubernetes.io/"))


def words_of(source: str, class_name: str, args: object = None) -> Words:
    """From the text of a module, as far as the class uses it and without docstrings, and from its arguments."""
    found = [*_in_arguments(args), *_in_source(source, class_name)]
    texts = dict.fromkeys(word for word in found if isinstance(word, str) and _KEY.fullmatch(word))
    numbers = dict.fromkeys(int(word) for word in found if not isinstance(word, str) and abs(word) <= _LARGEST)
    return Words(tuple(texts)[:_MOST_WORDS], tuple(numbers)[:_MOST_WORDS])


def _in_source(source: str, class_name: str) -> Iterator[str | float]:
    for part in _used_by(ast.parse(source), class_name):
        said = {id(node.value) for node in ast.walk(part) if isinstance(node, ast.Expr)}
        for node in ast.walk(part):
            if isinstance(node, ast.Constant) and id(node) not in said and isinstance(node.value, str | int | float):
                yield node.value


def _used_by(module: ast.Module, name: str) -> Iterator[ast.stmt]:
    """The class, and whatever else of the module it names, directly or not."""
    parts: dict[str, ast.stmt] = {}
    for part in module.body:
        parts.update(dict.fromkeys(_names_given_by(part), part))
    wanted, seen = [name], set[str]()
    while wanted:
        current = wanted.pop(0)
        if current in seen or current not in parts:
            continue
        seen.add(current)
        part = parts[current]
        yield part
        wanted.extend(node.id for node in ast.walk(part) if isinstance(node, ast.Name))


def _names_given_by(part: ast.stmt) -> list[str]:
    if isinstance(part, ast.ClassDef | ast.FunctionDef):
        return [part.name]
    targets = part.targets if isinstance(part, ast.Assign) else [part.target] if isinstance(part, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _in_arguments(args: object) -> Iterator[str | float]:
    if isinstance(args, str | int | float):
        yield args
    elif isinstance(args, dict):
        for key, value in args.items():
            yield from _in_arguments(key)
            yield from _in_arguments(value)
    elif isinstance(args, list | tuple | set | frozenset):
        for value in args:
            yield from _in_arguments(value)
    elif dataclasses.is_dataclass(args) and not isinstance(args, type):
        for entry in dataclasses.fields(args):
            yield from _in_arguments(getattr(args, entry.name))
