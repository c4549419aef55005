"""`kubesched.load`, `kubesched.simulate`, `kubesched.world`: a cluster from files, what becomes of it, what if.

Next: `run` for a whole run, `sequence` for pods one after another.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from os import PathLike
from typing import Any, overload
from weakref import WeakKeyDictionary

from kubesched.framework.handle import Registry
from kubesched.k8s.dumped_kinds import missing_in
from kubesched.k8s.errors import KubeschedWarning
from kubesched.k8s.loaded_cluster import Document, LoadedCluster, Objects, read_objects
from kubesched.k8s.model.times import DurationError, InstantError, Span, instant_s, span_s
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.older.config.generations import generation_of
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.scheduler.plugin_loading import assemble, check_no_emulation, plugins_from_classes
from kubesched.simulator import loading
from kubesched.simulator import sequence as one_by_one
from kubesched.simulator.autoscaling import Autoscaler
from kubesched.simulator.expansion import expand
from kubesched.simulator.loading import LOADED_KINDS, SIMULATED_KINDS, SimulationInput
from kubesched.simulator.options import OptionError, SimulationOptions
from kubesched.simulator.premises import supposing
from kubesched.simulator.report import SimulationReport
from kubesched.simulator.report_tables import QueueSampler
from kubesched.simulator.run import run_simulation
from kubesched.simulator.sequence import PlacedSequence
from kubesched.simulator.trial import LoadedWorld


def load(
    *sources: LoadedCluster | str | PathLike[str] | Mapping[str, Any] | Iterable[Any],
    replicas: str = "current",
    ignore: Sequence[str] = (),
) -> LoadedCluster:
    """Reads a cluster once, to ask about it often: `load("dump.json", "app/")`.

    A source is the path of a file or a directory, a YAML or JSON text, a manifest as a dictionary, a list of these, or
    a cluster that was loaded before. A text that has a newline, or is a mapping, is YAML; any other is a path. Objects
    of kinds that scheduling does not look at are left out (`ignored`). If it is a dump from which kinds were left out
    that it looks at, a `KubeschedWarning` says of each what follows.

    With `replicas="min"` or `"max"`, autoscaled workloads have the least or most replicas that their
    HorizontalPodAutoscalers allow. `ignore` leaves out `pending` pods, `daemons`, `static` pods, or disruption
    `budgets`.
    """
    found = LoadedCluster(read_objects((), LOADED_KINDS))
    for source in sources:
        found = found.beside(read_objects(source, LOADED_KINDS))
    for line in missing_in(found.found, "the cluster", is_simulation=True):
        warnings.warn(line, KubeschedWarning, stacklevel=2)
    return LoadedCluster(supposing(found.found, replicas, ignore)[0])


def world(
    *sources: LoadedCluster | str | PathLike[str] | Mapping[str, Any] | Iterable[Any],
    config: Document = None,
    tie_break: str = "random",
    seed: int = 0,
    plugins: Iterable[type] = (),
    class_cache: bool | None = True,
) -> LoadedWorld:
    """A cluster loaded once, with its scheduler, to try things on: `world("dump.json").trial()`.

    It takes what `load` takes. Workloads whose pods are not all there get them; whatever has no node yet waits for one.
    `config`, `tie_break`, `seed` and `plugins` mean what they mean to `simulate`. The class cache changes no answer; it
    pays where pods of a kind come one after another. None: it is kept if there are few kinds.
    """
    assembled = assemble(
        GivenConfiguration.read(config, None, None, None).as_of_today().config, given=plugins_from_classes(plugins)
    )
    found = load(*sources)
    loaded = loading.load(found.found)
    given = expand(loaded, seed)
    return LoadedWorld(
        given.objects,
        assembled.config,
        registry=assembled.registry,
        tie_break=tie_break,
        seed=seed,
        refused=given.refused,
        workloads=given.workloads,
        bounds=given.bounds,
        guesses=loaded.guesses,
        node_makers=loaded.node_makers,
        keeps_classes=class_cache,
        loaded=found,
    )


@dataclass(frozen=True, slots=True)
class FreshCluster:
    """What a question begins with, and by which scheduler it is answered."""

    given: SimulationInput
    config: KubeSchedulerConfiguration
    registry: Registry | None


def fresh_cluster(
    cluster: LoadedWorld | Objects, config: Document = None, plugins: Iterable[type] = ()
) -> FreshCluster:
    """A world brings its configuration and plugins, unless others are given."""
    plugins = tuple(plugins)
    found = cluster.loaded if isinstance(cluster, LoadedWorld) else load(cluster)
    given = loading.load(found.found)
    if isinstance(cluster, LoadedWorld) and config is None and not plugins:
        return FreshCluster(given, cluster.asked_config, cluster.registry)
    assembled = assemble(
        GivenConfiguration.read(config, None, None, None).as_of_today().config, given=plugins_from_classes(plugins)
    )
    return FreshCluster(given, assembled.config, assembled.registry)


@overload
def simulate(
    objects: Objects,
    sequence: Sequence[str],
    config: Document = None,
    tie_break: str = "random",
    seed: int = 0,
    *,
    policy: Document = None,
    provider: str | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    emulate: str | None = None,
    plugins: Iterable[type] = (),
) -> PlacedSequence: ...


@overload
def simulate(
    objects: Objects,
    sequence: None = None,
    config: Document = None,
    tie_break: str = "random",
    seed: int = 0,
    *,
    until: Span | None = None,
    start: str | float | datetime | None = None,
    bind_latency: Span = 0.0,
    start_latency: Span = 0.0,
    queue_lengths: bool = False,
    class_cache: bool = True,
    autoscaler: Autoscaler | None = None,
    policy: Document = None,
    provider: str | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    emulate: str | None = None,
    plugins: Iterable[type] = (),
    until_s: Span | None = None,
    start_s: str | float | datetime | None = None,
    bind_latency_s: Span | None = None,
    start_latency_s: Span | None = None,
) -> SimulationReport: ...


def simulate(
    objects: Objects,
    sequence: Sequence[str] | None = None,
    config: Document = None,
    tie_break: str = "random",
    seed: int = 0,
    *,
    until: Span | None = None,
    start: str | float | datetime | None = None,
    bind_latency: Span = 0.0,
    start_latency: Span = 0.0,
    queue_lengths: bool = False,
    class_cache: bool = True,
    autoscaler: Autoscaler | None = None,
    policy: Document = None,
    provider: str | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    emulate: str | None = None,
    plugins: Iterable[type] = (),
    until_s: Span | None = None,
    start_s: str | float | datetime | None = None,
    bind_latency_s: Span | None = None,
    start_latency_s: Span | None = None,
) -> SimulationReport | PlacedSequence:
    """What becomes of a cluster and its workloads in virtual time.

    The cluster is what `kubesched.load` gave, or what it takes: a path, a YAML text, a manifest as a dictionary, or
    several of them. Deployments and all other workloads are expanded into pods, which are scheduled, run and end; a
    manifest of kind Scenario makes nodes come, drain and fail. `tie_break` is "name" (the lowest name wins) or "random"
    (by the seed); the same seed gives the same report. It ends when nothing more can happen, or `until` then (a day, if
    the workload would never end).

    Durations (`until`, `bind_latency`, `start_latency`) are texts such as "90s" or "1h30m", seconds, or a `timedelta`;
    `start` is an RFC 3339 text, a `datetime`, or seconds since the epoch. `until_s` and the like mean the same.

    With an `autoscaler` (`kubesched.autoscaler("karpenter", "catalogue.yaml")`), nodes are launched for pods that wait,
    and removed when they are not needed (`report.autoscaling`).

    With `queue_lengths`, the report has the lengths of the scheduling queues over time (`report.queue`).

    With a `sequence` of pods `namespace/name`, only these are placed, one after another, and nothing else happens.
    `class_cache=False` decides for every pod from scratch, which changes no answer; a sequence always does.

    `config`, `policy`, `provider`, `feature_gates`, `emulate` and `plugins` mean what they mean to `kubesched.explain`.
    """
    outside = plugins_from_classes(plugins)
    configured = GivenConfiguration.read(config, policy, provider, feature_gates, emulate)
    generation = None if emulate is None else generation_of(emulate)
    check_no_emulation(bool(outside.classes), generation)
    emulation = None if generation is None else configured.as_of(generation)
    registry: Registry | None
    if emulation is None:
        assembled = assemble(configured.as_of_today().config, given=outside)
        loaded, registry = assembled.config, assembled.registry
    else:
        loaded, registry = emulation.config, None
    if sequence is not None:
        return one_by_one.simulate(objects, sequence, loaded, tie_break, seed, emulation, registry)
    given = checked_input(objects)
    options = SimulationOptions(
        seed=seed,
        tie_break=tie_break,
        until_s=span_option("until", until if until_s is None else until_s),
        start_s=_instant("start", start if start_s is None else start_s),
        bind_latency_s=span_option("bind_latency", bind_latency if bind_latency_s is None else bind_latency_s) or 0.0,
        start_latency_s=span_option("start_latency", start_latency if start_latency_s is None else start_latency_s)
        or 0.0,
        keeps_classes=class_cache,
    )
    sampler = QueueSampler() if queue_lengths else None
    if autoscaler is not None and emulation is not None:
        raise OptionError("autoscaler: it asks today's scheduler, and cannot be played with an older one (emulate)")
    scaled = None if autoscaler is None else autoscaler.run(loaded, options, registry)
    cluster = run_simulation(
        given,
        loaded,
        options,
        progress=sampler,
        emulation=emulation,
        registry=registry,
        before=None if scaled is None else scaled.start,
    )
    return SimulationReport(cluster, options, sampler, None if scaled is None else scaled.record())


_CHECKED: WeakKeyDictionary[LoadedCluster, SimulationInput] = WeakKeyDictionary()
"""Clusters that were loaded once, to be asked about often, are checked once."""


def checked_input(objects: Objects) -> SimulationInput:
    """What a run needs, of a cluster as `simulate` is given it."""
    if not isinstance(objects, LoadedCluster):
        return loading.load(read_objects(objects, SIMULATED_KINDS))
    known = _CHECKED.get(objects)
    if known is None:
        known = _CHECKED[objects] = loading.load(read_objects(objects, SIMULATED_KINDS))
    return known


def span_option(name: str, given: Span | None) -> float | None:
    """In seconds. Raises OptionError, which names the option."""
    try:
        return None if given is None else span_s(given)
    except DurationError as error:
        raise OptionError(f"{name}: {error}") from None


def _instant(name: str, given: str | float | datetime | None) -> float:
    try:
        return SimulationOptions().start_s if given is None else instant_s(given)
    except InstantError as error:
        raise OptionError(f"{name}: {error}") from None
