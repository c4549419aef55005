"""Metrics as text for Prometheus."""

from __future__ import annotations

from math import inf, nan

import pytest

from kubesched.scheduler.engine.metrics.definitions import MetricDefinition, MetricKind
from kubesched.scheduler.engine.metrics.exposition import number, render
from kubesched.scheduler.engine.metrics.series import HistogramSeries, MetricFamily

COUNTER = MetricDefinition("b_total", MetricKind.COUNTER, ("result", "profile"), "STABLE", "Counts.")
GAUGE = MetricDefinition("c", MetricKind.GAUGE, (), "ALPHA", "Back\\slash and\nline.")
HISTOGRAM = MetricDefinition("a_seconds", MetricKind.HISTOGRAM, ("event",), "BETA", "Lasts.", (0.5, 1.0))


def test_families_stand_by_name_and_series_by_their_labels() -> None:
    lasts = HistogramSeries(HISTOGRAM)
    for value in (0.25, 0.5, 0.75, 3):
        lasts.observe(value, ("x",))
    counts = MetricFamily(COUNTER, {("z", "p"): 2, ("a", "p"): 1.5})
    assert render([counts, MetricFamily(GAUGE, {(): 7}), lasts.family()]).splitlines() == [
        "# HELP scheduler_a_seconds [BETA] Lasts.",
        "# TYPE scheduler_a_seconds histogram",
        'scheduler_a_seconds_bucket{event="x",le="0.5"} 2',
        'scheduler_a_seconds_bucket{event="x",le="1"} 3',
        'scheduler_a_seconds_bucket{event="x",le="+Inf"} 4',
        'scheduler_a_seconds_sum{event="x"} 4.5',
        'scheduler_a_seconds_count{event="x"} 4',
        "# HELP scheduler_b_total [STABLE] Counts.",
        "# TYPE scheduler_b_total counter",
        'scheduler_b_total{profile="p",result="a"} 1.5',
        'scheduler_b_total{profile="p",result="z"} 2',
        "# HELP scheduler_c [ALPHA] Back\\\\slash and\\nline.",
        "# TYPE scheduler_c gauge",
        "scheduler_c 7",
    ]


def test_a_metric_without_series_is_left_out() -> None:
    assert render([MetricFamily(COUNTER, {}), HistogramSeries(HISTOGRAM).family()]) == ""


def test_values_of_labels_are_escaped() -> None:
    text = render([MetricFamily(COUNTER, {('q"\\\n', ""): 1})])
    assert 'result="q\\"\\\\\\n"' in text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param(0, "0", id="nothing"),
        pytest.param(-0.0, "-0", id="minus nothing"),
        pytest.param(1, "1", id="one"),
        pytest.param(-12.5, "-12.5", id="a negative fraction"),
        pytest.param(999999, "999999", id="below a million"),
        pytest.param(1e6, "1e+06", id="a million"),
        pytest.param(1234567.5, "1.2345675e+06", id="more than a million"),
        pytest.param(1e100, "1e+100", id="a long exponent"),
        pytest.param(0.0001, "0.0001", id="a ten thousandth"),
        pytest.param(0.00001, "1e-05", id="less than that"),
        pytest.param(0.000113906250, "0.00011390625", id="a bound of a bucket"),
        pytest.param(0.1 + 0.2, "0.30000000000000004", id="all digits that it takes"),
        pytest.param(inf, "+Inf", id="infinity"),
        pytest.param(-inf, "-Inf", id="minus infinity"),
        pytest.param(nan, "NaN", id="not a number"),
    ],
)
def test_numbers_are_written_as_go_writes_them(value: float, text: str) -> None:
    assert number(value) == text
