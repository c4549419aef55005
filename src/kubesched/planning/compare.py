"""`kubesched compare`: variants of a configuration, of plugins or of requests over one scenario, with the same seeds.

Every variant meets the same cluster, workloads, scenario and seeds, so that differences are paired: what is left of
chance in them is small. Where all seeds agree, chance plays no part, which is told.

Next: `statistics` for the intervals, `resizing` for other requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import sqrt
from typing import Any

from kubesched.explanation.layout import Style, Tone, counted, table
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.loaded_cluster import Document, Objects
from kubesched.k8s.manifest_files import read_file
from kubesched.k8s.model.requests import CPU, MEMORY, PODS
from kubesched.k8s.model.times import Span
from kubesched.k8s.workloads.pod_states import POD_PENDING
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.planning.resizing import Resizing, read_resizing
from kubesched.planning.statistics import FEWEST_FOR_INTERVAL, PairedDifference, holm
from kubesched.scheduler.config import KubeSchedulerConfiguration
from kubesched.scheduler.plugin_loading import assemble
from kubesched.simulator.column_table import ColumnKind, ColumnTable
from kubesched.simulator.library import checked_input, span_option
from kubesched.simulator.loading import SimulationInput
from kubesched.simulator.many_runs import spread_over
from kubesched.simulator.options import SimulationOptions
from kubesched.simulator.report import SimulationReport
from kubesched.simulator.run import run_simulation

_SIGNIFICANT = 0.05
_DIGITS = 6


class CompareError(KubeschedError, ValueError):
    """The variants cannot be compared; says why."""


@dataclass(frozen=True, slots=True)
class Metric:
    """What is compared. `lower_is_better` is None where neither is better in itself."""

    name: str
    unit: str
    lower_is_better: bool | None


METRICS = (
    Metric("pending", "pods", True),
    Metric("waited", "pod-seconds", True),
    Metric("wait_p50", "s", True),
    Metric("wait_p99", "s", True),
    Metric("nodes_used", "nodes", True),
    Metric("cpu", "% of cpu", None),
    Metric("memory", "% of memory", None),
    Metric("imbalance", "% points of cpu", True),
    Metric("preemptions", "pods", True),
)


@dataclass(frozen=True, slots=True)
class ComparedVariant:
    name: str
    config: KubeSchedulerConfiguration
    source: str = ""
    plugin_files: tuple[str, ...] = ()
    resizing: Resizing | None = None


@dataclass(frozen=True, slots=True)
class ComparedInput:
    """What all runs share."""

    given: SimulationInput
    options: SimulationOptions


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One variant with one seed, in numbers; and where each pod went, in the order in which they got their nodes."""

    variant: str
    seed: int
    values: tuple[float, ...]
    placed: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class VariantCase:
    variant: ComparedVariant
    seed: int


def run_variant(shared: ComparedInput, case: VariantCase) -> ComparedRun:
    """Wherever it is made."""
    variant, given = case.variant, shared.given
    if variant.resizing is not None:
        given = replace(given, objects=tuple(variant.resizing.apply(given.objects)))
    assembled = assemble(variant.config, variant.source, files=variant.plugin_files)
    options = replace(shared.options, seed=case.seed)
    cluster = run_simulation(given, assembled.config, options, source=variant.source, registry=assembled.registry)
    report = SimulationReport(cluster, options)
    pods = [record for record in report.history.pods if not record.was_there]
    scheduled = sorted((one for one in pods if one.scheduled_s is not None), key=lambda one: one.scheduled_s or 0.0)
    placed = tuple((one.key, one.node) for one in scheduled)
    return ComparedRun(variant.name, case.seed, tuple(_values(report)), placed)


