"""Flags leave metrics out, and hold their labels to values."""

from __future__ import annotations

from kubesched.live.options import MetricsSettings
from kubesched.live.options.settings import shown_families
from kubesched.scheduler.engine.metrics.definitions import MetricDefinition, MetricKind
from kubesched.scheduler.engine.metrics.series import Distribution, MetricFamily

COUNTER = MetricDefinition("tries", MetricKind.COUNTER, ("result", "profile"), "ALPHA", "Tries.")
HISTOGRAM = MetricDefinition("waits", MetricKind.HISTOGRAM, ("result",), "ALPHA", "Waits.", (1.0,))
FAMILIES = (
    MetricFamily(COUNTER, values={("a", "x"): 1.0, ("b", "x"): 2.0, ("c", "x"): 4.0}),
    MetricFamily(HISTOGRAM, distributions={("a",): Distribution((1, 2), 3.0), ("b",): Distribution((1, 1), 0.5)}),
)


def _shown(disabled: str = "", **allowed: str) -> dict[str, MetricFamily]:
    labels = {(f"scheduler_{metric}", "result"): frozenset(values.split()) for metric, values in allowed.items()}
    settings = MetricsSettings(frozenset(disabled.split()), labels)
    return {family.definition.name: family for family in shown_families(FAMILIES, settings)}


def test_without_flags_all_is_shown_as_it_is() -> None:
    assert tuple(_shown().values()) == FAMILIES


def test_a_disabled_metric_is_left_out() -> None:
    assert list(_shown("scheduler_tries")) == ["waits"]


def test_values_that_are_not_allowed_are_added_up_as_unexpected() -> None:
    assert _shown(tries="a")["tries"].values == {("a", "x"): 1.0, ("unexpected", "x"): 6.0}


def test_histograms_are_added_up_as_well() -> None:
    assert _shown(waits="z")["waits"].distributions == {("unexpected",): Distribution((2, 3), 3.5)}
