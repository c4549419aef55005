"""Which metrics are shown, and which values of their labels: `--disabled-metrics`, `--allow-metric-labels`.

None of kube-scheduler's own metrics is hidden in v1.36, so `--show-hidden-metrics-for-version` adds none.

Next: `metrics` for how the flags are read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubesched.live.options.settings import MetricsSettings
from kubesched.scheduler.engine.metrics.relabelling import relabelled
from kubesched.scheduler.engine.metrics.series import LabelValues, MetricFamily

UNEXPECTED = "unexpected"


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

    return relabelled(family, told)