def _values(report: SimulationReport) -> list[float]:
    summary, nodes = report.summary, report.history.nodes
    pods = [record for record in report.history.pods if not record.was_there]
    waits = sorted(one.scheduled_s - one.created_s for one in pods if one.scheduled_s is not None)
    waited = sum((one.scheduled_s if one.scheduled_s is not None else report.ended_s) - one.created_s for one in pods)
    shares = [
        usage.requested.get(CPU, 0) / usage.allocatable[CPU] * 100 for usage in nodes if usage.allocatable.get(CPU)
    ]
    mean = sum(shares) / len(shares) if shares else 0.0
    spread = sqrt(sum((one - mean) ** 2 for one in shares) / len(shares)) if shares else 0.0
    found = [
        float(summary["states"].get(POD_PENDING, 0)),
        waited,
        _quantile(waits, 0.5),
        _quantile(waits, 0.99),
        float(sum(1 for usage in nodes if usage.peak.get(PODS))),
        _share(report, CPU),
        _share(report, MEMORY),
        spread,
        float(summary["preemptions"]),
    ]
    return [round(one, _DIGITS) for one in found]


def _quantile(values: Sequence[float], share: float) -> float:
    return values[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def _share(report: SimulationReport, resource: str) -> float:
    """Requested at the end, of all that the nodes have."""
    nodes = report.history.nodes
    whole = sum(usage.allocatable.get(resource, 0) for usage in nodes)
    return 100 * sum(usage.requested.get(resource, 0) for usage in nodes) / whole if whole else 0.0


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """One metric under the baseline and under another variant."""

    metric: Metric
    baseline: float
    """The means over all seeds."""
    variant: float
    difference: PairedDifference
    p_value: float
    """Of the sign test, adjusted for the number of metrics."""

    @property
    def verdict(self) -> str:
        low, high = self.difference.interval
        is_shown = self.difference.is_constant or not low <= 0.0 <= high
        if self.difference.mean == 0.0 or not is_shown:
            return "no difference shown" if self.difference.mean else "same"
        if self.metric.lower_is_better is None:
            return "differs, not ranked"
        return "better" if (self.difference.mean < 0) == self.metric.lower_is_better else "worse"

    def to_dict(self) -> dict[str, Any]:
        low, high = self.difference.interval
        return {
            "metric": self.metric.name,
            "unit": self.metric.unit,
            "baseline": round(self.baseline, _DIGITS),
            "variant": round(self.variant, _DIGITS),
            "difference": round(self.difference.mean, _DIGITS),
            "interval": [round(low, _DIGITS), round(high, _DIGITS)],
            "p": round(self.p_value, _DIGITS),
            "verdict": self.verdict,
        }


@dataclass(frozen=True, slots=True)
class VariantComparison:
    name: str
    metrics: tuple[MetricComparison, ...]
    parts: tuple[str, str, str] | None
    """The first pod that went elsewhere, with the first seed: the pod, its node under the baseline, and here."""

    def difference(self, metric: str) -> MetricComparison:
        """Raises CompareError."""
        for one in self.metrics:
            if one.metric.name == metric:
                return one
        raise CompareError(f'metric "{metric}" is none of {", ".join(one.metric.name for one in self.metrics)}')

    @property
    def is_worse(self) -> bool:
        return any(one.verdict == "worse" for one in self.metrics)

    @property
    def headline(self) -> str:
        better = [one.metric.name for one in self.metrics if one.verdict == "better"]
        worse = [one.metric.name for one in self.metrics if one.verdict == "worse"]
        told = [f"{word} in {', '.join(names)}" for word, names in (("better", better), ("worse", worse)) if names]
        return f"{self.name} is {' and '.join(told)}" if told else f"{self.name} is no better and no worse"


_COLUMNS = {
    "variant": ColumnKind.UTF8,
    "metric": ColumnKind.UTF8,
    "baseline": ColumnKind.FLOAT64,
    "value": ColumnKind.FLOAT64,
    "difference": ColumnKind.FLOAT64,
    "low": ColumnKind.FLOAT64,
    "high": ColumnKind.FLOAT64,
    "p": ColumnKind.FLOAT64,
    "verdict": ColumnKind.UTF8,
}


@dataclass(frozen=True, repr=False)
class ComparisonReport:
    """`comparison["packed"].difference("nodes_used").difference.interval`; `str()` is the report as text."""

    baseline: str
    runs: tuple[ComparedRun, ...]
    n_seeds: int
    assumptions: tuple[str, ...] = field(default=())

    @cached_property
    def variants(self) -> tuple[VariantComparison, ...]:
        names = dict.fromkeys(run.variant for run in self.runs)
        return tuple(self._compared(name) for name in names if name != self.baseline)

    def __getitem__(self, name: str) -> VariantComparison:
        for one in self.variants:
            if one.name == name:
                return one
        raise CompareError(f'variant "{name}" is none of {", ".join(one.name for one in self.variants)}')

    @property
    def headline(self) -> str:
        told = "; ".join(one.headline for one in self.variants)
        return f"Compared with {self.baseline} over {counted(self.n_seeds, 'seed')}: {told}."

    @property
    def tables(self) -> Mapping[str, ColumnTable]:
        rows = []
        for variant in self.variants:
            for one in variant.metrics:
                low, high = one.difference.interval
                told = one.to_dict()
                rows.append(
                    (variant.name, one.metric.name, told["baseline"], told["variant"], told["difference"],
                     round(low, _DIGITS), round(high, _DIGITS), told["p"], one.verdict)
                )  # fmt: skip
        return {"metrics": ColumnTable(_COLUMNS, rows)}

    def to_dict(self) -> dict[str, Any]:
        return {
            "headline": self.headline,
            "baseline": self.baseline,
            "seeds": self.n_seeds,
            "variants": [
                {
                    "name": one.name,
                    "metrics": [metric.to_dict() for metric in one.metrics],
                    "parts": None
                    if one.parts is None
                    else {"pod": one.parts[0], "baseline": one.parts[1], "variant": one.parts[2]},
                }
                for one in self.variants
            ],
            "assumptions": list(self.assumptions),
        }

    def render(self, style: Style) -> str:
        is_good = not any(one.is_worse for one in self.variants)
        lines = [style.painted(Tone.GOOD if is_good else Tone.BAD, self.headline)]
        header = ["METRIC", self.baseline.upper(), "VARIANT", "DIFFERENCE", _interval_name(self.n_seeds), "VERDICT"]
        for variant in self.variants:
            rows = [_row(one) for one in variant.metrics if style.wide or one.verdict != "same"]
            lines += ["", style.heading(variant.name)]
            lines += table(header, rows, indent=2) if rows else ["  the same in every metric"]
            if variant.parts is not None:
                pod, then, now = variant.parts
                lines.append(f"  They part at {pod}: {then} with {self.baseline}, {now} with {variant.name}.")
            if all(one.difference.is_constant for one in variant.metrics):
                lines.append("  All seeds agree: no chance is involved.")
        return "\n".join([*lines, "", "Assumptions", *(f"  {one}" for one in self.assumptions)])

    def __str__(self) -> str:
        return self.render(Style())

    def __repr__(self) -> str:
        return f"<ComparisonReport: {self.headline}>"

    def _compared(self, name: str) -> VariantComparison:
        base, other = (
            sorted((run for run in self.runs if run.variant == one), key=lambda run: run.seed)
            for one in (self.baseline, name)
        )
        differences = [
            PairedDifference(tuple(b.values[i] - a.values[i] for a, b in zip(base, other, strict=True)))
            for i in range(len(METRICS))
        ]
        adjusted = holm([one.sign_test for one in differences])
        metrics = tuple(
            MetricComparison(metric, _mean(base, i), _mean(other, i), differences[i], adjusted[i])
            for i, metric in enumerate(METRICS)
        )
        return VariantComparison(name, metrics, _parting(base[0], other[0]))


def _mean(runs: Sequence[ComparedRun], index: int) -> float:
    return sum(run.values[index] for run in runs) / len(runs)


def _parting(base: ComparedRun, other: ComparedRun) -> tuple[str, str, str] | None:
    """A name may be used again: the second pod of a name is compared with the second one."""
    there = dict(_numbered(base.placed))
    for (pod, nth), node in _numbered(other.placed):
        if there.get((pod, nth), node) != node:
            return pod, there[pod, nth], node
    return None


def _numbered(placed: Sequence[tuple[str, str]]) -> Iterator[tuple[tuple[str, int], str]]:
    seen: dict[str, int] = {}
    for pod, node in placed:
        seen[pod] = seen.get(pod, 0) + 1
        yield (pod, seen[pod]), node


def _interval_name(n_seeds: int) -> str:
    return "95% INTERVAL" if n_seeds >= FEWEST_FOR_INTERVAL else "RANGE"


def _row(one: MetricComparison) -> list[str]:
    low, high = one.difference.interval
    return [
        f"{one.metric.name} ({one.metric.unit})",
        _number(one.baseline),
        _number(one.variant),
        _number(one.difference.mean, "+"),
        f"{_number(low, '+')} to {_number(high, '+')}",
        one.verdict,
    ]


def _number(value: float, sign: str = "") -> str:
    """Whole numbers where the decimals say nothing."""
    return f"{value:{sign},.0f}" if abs(value) >= 100 else f"{value:{sign}.3g}"


def compare_variants(
    shared: ComparedInput, variants: Sequence[ComparedVariant], baseline: str, n_seeds: int, *, jobs: int = 1
) -> ComparisonReport:
    """Raises CompareError and ConfigError before anything is run."""
    names = [variant.name for variant in variants]
    if len(names) < 2 or len(set(names)) < len(names):
        raise CompareError("at least two variants with names of their own are needed")
    if baseline not in names:
        raise CompareError(f'baseline "{baseline}" is none of the variants {", ".join(names)}')
    for variant in variants:
        assemble(variant.config, variant.source, files=variant.plugin_files)
    cases = [VariantCase(variant, seed) for variant in variants for seed in range(n_seeds)]
    runs = tuple(spread_over(run_variant, shared, cases, jobs=jobs))
    assumptions = (
        "Every variant has the same cluster, workloads, scenario and seeds.",
        "Differences are the variant less the baseline, of the same seed; p values are of a sign test, after Holm.",
    )
    return ComparisonReport(baseline, runs, n_seeds, assumptions)


def compare(
    objects: Objects,
    variants: Mapping[str, Mapping[str, Any]],
    *,
    seeds: int = 10,
    baseline: str = "",
    jobs: int = 1,
    until: Span | None = None,
) -> ComparisonReport:
    """How variants differ over one scenario: `compare(cluster, {"base": {}, "packed": {"config": "packed.yaml"}})`.

    A variant has a `config`, files of `plugins`, and a `resize` of requests (`cpu*0.7`, or the path of a CSV, of krr's
    JSON or of VerticalPodAutoscalers). All meet the same seeds; the `baseline` is the first one unless it is named.
    """
    options = SimulationOptions(until_s=span_option("until", until))
    shared = ComparedInput(checked_input(objects), options)
    named = [variant_of(name, **asked) for name, asked in variants.items()]
    return compare_variants(shared, named, baseline or next(iter(variants), ""), seeds, jobs=jobs)


def variant_of(
    name: str, config: Document = None, plugins: Sequence[str] = (), resize: str = "", source: str = ""
) -> ComparedVariant:
    """Raises ConfigError, ResizeError and InputError."""
    resizing = None
    if resize:
        is_factor = "*" in resize
        resizing = read_resizing(resize) if is_factor else read_resizing(resize, read_file(resize))
    found = GivenConfiguration.read(config, None, None, None).as_of_today().config
    return ComparedVariant(name, found, source or name, tuple(plugins), resizing)
