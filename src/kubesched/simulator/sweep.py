"""`kubesched.sweep`: one cluster simulated with many seeds and many configurations, and what that changes.

Every configuration is run with every seed. A run is summarized in numbers and a fingerprint: runs with the same one put
every pod on the same node at the same time.

The report's headline says for each configuration whether every pod found a node, in how many of its runs, and how many
did not in the others. Below are the medians, with the least and the most where runs differ.

Next: `many_runs` for where the runs are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from hashlib import sha256
from statistics import median
from typing import Any

import msgspec

from kubesched.explanation.html import block, html_table, paragraph
from kubesched.explanation.layout import Style, Tone, counted, table
from kubesched.k8s.loaded_cluster import Document, Objects
from kubesched.k8s.model.requests import CPU, MEMORY
from kubesched.k8s.model.times import Span
from kubesched.k8s.workloads.pod_states import POD_PENDING
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.scheduler.plugin_loading import Assembly, assemble, plugins_from_classes
from kubesched.simulator.column_table import ColumnKind, ColumnTable
from kubesched.simulator.gauges import Gauge, exposition
from kubesched.simulator.library import checked_input, span_option
from kubesched.simulator.loading import SimulationInput
from kubesched.simulator.many_runs import spread_over
from kubesched.simulator.options import OptionError, SimulationOptions, check_seed
from kubesched.simulator.report import SimulationReport
from kubesched.simulator.report_text import readable_span
from kubesched.simulator.run import run_simulation

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
    for seed in chosen:
        check_seed(seed)
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


_INT, _FLOAT, _TEXT = ColumnKind.INT64, ColumnKind.FLOAT64, ColumnKind.UTF8
_RUN_COLUMNS = {
    "configuration": _TEXT,
    "seed": _INT,
    "pods": _INT,
    "pending": _INT,
    "preemptions": _INT,
    "ended_s": _FLOAT,
    "nodes_used": _INT,
    "cpu_share": _FLOAT,
    "memory_share": _FLOAT,
    "fingerprint": _TEXT,
}


@dataclass(frozen=True, slots=True)
class RunOutcome:
    configuration: str
    seed: int
    pods: int
    pending: int
    """Pods without a node at the end."""
    preemptions: int
    ended_s: float
    nodes_used: int
    """Nodes that ever held a pod other than a daemon's."""
    cpu_share: float | None
    """Of what the nodes have, over the run, or at its end if no time passed."""
    memory_share: float | None
    fingerprint: str
    """The same for two runs that put every pod on the same node at the same time."""


class SweepReport:
    """What came of a sweep. `runs` is a table with a row for each; `str()` is the report as text."""

    assumptions: tuple[str, ...] = ()

    def __init__(self, outcomes: Sequence[RunOutcome], tie_break: str) -> None:
        self.outcomes = tuple(outcomes)
        self.tie_break = tie_break

    @cached_property
    def runs(self) -> ColumnTable:
        return ColumnTable(_RUN_COLUMNS, [tuple(asdict(outcome).values()) for outcome in self.outcomes])

    @property
    def tables(self) -> Mapping[str, ColumnTable]:
        return {"runs": self.runs}

    @property
    def places_all(self) -> bool:
        """Whether every pod found a node in every run."""
        return not any(outcome.pending for outcome in self.outcomes)

    @cached_property
    def by_configuration(self) -> dict[str, list[RunOutcome]]:
        found: dict[str, list[RunOutcome]] = {}
        for outcome in self.outcomes:
            found.setdefault(outcome.configuration, []).append(outcome)
        return found

    @property
    def headline(self) -> str:
        groups = self.by_configuration
        placing = {name: _placing(runs) for name, runs in groups.items()}
        told = "; ".join(f"with {name}, {text}" if len(groups) > 1 else text for name, text in placing.items())
        n_seeds = len(next(iter(groups.values())))
        how_many = f"{counted(len(groups), 'configuration')} with {counted(n_seeds, 'seed')}"
        return f"{how_many}: {told}."

    def to_dict(self) -> dict[str, Any]:
        return {
            "headline": self.headline,
            "configurations": {
                name: {"runs": len(runs), "different": len({run.fingerprint for run in runs}), **_medians(runs)}
                for name, runs in self.by_configuration.items()
            },
            "runs": self.runs.to_rows(),
        }

    def to_prometheus(self) -> str:
        """The text format of metrics."""
        pending = tuple(
            ({"configuration": one.configuration, "seed": str(one.seed)}, float(one.pending)) for one in self.outcomes
        )
        return exposition([Gauge("kubesched_sweep_pending_pods", "Pods without a node in the end.", pending)])

    def render(self, style: Style) -> str:
        first = style.painted(Tone.GOOD if self.places_all else Tone.BAD, self.headline)
        lines = [first, "", *table(_HEADER, self._rows(), indent=0)]
        if style.wide:
            header, *rows = _run_rows(self.outcomes)
            lines += ["", *table(header, rows, indent=0)]
        if self.tie_break == "name":
            lines += ["", "Ties are decided by name, so that seeds only change the names of pods."]
        return "\n".join(lines)

    def _rows(self) -> list[list[str]]:
        return [_row(name, runs) for name, runs in self.by_configuration.items()]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SweepReport):
            return NotImplemented
        return (self.outcomes, self.tie_break) == (other.outcomes, other.tie_break)

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return self.render(Style())

    def __repr__(self) -> str:
        return f"<SweepReport: {self.headline}>"

    def _repr_html_(self) -> str:
        """As notebooks show it."""
        kind = "head good" if self.places_all else "head bad"
        return block(paragraph(self.headline, kind), html_table(_HEADER, self._rows()))


