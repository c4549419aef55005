"""In which line of which file an object stands, and a field of it: for those who show a problem where it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from kubesched.k8s.loaded_cluster import files_of
from kubesched.k8s.model.kubernetes_yaml import KubernetesLoader


@dataclass(frozen=True, slots=True)
class Position:
    file: str
    line: int
    """From 1."""


FieldPath = tuple[str | int, ...]


def path_of_spec(kind: str) -> FieldPath:
    """Where the pod's spec stands in an object of a kind."""
    if kind == "Pod":
        return ("spec",)
    above = ("spec", "jobTemplate") if kind == "CronJob" else ()
    return (*above, "spec", "template", "spec")


_FIELDS: dict[str, tuple[FieldPath, ...]] = {
    "NodeResourcesFit": (("containers", 0, "resources", "requests"), ("containers", 0, "resources")),
    "NodeAffinity": (("nodeSelector",), ("affinity", "nodeAffinity")),
    "InterPodAffinity": (("affinity", "podAntiAffinity"), ("affinity", "podAffinity")),
    "PodTopologySpread": (("topologySpreadConstraints",),),
    "NodePorts": (("containers", 0, "ports"),),
    "TaintToleration": (("tolerations",),),
    "SchedulingGates": (("schedulingGates",),),
}
"""By plugin, the fields of a pod's spec that it looks at."""


def fields_of(plugins: Iterable[str]) -> list[FieldPath]:
    """The fields that decide, where these plugins reject a pod; of whichever kind makes it."""
    specs = [path_of_spec(kind) for kind in ("Deployment", "CronJob", "Pod")]
    return [(*spec, *field) for plugin in plugins for field in _FIELDS.get(plugin, ()) for spec in specs]


class Positions:
    """Of the objects in these files; built when it is asked for the first time."""

    def __init__(self, sources: Iterable[str], relative_to: Path | None = None) -> None:
        self._sources = tuple(sources)
        self._base = relative_to
        self._known: dict[tuple[str, str, str], tuple[str, yaml.Node]] | None = None

    def of(self, kind: str, namespace: str, name: str, paths: Iterable[FieldPath] = ()) -> Position | None:
        """Of the first of these fields of the object that is written there; else of the object itself."""
        if self._known is None:
            self._known = dict(self._all())
        found = self._known.get((kind, namespace, name)) or self._known.get((kind, "", name))
        if found is None:
            return None
        file, node = found
        written = (_field(node, path) for path in paths)
        line = next((one for one in written if one is not None), node.start_mark.line)
        return Position(file, line + 1)

    def _all(self) -> Iterator[tuple[tuple[str, str, str], tuple[str, yaml.Node]]]:
        for source in self._sources:
            for file in files_of(source):
                yield from self._in(Path(file))

    def _in(self, path: Path) -> Iterator[tuple[tuple[str, str, str], tuple[str, yaml.Node]]]:
        try:
            documents = list(yaml.compose_all(path.read_text(), Loader=KubernetesLoader))
        except (OSError, UnicodeDecodeError, yaml.YAMLError):
            return  # whoever reads the objects says what is wrong
        shown = str(path.relative_to(self._base)) if self._base and path.is_relative_to(self._base) else str(path)
        for document in documents:
            for node in _objects(document):
                kind, metadata = _text(node, "kind"), _child(node, "metadata")
                key = (kind, _text(metadata, "namespace"), _text(metadata, "name"))
                yield key, (shown, node)


def _objects(node: yaml.Node | None) -> Iterator[yaml.Node]:
    if node is None:
        return
    items = _child(node, "items")
    if isinstance(items, yaml.SequenceNode):
        yield from items.value
    elif isinstance(node, yaml.MappingNode):
        yield node


def _field(node: yaml.Node, path: FieldPath) -> int | None:
    """In which line the field stands, from 0: that of its name."""
    line: int | None = None
    for part in path:
        if isinstance(part, int):
            entries = node.value if isinstance(node, yaml.SequenceNode) else []
            if part >= len(entries):
                return None
            node = entries[part]
            line = node.start_mark.line
            continue
        pairs = node.value if isinstance(node, yaml.MappingNode) else []
        found = next(((key, value) for key, value in pairs if getattr(key, "value", None) == part), None)
        if found is None:
            return None
        line, node = found[0].start_mark.line, found[1]
    return line


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
