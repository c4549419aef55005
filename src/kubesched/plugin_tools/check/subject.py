"""What is tried, and on what: a plugin's factory with its arguments and the words it knows, and cases.

A case is a cluster, a pod that seeks a node, and changes that may come. All plain manifests, so it can be shown,
written down and taken apart. Those of a given cluster are one for each of its pending pods.

A new plugin is made for every trial, with arguments of its own: nothing that one trial does reaches the next. Plugins
from outside are tried as the engine sees them, with the checks of `kubesched.scheduler.plugin_loading` in front.

Its words are label keys, values, resource names and numbers that stand in its source and arguments. A plugin that looks
at the label `example.com/quiet` says nothing about clusters that never have it, so clusters are drawn with these words
in them.

Next: `drawing`, which makes cases; `asking`, which builds one up; `tracing` for the words that a plugin asks for while
it runs.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kubesched.framework import Handle, PluginFactory
from kubesched.framework.extension_points import Plugin
from kubesched.scheduler.plugin_loading.checked_plugin import OutsidePlugin
from kubesched.scheduler.plugin_loading.construction import construct, decoded_args
from kubesched.scheduler.plugin_loading.outside_plugins import OutsidePlugins, plugins_from_classes
from kubesched.scheduler.plugins.registry import REGISTRY

Manifest = dict[str, Any]

SUBJECT_POD = "asking"
"""The name of the pod that seeks a node, in drawn cases."""


@dataclass(frozen=True, slots=True)
class DrawnChange:
    """An object comes, becomes other than it was, or goes (`new` is None). Which one, `kind` and `name` say."""

    kind: str
    name: str
    namespace: str
    new: Manifest | None

    def is_about(self, item: Manifest) -> bool:
        metadata = item["metadata"]
        return (item["kind"], metadata["name"], metadata.get("namespace", "")) == (
            self.kind,
            self.name,
            self.namespace,
        )

    @classmethod
    def to(cls, item: Manifest) -> DrawnChange:
        return cls(item["kind"], item["metadata"]["name"], item["metadata"].get("namespace", ""), item)

    @classmethod
    def removal(cls, item: Manifest) -> DrawnChange:
        return cls(item["kind"], item["metadata"]["name"], item["metadata"].get("namespace", ""), None)


@dataclass(frozen=True, slots=True)
class Case:
    pod: Manifest
    objects: tuple[Manifest, ...]
    visitor: Manifest
    """A pod that is put on nodes and taken off again."""
    changes: tuple[DrawnChange, ...] = ()

    @property
    def nodes(self) -> tuple[Manifest, ...]:
        return tuple(item for item in self.objects if item["kind"] == "Node")

    def after(self, change: DrawnChange) -> Case:
        """The case as it is once the change has come."""
        if change.new is not None and change.is_about(self.pod):
            return replace(self, pod=change.new)
        position = next((at for at, item in enumerate(self.objects) if change.is_about(item)), len(self.objects))
        came = () if change.new is None else (change.new,)
        return replace(self, objects=(*self.objects[:position], *came, *self.objects[position + 1 :]))

    def as_record(self) -> dict[str, Any]:
        """For reports."""
        return {"pod": self.pod, "objects": list(self.objects)}


_MOST_CASES = 50


def cases_of(objects: Iterable[Manifest]) -> list[Case]:
    found = [_with_namespace(item) for item in objects]
    pending = [item for item in found if item["kind"] == "Pod" and not item.get("spec", {}).get("nodeName")]
    return [Case(pod, tuple(item for item in found if item is not pod), _visitor(pod)) for pod in pending[:_MOST_CASES]]


def _with_namespace(item: Manifest) -> Manifest:
    copied = deepcopy(item)
    if copied["kind"] == "Pod":
        copied["metadata"].setdefault("namespace", "default")
        copied.setdefault("spec", {}).setdefault("containers", [])
    return copied


def _visitor(pod: Manifest) -> Manifest:
    copied = deepcopy(pod)
    copied["metadata"] |= {"name": "visitor", "uid": "uid-visitor"}
    return copied


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


@dataclass(frozen=True, slots=True)
class Subject:
    name: str
    factory: PluginFactory
    plugin_class: type
    args: object = None
    words: Words = field(default_factory=Words)
    origin: str = ""
    """The file, for reports; empty if it is in-tree."""
    reload_args: Any = None
    """What the configuration has for it: another Python makes the same plugin from the origin and this."""
    can_reload: bool = False

    def made(self, handle: Handle) -> tuple[Plugin, object]:
        """A new plugin, and the arguments it was given."""
        args = deepcopy(self.args)
        return self.factory(args, handle), args


def in_tree_subject(name: str, args: object = None) -> Subject:
    factory = REGISTRY[name]
    assert isinstance(factory, type)
    return Subject(name, factory, factory, args, _words(factory, args))


def subject_of(plugin_class: type, args: Any = None) -> Subject:
    """A plugin given as its class; `args` as the configuration would have them. Raises `ConfigError`."""
    (subject,) = outside_subjects(plugins_from_classes([plugin_class]), lambda _name: args)
    return subject


def outside_subjects(outside: OutsidePlugins, args_of: Any, *, from_files: bool = False) -> list[Subject]:
    """All plugins of the set; `args_of` gives what the configuration has for a plugin's name."""
    return [
        _outside(name, outside.classes[name], outside.origins[name], args_of(name), from_files=from_files)
        for name in outside.classes
    ]


def _outside(name: str, plugin_class: type, origin: str, args: Any, *, from_files: bool) -> Subject:
    decoded = decoded_args(plugin_class, args, origin)

    def factory(own_args: Any, handle: Handle) -> Plugin:
        made: Plugin = OutsidePlugin(construct(plugin_class, own_args, handle, origin), origin)
        return made

    words = _words(plugin_class, decoded, origin if from_files else "")
    return Subject(name, factory, plugin_class, decoded, words, origin, args, from_files)


def _words(plugin_class: type, args: object, file: str = "") -> Words:
    try:
        found = file or inspect.getsourcefile(plugin_class) or ""
        source = Path(found).read_text(encoding="utf-8")
    except (OSError, TypeError, UnicodeDecodeError):
        source = ""
    return words_of(source, plugin_class.__name__, args)