_HEADER = ["CONFIGURATION", "RUNS", "DIFFERENT", "PENDING", "PREEMPTIONS", "ENDED", "NODES USED", "CPU", "MEMORY"]
_Number = int | float | None


def _row(name: str, runs: Sequence[RunOutcome]) -> list[str]:
    return [
        name,
        str(len(runs)),
        str(len({run.fingerprint for run in runs})),
        _spread([run.pending for run in runs], _whole),
        _spread([run.preemptions for run in runs], _whole),
        _spread([run.ended_s for run in runs], readable_span),
        _spread([run.nodes_used for run in runs], _whole),
        _spread([run.cpu_share for run in runs], _percent),
        _spread([run.memory_share for run in runs], _percent),
    ]


def _spread(values: Sequence[_Number], told: Callable[[float], str]) -> str:
    """The median; and the least and the most, where these differ."""
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    least, middle, most = told(min(known)), told(median(known)), told(max(known))
    return middle if least == most else f"{middle} ({least} to {most})"


def _medians(runs: Sequence[RunOutcome]) -> dict[str, Any]:
    names = ("pending", "preemptions", "ended_s", "nodes_used", "cpu_share", "memory_share")
    return {name: _least_median_most([getattr(run, name) for run in runs]) for name in names}


def _least_median_most(values: Sequence[_Number]) -> dict[str, _Number]:
    known = [value for value in values if value is not None]
    if not known:
        return {"least": None, "median": None, "most": None}
    return {"least": min(known), "median": median(known), "most": max(known)}


def _placing(runs: Sequence[RunOutcome]) -> str:
    pending = [run.pending for run in runs if run.pending]
    n_good = len(runs) - len(pending)
    if not pending:
        return f"every pod finds a node in all {len(runs)} runs" if len(runs) > 1 else "every pod finds a node"
    least, most = min(pending), max(pending)
    how_many = counted(least, "pod") if least == most else f"{least} to {counted(most, 'pod')}"
    if not n_good:
        return f"{how_many} pending in " + (f"all {len(runs)} runs" if len(runs) > 1 else "the run")
    return f"every pod finds a node in {n_good} of {len(runs)} runs, {how_many} pending in the others"


def _run_rows(outcomes: Sequence[RunOutcome]) -> list[list[str]]:
    header = ["CONFIGURATION", "SEED", "PENDING", "PREEMPTIONS", "ENDED", "NODES USED", "CPU", "MEMORY", "FINGERPRINT"]
    return [
        header,
        *(
            [
                run.configuration,
                str(run.seed),
                str(run.pending),
                str(run.preemptions),
                readable_span(run.ended_s),
                str(run.nodes_used),
                _spread([run.cpu_share], _percent),
                _spread([run.memory_share], _percent),
                run.fingerprint,
            ]
            for run in outcomes
        ),
    ]


def _whole(value: float) -> str:
    return f"{value:g}"


def _percent(value: float) -> str:
    return f"{value * 100:.0f}%"
