"""A metric under other labels: series whose labels become the same are added up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import add
from typing import TypeVar

from kubesched.scheduler.engine.metrics.series import Distribution, LabelValues, MetricFamily, Summary

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
