"""`kubesched.sweep`: one cluster simulated with many seeds and many configurations, and what that changes.

Every configuration is run with every seed. A run is told in numbers, and by a fingerprint: runs with the same one put
every pod on the same node at the same time.

Next: `many_runs` for where the runs are made, `sweep_report` for the report.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

import msgspec

from kubesched.k8s.loaded_cluster import Document, Objects
from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.k8s.model.times import Span
from kubesched.k8s.workloads.pod_states import POD_PENDING
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.scheduler.plugin_loading import Assembly, assemble, plugins_from_classes
from kubesched.simulator.library import checked_input, span_option
from kubesched.simulator.loading import SimulationInput
from kubesched.simulator.many_runs import spread_over
from kubesched.simulator.options import OptionError, SimulationOptions
from kubesched.simulator.report import SimulationReport
from kubesched.simulator.run import run_simulation
from kubesched.simulator.sweep_report import RunOutcome, SweepReport

DEFAULT_CONFIGURATION = "default"
MOST_RUNS = 100_000
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class NamedConfiguration:
    name: str
    config: KubeSchedulerConfiguration
    source: str = ""
    """In messages."""


@dataclass(frozen=True, slots=True)
class SweptInput:
    """What all runs share."""

    given: SimulationInput
    options: SimulationOptions
    plugin_files: tuple[str, ...] = ()
    plugins: tuple[type, ...] = ()


@dataclass(frozen=True, slots=True)
class SweepCase:
    configuration: NamedConfiguration
    seed: int


def sweep(
    objects: Objects,
    configs: Mapping[str, Document] | Sequence[Document] = (),
    seeds: int | Iterable[int] = 10,
    *,
    jobs: int = 1,
    dask: str = "",
    tie_break: str = "random",
    until: Span | None = None,
    bind_latency: Span = 0.0,
    start_latency: Span = 0.0,
    plugins: Iterable[type] = (),
) -> SweepReport:
    """What many seeds and configurations make of a cluster and its workloads: each configuration runs with each seed.

    The cluster is what `kubesched.simulate` takes. `configs` are configurations by name, or a list of them; without
    any, the default one. `seeds` are seeds, or how many of them, from 0 on. `jobs` is the number of processes, `dask`
    the address of a Dask scheduler (`tcp://…`) to use in their place; the report is the same either way. The rest means
    what it means to `simulate`.
    """
    options = SimulationOptions(
        tie_break=tie_break,
        until_s=span_option("until", until),
        bind_latency_s=span_option("bind_latency", bind_latency) or 0.0,
        start_latency_s=span_option("start_latency", start_latency) or 0.0,
    )
    shared = SweptInput(checked_input(objects), options, plugins=tuple(plugins))
    chosen = range(seeds) if isinstance(seeds, int) else list(seeds)
    return run_sweep(shared, _named(configs), chosen, jobs=jobs, dask=dask)


def run_sweep(
    shared: SweptInput,
    configurations: Sequence[NamedConfiguration],
    seeds: Sequence[int],
    *,
    jobs: int = 1,
    dask: str = "",
) -> SweepReport:
    """Raises `ConfigError` before anything is run, if a configuration or plugin cannot be used."""
    if not seeds:
        raise OptionError("seeds: there are none")
    if len(configurations) * len(seeds) > MOST_RUNS:
        raise OptionError(f"{len(configurations) * len(seeds):,} runs are too many: at most {MOST_RUNS:,}")
    for configuration in configurations:
        _assembled(shared, configuration)
    cases = [SweepCase(configuration, seed) for configuration in configurations for seed in seeds]
    outcomes = tuple(spread_over(run_case, shared, cases, jobs=jobs, dask=dask))
    return SweepReport(outcomes, shared.options.tie_break)


def run_case(shared: SweptInput, case: SweepCase) -> RunOutcome:
    """One run, wherever it is made."""
    assembled = _assembled(shared, case.configuration)
    options = replace(shared.options, seed=case.seed)
    source = case.configuration.source
    cluster = run_simulation(shared.given, assembled.config, options, source=source, registry=assembled.registry)
    return outcome_of(SimulationReport(cluster, options), case)


def outcome_of(report: SimulationReport, case: SweepCase) -> RunOutcome:
    summary = report.summary
    return RunOutcome(
        configuration=case.configuration.name,
        seed=case.seed,
        pods=summary["pods"],
        pending=summary["states"].get(POD_PENDING, 0),
        preemptions=summary["preemptions"],
        ended_s=report.ended_s,
        nodes_used=len(report.history.nodes_used),
        cpu_share=_rounded(report.history.requested_share(CPU)),
        memory_share=_rounded(report.history.requested_share(MEMORY)),
        fingerprint=_fingerprint(report),
    )


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, _DIGITS)


def _fingerprint(report: SimulationReport) -> str:
    told = msgspec.json.encode([list(report.pods), list(report.preemptions), report.ended_s])
    return sha256(told).hexdigest()[:12]


def _assembled(shared: SweptInput, configuration: NamedConfiguration) -> Assembly:
    outside = plugins_from_classes(shared.plugins)
    return assemble(configuration.config, configuration.source, files=shared.plugin_files, given=outside)


def _named(configs: Mapping[str, Document] | Sequence[Document]) -> list[NamedConfiguration]:
    if isinstance(configs, Mapping):
        named = dict(configs)
    else:
        named = {f"{DEFAULT_CONFIGURATION} {number}": config for number, config in enumerate(configs, 1)}
    if not named:
        named = {DEFAULT_CONFIGURATION: None}
    return [
        NamedConfiguration(name, GivenConfiguration.read(config).as_of_today().config, name)
        for name, config in named.items()
    ]
