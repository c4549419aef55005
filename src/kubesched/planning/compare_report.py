"""What came of a comparison: metric by metric, the means, the paired difference with its interval, a verdict.

And where two runs with the same seed part: the first pod that goes elsewhere, and which plugins' scores decided that.
Each of the two is made again up to that decision, and the decision is explained.

Next: `kubesched.planning.statistics`, which makes the intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from kubesched.explanation.answer import Explanation
from kubesched.explanation.explain import explain_pending, taken_off
from kubesched.explanation.layout import Style, Tone, counted, listed, table, wrapped
from kubesched.k8s.model.meta import PodKey
from kubesched.planning.compare_metrics import PENDING, CompareError, Metric
from kubesched.planning.provenance import UNASKED, AnsweredReport, Provenance
from kubesched.planning.statistics import PairedDifference, holm
from kubesched.simulator.column_table import ColumnKind, ColumnTable
from kubesched.simulator.gauges import Gauge
from kubesched.simulator.virtual.cluster import Progress, VirtualCluster

Placed = Sequence[tuple[str, str]]
"""Pods and their nodes, in the order in which they got them."""
Replay = Callable[[Progress], object]
"""Makes a run again, and shows the cluster after every step."""


@dataclass(frozen=True, slots=True)
class NodeScores:
    """What one scheduler thought of the two nodes that two schedulers chose."""

    why: Mapping[str, str]
    """By node, why it did not fit; empty if it did."""
    scores: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By plugin, the weighted scores of the baseline's node and of the variant's."""


@dataclass(frozen=True, slots=True)
class Parting:
    pod: str
    baseline_node: str
    variant_node: str
    baseline: NodeScores | None = None
    variant: NodeScores | None = None

    @property
    def is_tie(self) -> bool:
        """One of the schedulers finds both nodes equally good, and leaves it to chance."""
        seen = [one for one in (self.baseline, self.variant) if one is not None and one.scores]
        return any(sum(_lead(one, name) for name in one.scores) == 0 for one in seen)

    @property
    def deciding(self) -> list[str]:
        """The plugins that speak more for the variant's node than they do under the baseline, the most first."""
        if self.baseline is None or self.variant is None or self.is_tie:
            return []
        names = {*self.baseline.scores, *self.variant.scores}
        gains = {name: _lead(self.variant, name) - _lead(self.baseline, name) for name in names}
        return sorted((name for name, gain in gains.items() if gain > 0), key=lambda name: (-gains[name], name))

    def to_dict(self) -> dict[str, Any]:
        record: dict[str, Any] = {
            "pod": self.pod,
            "baseline": self.baseline_node,
            "variant": self.variant_node,
            "deciding": self.deciding,
            "tie": self.is_tie,
        }
        for name, seen in (("scoresOfBaseline", self.baseline), ("scoresOfVariant", self.variant)):
            if seen is not None:
                record[name] = {
                    "rejected": {node: why for node, why in seen.why.items() if why},
                    "plugins": {plugin: list(pair) for plugin, pair in seen.scores.items()},
                }
        return record


def _lead(seen: NodeScores, plugin: str) -> int:
    ours, theirs = seen.scores.get(plugin, (0, 0))
    return theirs - ours


def first_difference(base: Placed, other: Placed) -> Parting | None:
    """A name may be used again: the second pod of a name is compared with the second one."""
    there = dict(_numbered(base))
    for (pod, nth), node in _numbered(other):
        if there.get((pod, nth), node) != node:
            return Parting(pod, there[pod, nth], node)
    return None


def _numbered(placed: Placed) -> Iterator[tuple[tuple[str, int], str]]:
    seen: dict[str, int] = {}
    for pod, node in placed:
        seen[pod] = seen.get(pod, 0) + 1
        yield (pod, seen[pod]), node


class _DecidedError(Exception):
    """The run has come as far as it is wanted."""


def scores_at(parting: Parting, node: str, replay: Replay) -> NodeScores | None:
    """What the scheduler of a run thought when it decided about the pod, for the first time that it chose this node;
    None if it does not come to that."""
    found: list[NodeScores] = []

    def look(cluster: VirtualCluster) -> None:
        info = cluster.loop.cluster.find_pod(PodKey(parting.pod))
        if info is None or info.spec.node_name != node:
            return
        waiting = taken_off(cluster.loop.cluster, info)
        scheduler = cluster.loop.schedulers[info.spec.scheduler_name]
        explanation = explain_pending(cluster.loop.cluster, scheduler, waiting, placed_on=node)
        found.append(_seen(explanation, (parting.baseline_node, parting.variant_node)))
        raise _DecidedError

    try:
        replay(look)
    except _DecidedError:
        return found[0]
    return None


