"""What a variant changes: the configuration, plugins, feature gates, objects, requests, nodes.

A patch is written as kustomize's are: a manifest with what is to be otherwise. Lists whose entries have names are
merged by name, other lists are replaced, and null takes a field away.

Next: `comparing`, which runs the variants; `kubesched.planning.resizing` for other requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import yaml

from kubesched.k8s.loaded_cluster import Document, read_file, read_objects
from kubesched.k8s.model.kubernetes_yaml import load_documents
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.partial_reading import plain_problem
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.planning.catalogue import Catalogue
from kubesched.planning.catalogue_files import read_catalogue
from kubesched.planning.compare.metrics import CompareError
from kubesched.planning.new_nodes import node_from_offer
from kubesched.planning.plan.request import without_nodes
from kubesched.planning.resizing import Resizing, read_resizing
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.simulator import loading
from kubesched.simulator.loading import SIMULATED_KINDS, SimulationInput

_NODES = re.compile(r"(\d{1,5})x(.+)")
_GATE = re.compile(r"([A-Za-z0-9]+)=(true|false)")


@dataclass(frozen=True, slots=True)
class ComparedVariant:
    name: str
    config: KubeSchedulerConfiguration
    source: str = ""
    plugin_files: tuple[str, ...] = ()
    resizing: Resizing | None = None
    added: SimulationInput | None = None
    """Objects in place of those of the same kind and name, or beside them; steps in place of all others."""
    patches: tuple[ObjectPatch, ...] = ()
    nodes: tuple[KubeObject, ...] = ()
    """In place of all nodes."""
    catalogue: Catalogue | None = None
    """What nodes cost, if it is not what they cost everywhere."""

    def apply(self, given: SimulationInput) -> SimulationInput:
        """Raises CompareError."""
        objects, steps = list(given.objects), given.steps
        if self.added is not None:
            changed = {(type(item), item.key): item for item in self.added.objects}
            objects = [changed.pop((type(item), item.key), item) for item in objects] + list(changed.values())
            steps = self.added.steps or steps
        for patch in self.patches:
            objects = patch.apply(objects)
        if self.resizing is not None:
            objects = self.resizing.apply(objects)
        if self.nodes:
            objects = [*self.nodes, *without_nodes(objects)]
        return replace(given, objects=tuple(objects), steps=steps)


def variant_of(
    name: str,
    config: Document = None,
    plugins: Sequence[str] = (),
    resize: str = "",
    objects: Sequence[Any] = (),
    patch: Sequence[str] = (),
    nodes: str = "",
    catalogue: str = "",
    feature_gates: Mapping[str, bool] | None = None,
    source: str = "",
) -> ComparedVariant:
    """Raises ConfigError, ResizeError, CatalogueError, InputError and CompareError."""
    resizing = None
    if resize:
        filename = resize.partition("@")[0]
        resizing = read_resizing(resize) if "*" in resize else read_resizing(resize, read_file(filename))
    found = GivenConfiguration.read(config, None, None, feature_gates).as_of_today().config
    prices = read_catalogue(catalogue) if catalogue else None
    return ComparedVariant(
        name,
        found,
        source or name,
        tuple(plugins),
        resizing,
        loading.load(read_objects(list(objects), SIMULATED_KINDS)) if objects else None,
        tuple(one for filename in patch for one in read_patches(filename)),
        tuple(_new_nodes(name, nodes, prices)) if nodes else (),
        prices,
    )


def feature_gates_of(text: str) -> dict[str, bool]:
    """`A=true;B=false`. Raises CompareError."""
    found = {}
    for part in text.split(";"):
        match = _GATE.fullmatch(part.strip())
        if match is None:
            raise CompareError(f'feature-gates: "{part}" is not of the form NAME=true')
        found[match[1]] = match[2] == "true"
    return found


def _new_nodes(variant: str, text: str, catalogue: Catalogue | None) -> Iterable[KubeObject]:
    """`6xm7i.xlarge;2xc7i.large`: of a shape that several zones offer, each zone gets its turn."""
    if catalogue is None:
        raise CompareError(f"variant {variant}: nodes={text} needs a catalogue=FILE to take them from")
    numbers: dict[str, int] = {}
    for part in text.split(";"):
        match = _NODES.fullmatch(part.strip())
        if match is None:
            raise CompareError(f'variant {variant}: nodes: "{part}" is not of the form 6xSHAPE')
        options = [one for one in catalogue.options() if match[2] in (one.name, one.shape.name)]
        if not options:
            raise CompareError(f"variant {variant}: nodes: {match[2]} in {catalogue[match[2]].name} cannot be had")
        for n in range(int(match[1])):
            option = options[n % len(options)]
            numbers[option.name] = numbers.get(option.name, 0) + 1
            yield from node_from_offer(option, numbers[option.name])


# -- patches -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ObjectPatch:
    """Of one object, or, without a name, of all objects of a kind."""

    source: str
    kind: str
    namespace: str
    name: str
    fields: Mapping[str, Any]

    def apply(self, objects: Sequence[KubeObject]) -> list[KubeObject]:
        """Raises CompareError if there is no such object, or if it would be none any more."""
        found = [self._patched(item) if self._is_about(item) else item for item in objects]
        if all(before is after for before, after in zip(objects, found, strict=True)):
            raise CompareError(f"{self.source}: {self._title} is not there, or is so already")
        return found

    @property
    def _title(self) -> str:
        return f"{self.kind} {f'{self.namespace}/' if self.namespace else ''}{self.name or '(any)'}"

    def _is_about(self, item: KubeObject) -> bool:
        if type(item).__name__ != self.kind or (self.name and item.name != self.name):
            return False
        return not self.namespace or not item.namespace or item.namespace == self.namespace

    def _patched(self, item: KubeObject) -> KubeObject:
        written = msgspec.to_builtins(item)
        changed = merged(written, self.fields)
        if changed == written:
            return item
        try:
            return msgspec.convert(changed, type(item))
        except msgspec.ValidationError as problem:
            raise CompareError(f"{self.source}: {self.kind} {item.key}: {plain_problem(problem)}") from None


def read_patches(filename: str) -> list[ObjectPatch]:
    """Raises CompareError and InputError."""
    try:
        documents = [one for one in load_documents(read_file(filename)) if one is not None]
    except yaml.YAMLError as problem:
        raise CompareError(f"{filename}: not YAML: {' '.join(str(problem).split())}") from None
    found = []
    for document in documents:
        kind = document.get("kind") if isinstance(document, dict) else None
        if not isinstance(kind, str):
            raise CompareError(f"{filename}: a patch needs a kind, and what is to be otherwise")
        metadata = document.get("metadata") or {}
        fields = {key: value for key, value in document.items() if key not in ("apiVersion", "kind")}
        names = (str(metadata.get("namespace", "")), str(metadata.get("name", "")))
        found.append(ObjectPatch(filename, kind, *names, fields))
    return found


def merged(written: Any, patch: Any) -> Any:
    """What is written, with what the patch says."""
    if isinstance(written, Mapping) and isinstance(patch, Mapping):
        kept = {key: value for key, value in written.items() if patch.get(key, key) is not None}
        return kept | {key: merged(written.get(key), value) for key, value in patch.items() if value is not None}
    if _are_named(written) and _are_named(patch):
        named = {one["name"]: one for one in written}
        return list((named | {one["name"]: merged(named.get(one["name"]), one) for one in patch}).values())
    return patch


def _are_named(entries: Any) -> bool:
    return isinstance(entries, list | tuple) and all(isinstance(one, Mapping) and "name" in one for one in entries)
