"""`kubesched compare`: runs every variant with every seed over one scenario, and compares what comes of it.

A variant changes the configuration, plugins, feature gates, objects, requests or nodes. A patch is written as
kustomize's are: a manifest with what is to be otherwise. Lists whose entries have names are merged by name, other lists
are replaced, and null takes a field away.

Every variant meets the same cluster, workloads, scenario and seeds, so that differences are paired: what is left of
chance in them is small. Where the first seeds agree in everything, chance plays no part, and no more are run. Seeds can
be added until the intervals are narrow: they are looked at a few times that were fixed before, each time with the error
that O'Brien and Fleming's rule allows by then, so that looking often does not make anything more certain.

Next: `compare_metrics` for what is measured, `compare_report` for what is said about it, `resizing` for other requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from typing import Any

import msgspec
import yaml

from kubesched.k8s.loaded_cluster import Document, Objects, read_file, read_objects
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.kubernetes_yaml import load_documents, yaml_problem
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.partial_reading import plain_problem
from kubesched.k8s.model.spelling import did_you_mean
from kubesched.k8s.model.times import Span
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.planning.catalogue import Catalogue, NodePrices
from kubesched.planning.catalogue_files import GivenCatalogue, read_catalogue
from kubesched.planning.catalogue_files import catalogue as read_machines
from kubesched.planning.compare_metrics import CompareError, MeasuredRun, Metric, chosen_metrics
from kubesched.planning.compare_report import ComparedRun, ComparisonReport, Parting, first_difference, scores_at
from kubesched.planning.headroom import headroom_sets
from kubesched.planning.new_nodes import node_from_offer
from kubesched.planning.plan.request import without_nodes
from kubesched.planning.provenance import Provenance
from kubesched.planning.resizing import PodUsage, Resizing, read_resizing, read_usage
from kubesched.planning.statistics import LOOKS, allowed_error, can_look_often
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.scheduler.plugin_loading import assemble
from kubesched.simulator import loading
from kubesched.simulator.library import checked_input, span_option
from kubesched.simulator.loading import SIMULATED_KINDS, SimulationInput
from kubesched.simulator.many_runs import spread_over
from kubesched.simulator.options import SimulationOptions, several
from kubesched.simulator.report import SimulationReport
from kubesched.simulator.run import run_simulation
from kubesched.simulator.trial import LoadedWorld
from kubesched.simulator.virtual.cluster import Progress, VirtualCluster

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
    data = read_file(filename)
    try:
        documents = [one for one in load_documents(data) if one is not None]
    except yaml.YAMLError as problem:
        raise CompareError(f"{filename}: {yaml_problem(problem, data)}") from None
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


DEFAULT_SEEDS = 10
ENOUGH_TO_AGREE = 3
"""If so many seeds agree in everything, more would, too."""


@dataclass(frozen=True, slots=True)
class ComparedInput:
    """What all runs share."""

    given: SimulationInput
    options: SimulationOptions
    catalogue: Catalogue | None = None
    usage: PodUsage | None = None
    metrics: tuple[Metric, ...] = ()
    keep: tuple[str, ...] = ()
    """Room that is asked for in the end of each run."""


@dataclass(frozen=True, slots=True)
class VariantCase:
    variant: ComparedVariant
    seed: int


def run_variant(shared: ComparedInput, case: VariantCase) -> ComparedRun:
    """Wherever it is made."""
    variant = case.variant
    assembled = assemble(variant.config, variant.source, files=variant.plugin_files)
    cluster = _run(shared, case)
    report = SimulationReport(cluster, replace(shared.options, seed=case.seed))
    catalogue = variant.catalogue or shared.catalogue
    measured = MeasuredRun(
        cluster, report, assembled.config, assembled.registry, catalogue, shared.usage, case.seed, shared.keep
    )
    pods = [record for record in report.history.pods if not record.was_there]
    scheduled = sorted((one for one in pods if one.scheduled_s is not None), key=lambda one: one.scheduled_s or 0.0)
    placed = tuple((one.key, one.node) for one in scheduled)
    return ComparedRun(variant.name, case.seed, measured.values(shared.metrics), placed)


def _run(shared: ComparedInput, case: VariantCase, progress: Progress | None = None) -> VirtualCluster:
    variant = case.variant
    assembled = assemble(variant.config, variant.source, files=variant.plugin_files)
    return run_simulation(
        variant.apply(shared.given),
        assembled.config,
        replace(shared.options, seed=case.seed),
        source=variant.source,
        registry=assembled.registry,
        progress=progress,
    )


@dataclass(frozen=True, slots=True)
class HowMany:
    """How many seeds are run."""

    seeds: int = DEFAULT_SEEDS
    until_ci: float | None = None
    """Until each interval is at most this much wide to either side, of the metric's mean: 0.01."""

    def looks(self) -> Sequence[int]:
        """After how many seeds the runs are looked at; the last is the end."""
        if self.until_ci is not None:
            return LOOKS
        return (ENOUGH_TO_AGREE, self.seeds) if self.seeds > ENOUGH_TO_AGREE else (self.seeds,)