def _seen(explanation: Explanation, nodes: tuple[str, str]) -> NodeScores:
    why = dict.fromkeys(nodes, "")
    for group in explanation.groups:
        for name in nodes:
            if name in group.names:
                why[name] = group.summary()
    scored = None if explanation.decision is None else explanation.decision.scored
    if scored is None or any(why.values()):
        return NodeScores(why)
    at = [scored.nodes.names.index(name) for name in nodes]
    return NodeScores(
        why, {one.plugin: (int(one.weighted[at[0]]), int(one.weighted[at[1]])) for one in scored.by_plugin}
    )


_DIGITS = 6
_PLUGINS_SHOWN = 3
_SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One variant with one seed, in numbers; and where each pod went, in the order in which they got their nodes."""

    variant: str
    seed: int
    values: Mapping[str, float]
    placed: tuple[tuple[str, str], ...]

    @property
    def outcome(self) -> tuple[object, ...]:
        """The same for two runs in which chance played no part; pods are called differently with each seed."""
        return tuple(self.values.values()), tuple(node for _, node in self.placed)


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
    parts: Parting | None
    """With the first seed, the first pod that goes elsewhere."""

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
        """With numbers where it matters most: pods that wait, nodes, money."""
        told = []
        for word in ("better", "worse"):
            names = [_told(one) for one in self.metrics if one.verdict == word]
            if names:
                told.append(f"{word} in {', '.join(names)}")
        return f"{self.name} is {' and '.join(told)}" if told else f"{self.name} is no better and no worse"


_HEADLINED = (PENDING, "nodes_used", "nodes_needed", "cost", "cost_needed")


def _told(one: MetricComparison) -> str:
    if one.metric.name not in _HEADLINED:
        return one.metric.name
    return f"{one.metric.name} ({_number(one.baseline)} to {_number(one.variant)})"


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
_PARTING_COLUMNS = {
    "variant": ColumnKind.UTF8,
    "pod": ColumnKind.UTF8,
    "plugin": ColumnKind.UTF8,
    "baseline_at_its_node": ColumnKind.INT64,
    "baseline_at_the_other": ColumnKind.INT64,
    "variant_at_the_other": ColumnKind.INT64,
    "variant_at_its_node": ColumnKind.INT64,
}


@dataclass(frozen=True, repr=False)
class ComparisonReport(AnsweredReport):
    """`comparison["packed"].difference("nodes_used").difference.interval`; `str()` is the report as text."""

    command: ClassVar[str] = "kubesched compare"

    baseline: str
    runs: tuple[ComparedRun, ...]
    n_seeds: int
    metrics: tuple[Metric, ...]
    partings: Mapping[str, Parting | None]
    alpha: float = _SIGNIFICANT
    """The share of intervals that may miss."""
    currency: str = ""
    assumptions: tuple[str, ...] = field(default=())
    asked: Provenance = field(default=UNASKED, compare=False, repr=False)

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
    def gauges(self) -> tuple[Gauge, ...]:
        """The means over all seeds."""
        samples: dict[tuple[str, str], float] = {}
        for variant in self.variants:
            for one in variant.metrics:
                samples[self.baseline, one.metric.name] = one.baseline
                samples[variant.name, one.metric.name] = one.variant
        told = tuple(({"variant": name, "metric": metric}, value) for (name, metric), value in samples.items())
        return (Gauge("kubesched_compare_mean", "The mean of a metric over all seeds.", told),)

    @property
    def widest(self) -> tuple[float, str]:
        """Half the widest interval, of the metric's mean: 0.01 if each is known to within a percent of it. And which
        metric that is."""
        widths = [(_relative_width(one), one.metric.name) for variant in self.variants for one in variant.metrics]
        return max(widths)

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
        scores = [
            (variant.name, variant.parts.pod, plugin, *ours, *theirs)
            for variant in self.variants
            if variant.parts is not None
            for plugin, ours, theirs in _scores(variant.parts)
        ]
        return {"metrics": ColumnTable(_COLUMNS, rows), "parting": ColumnTable(_PARTING_COLUMNS, scores)}

    def to_dict(self) -> dict[str, Any]:
        return {
            **self._about(),
            "headline": self.headline,
            "baseline": self.baseline,
            "seeds": self.n_seeds,
            "variants": [
                {
                    "name": one.name,
                    "metrics": [metric.to_dict() for metric in one.metrics],
                    "parts": None if one.parts is None else one.parts.to_dict(),
                }
                for one in self.variants
            ],
            "assumptions": list(self.assumptions),
        }

    def render(self, style: Style) -> str:
        is_good = not any(one.is_worse for one in self.variants)
        lines = [style.painted(Tone.GOOD if is_good else Tone.BAD, self.headline)]
        header = ["METRIC", self.baseline.upper(), "VARIANT", "DIFFERENCE", _interval_name(self), "VERDICT"]
        for variant in self.variants:
            rows = [self._row(one) for one in variant.metrics if style.wide or one.verdict != "same"]
            lines += ["", style.heading(variant.name)]
            lines += table(header, rows, indent=2) if rows else ["  the same in every metric"]
            if variant.parts is not None:
                lines += _parting_lines(variant.parts, self.baseline, variant.name, style)
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
            PairedDifference(
                tuple(b.values[metric.name] - a.values[metric.name] for a, b in zip(base, other, strict=True)),
                self.alpha,
                metric.is_quantile,
            )
            for metric in self.metrics
        ]
        adjusted = holm([one.sign_test for one in differences])
        metrics = tuple(
            MetricComparison(metric, _mean(base, metric.name), _mean(other, metric.name), differences[i], adjusted[i])
            for i, metric in enumerate(self.metrics)
        )
        return VariantComparison(name, metrics, self.partings.get(name))

    def _row(self, one: MetricComparison) -> list[str]:
        low, high = one.difference.interval
        unit = f"{self.currency} {one.metric.unit}" if "cost" in one.metric.name and self.currency else one.metric.unit
        return [
            f"{one.metric.name} ({unit})",
            _number(one.baseline),
            _number(one.variant),
            _number(one.difference.mean, "+"),
            f"{_number(low, '+')} to {_number(high, '+')}",
            one.verdict,
        ]


def _mean(runs: Sequence[ComparedRun], name: str) -> float:
    return sum(run.values[name] for run in runs) / len(runs)


def _relative_width(one: MetricComparison) -> float:
    low, high = one.difference.interval
    size = max(abs(one.baseline), abs(one.variant))
    return (high - low) / 2 / size if size else 0.0


def _interval_name(report: ComparisonReport) -> str:
    is_interval = report.variants[0].metrics[0].difference.has_interval
    return f"{100 * (1 - report.alpha):.6g}% INTERVAL" if is_interval else "RANGE"


def _parting_lines(parts: Parting, baseline: str, variant: str, style: Style) -> list[str]:
    told = f"They part at {parts.pod}: {parts.baseline_node} with {baseline}, {parts.variant_node} with {variant}."
    deciding = parts.deciding
    if deciding:
        told += f" What decides: {listed(deciding, style.most(_PLUGINS_SHOWN))}."
    elif parts.is_tie:
        told += " Both nodes score the same: chance decides."
    lines = wrapped(told, indent=2, hanging=2, width=style.width)
    for name, seen in ((baseline, parts.baseline), (variant, parts.variant)):
        for node, why in (seen.why if seen is not None else {}).items():
            if why:
                lines += wrapped(f"With {name}, {node} does not fit: {why}", indent=4, hanging=2, width=style.width)
    rows = [
        [plugin, *map(str, ours), *map(str, theirs)]
        for plugin, ours, theirs in _scores(parts)
        if style.wide or plugin in deciding[:_PLUGINS_SHOWN]
    ]
    if rows:
        head = [f"{name}: {node}" for name in (baseline, variant) for node in (parts.baseline_node, parts.variant_node)]
        lines += table(["SCORE", *head], rows, indent=4)
    return lines


def _scores(parts: Parting) -> list[tuple[str, tuple[int, int], tuple[int, int]]]:
    """By plugin, under the baseline and under the variant; of the baseline's node, and of the variant's."""
    ours, theirs = (NodeScores({}) if seen is None else seen for seen in (parts.baseline, parts.variant))
    names = dict.fromkeys((*ours.scores, *theirs.scores))
    return [(name, ours.scores.get(name, (0, 0)), theirs.scores.get(name, (0, 0))) for name in names]


def _number(value: float, sign: str = "") -> str:
    """Whole numbers where the decimals say nothing."""
    return f"{value:{sign},.0f}" if abs(value) >= 100 else f"{value:{sign}.3g}"
