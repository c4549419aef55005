"""Counts and durations by labels, cheap to add to: a duration is put into its bucket only when metrics are collected.

A metric can be shown under other labels (`relabelled`): series whose labels become the same are added up.

Next: `loop_metrics`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import add
from typing import TypeVar

import numpy as np

from kubesched.framework.nodes import IntArray
from kubesched.scheduler.engine.metrics.definitions import MetricDefinition

LabelValues = tuple[str, ...]
"""In the order of the definition's labels."""

_MOST_UNSORTED = 1024


@dataclass(frozen=True, slots=True)
class Distribution:
    """How many values lie up to each bound (the last has none), and what they add up to."""

    cumulative: tuple[int, ...]
    total: float

    @property
    def count(self) -> int:
        return self.cumulative[-1]


@dataclass(frozen=True, slots=True)
class Summary:
    """How many values there were, and what they add up to. `quantiles` are shares, each with its value."""

    quantiles: tuple[tuple[float, float], ...]
    total: float
    count: int


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """One metric with all its series."""

    definition: MetricDefinition
    values: Mapping[LabelValues, float] | None = None
    distributions: Mapping[LabelValues, Distribution] | None = None
    summaries: Mapping[LabelValues, Summary] | None = None


class HistogramSeries:
    """The values of one histogram."""

    def __init__(self, definition: MetricDefinition) -> None:
        self.definition = definition
        self._bounds = np.array(definition.buckets)
        self._unsorted: dict[LabelValues, list[float]] = {}
        self._counts: dict[LabelValues, IntArray] = {}
        self._totals: dict[LabelValues, float] = {}
        if not definition.labels:
            self._start(())

    def observe(self, value: float, labels: LabelValues = ()) -> None:
        values = self._unsorted.get(labels)
        if values is None:
            values = self._start(labels)
        values.append(value)
        if len(values) >= _MOST_UNSORTED:
            self._sort(labels)

    def family(self) -> MetricFamily:
        for labels in self._unsorted:
            self._sort(labels)
        found = {labels: self._distribution(labels) for labels in self._counts}
        return MetricFamily(self.definition, distributions=found)

    def _start(self, labels: LabelValues) -> list[float]:
        self._counts[labels] = np.zeros(len(self._bounds) + 1, dtype=np.int64)
        self._totals[labels] = 0.0
        values = self._unsorted[labels] = []
        return values

    def _sort(self, labels: LabelValues) -> None:
        values = self._unsorted[labels]
        if values:
            found = np.searchsorted(self._bounds, values, side="left")
            self._counts[labels] += np.bincount(found, minlength=len(self._bounds) + 1)
            self._totals[labels] += sum(values)
            values.clear()

    def _distribution(self, labels: LabelValues) -> Distribution:
        return Distribution(tuple(accumulate(self._counts[labels].tolist())), self._totals[labels])


def distribution_of(counts: Mapping[int, int], bounds: Sequence[float]) -> Distribution:
    """Of whole numbers, given how often each occurred."""
    cumulative = [sum(n for value, n in counts.items() if value <= bound) for bound in bounds]
    total = sum(value * n for value, n in counts.items())
    return Distribution((*cumulative, sum(counts.values())), float(total))


Relabel = Callable[[LabelValues], LabelValues | None]
"""The labels of a series -> those that it gets; None leaves it out."""

_Value = TypeVar("_Value")


def relabelled(family: MetricFamily, relabel: Relabel) -> MetricFamily:
    return replace(
        family,
        values=None if family.values is None else _added_up(family.values, relabel, add),
        distributions=None if family.distributions is None else _added_up(family.distributions, relabel, _joined),
        summaries=None if family.summaries is None else _added_up(family.summaries, relabel, _summed),
    )


def _added_up(
    series: Mapping[LabelValues, _Value], relabel: Relabel, added: Callable[[_Value, _Value], _Value]
) -> dict[LabelValues, _Value]:
    found: dict[LabelValues, _Value] = {}
    for labels, value in series.items():
        key = relabel(labels)
        if key is not None:
            found[key] = added(found[key], value) if key in found else value
    return found


def _joined(one: Distribution, other: Distribution) -> Distribution:
    return Distribution(tuple(map(add, one.cumulative, other.cumulative)), one.total + other.total)


def _summed(one: Summary, other: Summary) -> Summary:
    """Quantiles cannot be added up, and are left out."""
    return Summary((), one.total + other.total, one.count + other.count)