def compare_variants(
    shared: ComparedInput,
    variants: Sequence[ComparedVariant],
    baseline: str,
    how_many: HowMany,
    *,
    metrics: Sequence[str] = (),
    jobs: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> ComparisonReport:
    """Raises CompareError and ConfigError before anything is run."""
    names = [variant.name for variant in variants]
    if len(names) < 2 or len(set(names)) < len(names):
        raise CompareError("at least two variants with names of their own are needed")
    if baseline not in names:
        raise CompareError(f'baseline "{baseline}" is none of the variants {", ".join(names)}')
    if how_many.until_ci is not None and not can_look_often():
        raise CompareError("adding seeds until the intervals are narrow needs scipy: pip install '.[plan]' in a clone")
    for variant in variants:
        assemble(variant.config, variant.source, files=variant.plugin_files)
    headroom_sets(shared.keep, shared.given.objects)  # says what is wrong with it, before anything is run
    currency = _currency(shared, variants)
    shared = replace(
        shared,
        metrics=chosen_metrics(
            metrics,
            has_prices=bool(currency),
            has_usage=shared.usage is not None,
            is_resized=any(variant.resizing is not None for variant in variants),
            keeps=bool(shared.keep),
        ),
    )
    first = [VariantCase(variant, 0) for variant in variants]
    runs: list[ComparedRun] = []
    for look in how_many.looks():
        seeds = range(len(runs) // len(variants), look)
        cases = [VariantCase(one.variant, seed) for seed in seeds for one in first]
        for run in spread_over(run_variant, shared, cases, jobs=jobs):
            runs.append(run)
            if progress is not None:
                progress(len(runs), how_many.looks()[-1] * len(variants))
        alpha = allowed_error(look) if how_many.until_ci is not None else 0.05
        report = ComparisonReport(baseline, tuple(runs), look, shared.metrics, {}, alpha, currency)
        if _agree(runs) or (how_many.until_ci is not None and report.widest[0] <= how_many.until_ci):
            break
    by_name = {one.variant.name: one for one in first}
    partings = {
        name: _parting(shared, runs, by_name[baseline], case) for name, case in by_name.items() if name != baseline
    }
    assumptions = tuple(_assumptions(shared, variants, how_many, report))
    question = (
        baseline,
        how_many,
        metrics,
        [(one.name, one) for one in variants],
        shared.options,
        shared.given.steps,
        shared.keep,
    )
    asked = Provenance(shared.given.objects, None, shared.catalogue, question)
    return replace(report, partings=partings, assumptions=assumptions, asked=asked)


def _currency(shared: ComparedInput, variants: Sequence[ComparedVariant]) -> str:
    """Of what nodes cost; empty if nobody says. Raises CompareError and CatalogueError."""
    found: dict[str, None] = {}
    for variant in variants:
        given = variant.apply(shared.given)
        nodes = [item for item in given.objects if isinstance(item, Node)]
        if not nodes and not given.steps:
            raise CompareError("there are no nodes")
        prices = NodePrices(nodes, variant.catalogue or shared.catalogue)
        if prices.currency:
            found[prices.currency] = None
    if len(found) > 1:
        raise CompareError(f"prices are in {' and in '.join(found)}: nothing is converted")
    return next(iter(found), "")


def _agree(runs: Sequence[ComparedRun]) -> bool:
    """Whether chance plays no part."""
    outcomes = {(run.variant, run.outcome) for run in runs}
    n_seeds = len({run.seed for run in runs})
    return n_seeds >= ENOUGH_TO_AGREE and len(outcomes) == len({run.variant for run in runs})


def _parting(
    shared: ComparedInput, runs: Sequence[ComparedRun], base: VariantCase, other: VariantCase
) -> Parting | None:
    if base.variant.nodes or other.variant.nodes:
        return None  # on other nodes every pod goes elsewhere
    placed = {run.variant: run.placed for run in runs if run.seed == 0}
    parting = first_difference(placed[base.variant.name], placed[other.variant.name])
    if parting is None:
        return None
    chosen = ((base, parting.baseline_node), (other, parting.variant_node))
    seen = [scores_at(parting, node, partial(_run, shared, case)) for case, node in chosen]
    return replace(parting, baseline=seen[0], variant=seen[1])


def _assumptions(
    shared: ComparedInput, variants: Sequence[ComparedVariant], how_many: HowMany, report: ComparisonReport
) -> Iterable[str]:
    yield "Every variant has the same cluster, workloads, scenario and seeds, but for what it changes."
    yield "Differences are the variant less the baseline, of the same seed; p values are of a sign test, after Holm."
    if how_many.until_ci is None and report.n_seeds < how_many.seeds:
        n_left = how_many.seeds - report.n_seeds
        yield f"{report.n_seeds} seeds agree in everything, so the other {n_left} were not run."
    if how_many.until_ci is not None:
        width, metric = report.widest
        told = "all intervals are" if width <= how_many.until_ci else f"not all intervals are (least {metric})"
        yield f"After {report.n_seeds} seeds {told} within {how_many.until_ci:.3g} of the metric's mean to either side."
        yield f"Looks at {', '.join(map(str, LOOKS))} seeds share the error by O'Brien and Fleming's rule."
    if shared.keep:
        yield "kept_room: for how many pods of the room to keep there is room in the end, beside all that waits."
    if any(metric.name == "nodes_needed" for metric in report.metrics):
        yield "nodes_needed: nodes taken away in an order by chance, as long as all pods find another one."
    for variant in variants:
        if variant.resizing is not None:
            yield f"{variant.name}: {variant.resizing.told(shared.given.objects)}"
    yield from shared.given.guesses


def _checked_variants(variants: object) -> Mapping[str, Mapping[str, Any]]:
    """Raises CompareError for what is not shaped like variants, and for keys that a variant does not have."""
    if not isinstance(variants, Mapping) or not all(isinstance(asked, Mapping) for asked in variants.values()):
        raise CompareError('variants: a mapping such as {"base": {}, "packed": {"config": "packed.yaml"}} is expected')
    known = [name for name in signature(variant_of).parameters if name != "name"]
    for name, asked in variants.items():
        for key in asked:
            if key not in known:
                raise CompareError(f'variant {name}: unknown key "{key}"{did_you_mean(key, known)}')
    return variants


def compare(
    objects: LoadedWorld | Objects,
    variants: Mapping[str, Mapping[str, Any]],
    *,
    seeds: int = DEFAULT_SEEDS,
    until_ci: float | None = None,
    metrics: Sequence[str] = (),
    catalogue: GivenCatalogue | None = None,
    usage: str = "",
    keep: Sequence[str] = (),
    baseline: str = "",
    jobs: int = 1,
    until: Span | None = None,
) -> ComparisonReport:
    """How variants differ over one scenario: `compare(cluster, {"base": {}, "packed": {"config": "packed.yaml"}})`.

    A variant has a `config`, files of `plugins`, `feature_gates`, a `resize` of requests (`cpu*0.7`, or the path of a
    CSV, of krr's JSON or of VerticalPodAutoscalers), `objects` in place of those of the same name, files with a
    `patch`, and `nodes` (`6xm7i.xlarge`) of a `catalogue` in place of all others. All meet the same seeds; the
    `baseline` is the first one unless it is named. With `until_ci=0.01`, seeds are added until each metric's interval
    is within a percent of its mean. The `catalogue` says what nodes cost; `usage` is a CSV of what containers use.
    `keep` is room (`20x500m/1Gi`, also with `@zone`, or a file with CapacityBuffers): metric `kept_room` says how much
    of it is there in the end.
    """
    options = SimulationOptions(until_s=span_option("until", until))
    whole = objects.loaded if isinstance(objects, LoadedWorld) else objects
    prices = None if catalogue is None else read_machines(catalogue)
    shared = ComparedInput(checked_input(whole), options, prices, read_usage(usage) if usage else None)
    shared = replace(shared, keep=several("keep", keep))
    named = [variant_of(name, **asked) for name, asked in _checked_variants(variants).items()]
    return compare_variants(
        shared,
        named,
        baseline or next(iter(variants), ""),
        HowMany(seeds, until_ci),
        metrics=metrics,
        jobs=jobs,
    )
