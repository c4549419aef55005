"""Which metrics are shown, and which values of their labels: `--disabled-metrics`, `--allow-metric-labels`.

None of kube-scheduler's own metrics is hidden in v1.36, so `--show-hidden-metrics-for-version` adds none.

Next: `metrics` for how the flags are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from kubesched.app.options.settings import MetricsSettings
from kubesched.engine.metrics.series import Distribution, LabelValues, MetricFamily

UNEXPECTED = "unexpected"

_Value = TypeVar("_Value")


def shown_families(families: Iterable[MetricFamily], settings: MetricsSettings) -> Iterator[MetricFamily]:
    """The families as they are to be shown; series whose labels become the same are added up."""
    for family in families:
        name = family.definition.full_name
        if name in settings.disabled:
            continue
        allowed = [settings.allowed_label_values.get((name, label)) for label in family.definition.labels]
        yield _constrained(family, allowed) if any(values is not None for values in allowed) else family


def _constrained(family: MetricFamily, allowed: list[frozenset[str] | None]) -> MetricFamily:
    def told(labels: LabelValues) -> LabelValues:
        pairs = zip(labels, allowed, strict=True)
        return tuple(value if values is None or value in values else UNEXPECTED for value, values in pairs)

    if family.values is not None:
        return replace(family, values=_added_up(family.values, told, lambda one, other: one + other))
    if family.distributions is not None:
        return replace(family, distributions=_added_up(family.distributions, told, _joined))
    return family


def _added_up(
    series: Mapping[LabelValues, _Value],
    told: Callable[[LabelValues], LabelValues],
    add: Callable[[_Value, _Value], _Value],
) -> dict[LabelValues, _Value]:
    found: dict[LabelValues, _Value] = {}
    for labels, value in series.items():
        key = told(labels)
        found[key] = add(found[key], value) if key in found else value
    return found


def _joined(one: Distribution, other: Distribution) -> Distribution:
    counts = tuple(a + b for a, b in zip(one.cumulative, other.cumulative, strict=True))
    return Distribution(counts, one.total + other.total)
