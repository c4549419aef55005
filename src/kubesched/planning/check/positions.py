"""In which line of which file an object stands, and a field of it: for those who show a problem where it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from kubesched.k8s.manifest_files import files_of
from kubesched.k8s.model.kubernetes_yaml import KubernetesLoader


@dataclass(frozen=True, slots=True)
class Position:
    file: str
    line: int
    """From 1."""


class Positions:
    """Of the objects in these files; built when it is asked for the first time."""

    def __init__(self, sources: Iterable[str], relative_to: Path | None = None) -> None:
        self._sources = tuple(sources)
        self._base = relative_to
        self._known: dict[tuple[str, str, str], Position] | None = None

    def of(self, kind: str, namespace: str, name: str) -> Position | None:
        if self._known is None:
            self._known = dict(self._all())
        return self._known.get((kind, namespace, name)) or self._known.get((kind, "", name))

    def _all(self) -> Iterator[tuple[tuple[str, str, str], Position]]:
        for source in self._sources:
            for file in files_of(source):
                yield from self._in(Path(file))

    def _in(self, path: Path) -> Iterator[tuple[tuple[str, str, str], Position]]:
        try:
            documents = list(yaml.compose_all(path.read_text(), Loader=KubernetesLoader))
        except (OSError, UnicodeDecodeError, yaml.YAMLError):
            return  # whoever reads the objects says what is wrong
        shown = str(path.relative_to(self._base)) if self._base and path.is_relative_to(self._base) else str(path)
        for document in documents:
            for node in _objects(document):
                kind, metadata = _text(node, "kind"), _child(node, "metadata")
                key = (kind, _text(metadata, "namespace"), _text(metadata, "name"))
                yield key, Position(shown, node.start_mark.line + 1)


def _objects(node: yaml.Node | None) -> Iterator[yaml.Node]:
    if node is None:
        return
    items = _child(node, "items")
    if isinstance(items, yaml.SequenceNode):
        yield from items.value
    elif isinstance(node, yaml.MappingNode):
        yield node


def _child(node: yaml.Node | None, name: str) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if getattr(key, "value", None) == name:
                found: yaml.Node = value
                return found
    return None


def _text(node: yaml.Node | None, name: str) -> str:
    child = _child(node, name)
    return str(child.value) if isinstance(child, yaml.ScalarNode) else ""
