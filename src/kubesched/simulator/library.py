"""`kubesched.simulate`: a whole run on manifests, or given pods one after another.

Next: `run` for the first, `sequence` for the second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

from kubesched.framework.handle import Registry
from kubesched.k8s.model import manifests
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.older.config.generations import generation_of
from kubesched.scheduler.plugin_loading import assemble, check_no_emulation, plugins_from_classes
from kubesched.simulator import sequence as one_by_one
from kubesched.simulator.loading import SIMULATED_KINDS, load
from kubesched.simulator.options import SimulationOptions
from kubesched.simulator.report import SimulationReport
from kubesched.simulator.run import run_simulation
from kubesched.simulator.sequence import PlacedSequence

Objects = Iterable[Mapping[str, Any]]
Config = dict[str, Any] | str | None


@overload
def simulate(
    objects: Objects,
    sequence: Sequence[str],
    config: Config = None,
    tie_break: str = "random",
    seed: int = 0,
    *,
    policy: Config = None,
    provider: str | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    emulate: str | None = None,
    plugins: Iterable[type] = (),
) -> PlacedSequence: ...


@overload
def simulate(
    objects: Objects,
    sequence: None = None,
    config: Config = None,
    tie_break: str = "random",
    seed: int = 0,
    *,
    until_s: float | None = None,
    start_s: float | None = None,
    bind_latency_s: float = 0.0,
    start_latency_s: float = 0.0,
    class_cache: bool = True,
    policy: Config = None,
    provider: str | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    emulate: str | None = None,
    plugins: Iterable[type] = (),
) -> SimulationReport: ...


def simulate(
    objects: Objects,
    sequence: Sequence[str] | None = None,
    config: Config = None,
    tie_break: str = "random",
    seed: int = 0,
    *,
    until_s: float | None = None,
    start_s: float | None = None,
    bind_latency_s: float = 0.0,
    start_latency_s: float = 0.0,
    class_cache: bool = True,
    policy: Config = None,
    provider: str | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    emulate: str | None = None,
    plugins: Iterable[type] = (),
) -> SimulationReport | PlacedSequence:
    """What becomes of a cluster and its workloads, given as manifests, in virtual time.

    Deployments and all other workloads are expanded into pods, which are scheduled, run and end; a manifest of kind
    Scenario makes nodes come, drain and fail. `tie_break` is "name" (the lowest name wins) or "random" (by the seed);
    the same seed gives the same report. It ends when nothing more can happen, or after `until_s` seconds (a day, if the
    workload would never end).

    With a `sequence` of pods `namespace/name`, only these are placed, one after another, and nothing else happens.
    `class_cache=False` decides for every pod from scratch, which changes no answer; a sequence always does.

    `policy`, `provider`, `feature_gates`, `emulate` and `plugins` mean what they mean to `kubesched.explain`.
    """
    outside = plugins_from_classes(plugins)
    check_no_emulation(bool(outside.classes), emulate)
    configured = GivenConfiguration(config, policy, provider, feature_gates)
    generation = None if emulate is None else generation_of(emulate)
    emulation = None if generation is None else configured.as_of(generation)
    registry: Registry | None
    if emulation is None:
        assembled = assemble(configured.as_of_today().config, given=outside)
        loaded, registry = assembled.config, assembled.registry
    else:
        loaded, registry = emulation.config, None
    if sequence is not None:
        return one_by_one.simulate(objects, sequence, loaded, tie_break, seed, emulation, registry)
    given = load(manifests.from_dicts(objects, kinds=SIMULATED_KINDS))
    options = SimulationOptions(
        seed=seed,
        tie_break=tie_break,
        until_s=until_s,
        start_s=SimulationOptions().start_s if start_s is None else start_s,
        bind_latency_s=bind_latency_s,
        start_latency_s=start_latency_s,
        keeps_classes=class_cache,
    )
    return SimulationReport.of(run_simulation(given, loaded, options, emulation=emulation, registry=registry), options)
