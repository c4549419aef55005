"""Histograms that sort their values late, and series under other labels."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kubesched.scheduler.engine.metrics.definitions import MetricDefinition, MetricKind
from kubesched.scheduler.engine.metrics.series import (
    Distribution,
    HistogramSeries,
    MetricFamily,
    Summary,
    distribution_of,
    relabelled,
)

BOUNDS = (1.0, 2.0, 4.0)
HISTOGRAM = MetricDefinition("h", MetricKind.HISTOGRAM, ("by",), "ALPHA", "", BOUNDS)

Values = st.lists(st.integers(0, 6), max_size=40)


@given(Values, st.integers(0, 40))
def test_a_value_counts_for_every_bound_it_does_not_exceed(values: list[int], look_after: int) -> None:
    """Looking in between changes nothing."""
    series = HistogramSeries(HISTOGRAM)
    for position, value in enumerate(values):
        if position == look_after:
            series.family()
        series.observe(value, ("x",))
    found = series.family().distributions or {}
    if not values:
        assert found == {}
        return
    expected = (*(sum(value <= bound for value in values) for bound in BOUNDS), len(values))
    assert found[("x",)].cumulative == expected
    assert found[("x",)].total == sum(values)
    assert found[("x",)] == distribution_of(Counter(values), BOUNDS)


def test_series_of_different_labels_are_kept_apart() -> None:
    series = HistogramSeries(HISTOGRAM)
    series.observe(1, ("x",))
    series.observe(3, ("y",))
    assert {labels: found.count for labels, found in (series.family().distributions or {}).items()} == {
        ("x",): 1,
        ("y",): 1,
    }


def test_values_do_not_pile_up() -> None:
    series = HistogramSeries(HISTOGRAM)
    for _ in range(5000):
        series.observe(1.0, ("x",))
    assert max(len(values) for values in series._unsorted.values()) < 1024
    assert (series.family().distributions or {})[("x",)].count == 5000


def test_a_histogram_without_labels_is_there_from_the_beginning() -> None:
    plain = MetricDefinition("h", MetricKind.HISTOGRAM, (), "ALPHA", "", BOUNDS)
    assert (HistogramSeries(plain).family().distributions or {})[()].cumulative == (0, 0, 0, 0)


def test_series_that_get_the_same_labels_are_added_up() -> None:
    definition = MetricDefinition("m", MetricKind.SUMMARY, ("part",), "", "")
    family = MetricFamily(
        definition,
        values={("a",): 1.0, ("b",): 2.0, ("c",): 4.0},
        distributions={("a",): Distribution((1, 2), 3.0), ("b",): Distribution((0, 1), 9.0)},
        summaries={("a",): Summary(((0.5, 1.0),), 1.0, 1), ("b",): Summary(((0.5, 2.0),), 2.0, 1)},
    )
    found = relabelled(family, lambda labels: None if labels == ("c",) else ("all",))
    assert found.values == {("all",): 3.0}
    assert found.distributions == {("all",): Distribution((1, 3), 12.0)}
    assert found.summaries == {("all",): Summary((), 3.0, 2)}
    assert relabelled(family, lambda labels: labels) == family
