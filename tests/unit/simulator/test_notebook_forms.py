"""What a notebook shows: short reprs, HTML, tables for pandas and polars, series over time, plots."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from simulated_clusters import workload

import kubesched
from kubesched.simulator import report_tables
from kubesched.simulator.column_table import ColumnKind, ColumnTable
from kubesched.testing import make

EXAMPLES = Path(__file__).parents[3] / "examples"


def _day() -> kubesched.SimulationReport:
    nodes = [make.node("a", cpu=2), make.node("b", cpu=2)]
    job = workload("Job", "sum", completions=6, parallelism=6, pod={"cpu": 1, "duration": "10m"})
    big = workload("Deployment", "big", pod={"cpu": 8})
    return kubesched.simulate([*nodes, job, big], tie_break="name", queue_lengths=True)


# -- shown -------------------------------------------------------------------------------------------------------------


def test_reprs_are_short() -> None:
    explanation = kubesched.explain(EXAMPLES / "explain", "shop/report")
    sequence = kubesched.simulate(EXAMPLES / "explain", sequence=["shop/report"])
    report = _day()
    shown = [
        explanation,
        explanation.decision,
        *explanation.groups,
        *explanation.changes,
        sequence,
        *sequence.steps,
        report,
        report.plot,
    ]
    for item in shown:
        assert "\n" not in repr(item) and len(repr(item)) < 600, repr(item)
    assert repr(explanation).startswith("<Explanation: Pod shop/report is pending: needs 2 cpu")
    assert repr(report).startswith("<SimulationReport: 7 pods on 2 nodes: 1 Pending, 6 Succeeded.")
    assert repr(sequence) == "<PlacedSequence: 0 of 1 pod placed>"
    assert str(sequence).splitlines()[1].split() == ["POD", "NODE", "FEASIBLE", "MESSAGE"]


class _Balance(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] != "style":
            self.texts.append(data)


def _html(item: Any) -> list[str]:
    """The texts of a well-formed HTML that loads nothing from elsewhere and runs nothing."""
    html = item._repr_html_()
    assert not re.search(r"https?:|<script|src=|@import|url\(", html)
    assert "prefers-color-scheme:dark" in html
    read = _Balance()
    read.feed(html)
    assert not read.open
    return read.texts


def test_an_explanation_is_html_with_the_answer_first() -> None:
    explanation = kubesched.explain(EXAMPLES / "explain", "shop/report")
    texts = _html(explanation)
    assert texts[0] == explanation.headline
    assert {"general-2", "cpu: requested 2, free 500m of 4"} <= set(texts)
    assert any(text.startswith("uncordon general-3") for text in texts)


def test_a_pod_that_fits_has_its_scores() -> None:
    texts = _html(kubesched.explain(EXAMPLES / "explain", "shop/web-3"))
    assert {"TaintToleration", "434", "general-1"} <= set(texts)


def test_reports_sequences_and_tables_are_html() -> None:
    report = _day()
    texts = _html(report)
    assert texts[0] == "7 pods on 2 nodes: 1 Pending, 6 Succeeded."
    assert {"Job sum", "Deployment big", "0% of 2"} <= set(texts)
    assert "0 of 1 pod placed" in _html(kubesched.simulate(EXAMPLES / "explain", sequence=["shop/report"]))
    assert {"namespace", "sum", "…"} & set(_html(report.pods))
    assert _html(ColumnTable({"n": ColumnKind.INT64}, []))


def test_markup_in_names_is_text() -> None:
    table = ColumnTable({"name": ColumnKind.UTF8}, [("<script>alert(1)</script>",)])
    assert "<script>alert(1)</script>" in _html(table)


# -- tables ------------------------------------------------------------------------------------------------------------


def test_rows_have_names() -> None:
    row: Any = next(iter(_day().pods))
    assert (row.name, row.node) == (row[1], row[3])


def test_pandas_frames() -> None:
    pandas = pytest.importorskip("pandas")
    table = _day().pods
    for frame in (table.to_pandas(), pandas.DataFrame(table)):
        assert list(frame.columns) == table.column_names
        assert list(frame["name"]) == table["name"]
    assert str(table.to_pandas()["cpu_milli"].dtype) == "int64"


def test_polars_frames() -> None:
    polars = pytest.importorskip("polars")
    table = _day().pods
    assert table.to_polars().equals(polars.DataFrame(table))


# -- over time ---------------------------------------------------------------------------------------------------------


def test_series_say_what_was_when() -> None:
    report = _day()
    assert list(report.timeline) == [(0.0, 2, 4, 3), (600.0, 2, 2, 1), (1200.0, 2, 0, 1)]
    cpu = [row for row in report.usage if row[1] == "cpu"]
    assert cpu == [
        (0.0, "cpu", 4000, 4000, 1.0),
        (600.0, "cpu", 2000, 4000, 0.5),
        (1200.0, "cpu", 0, 4000, 0.0),
    ]


def test_queue_lengths_are_noted_if_asked_for() -> None:
    report = _day()
    assert report.queue["at_s"][0] == 0.0
    assert max(int(n or 0) for n in report.queue["active"]) >= 2
    assert report.queue["unschedulable"][-1] == 1
    assert len(kubesched.simulate([make.node("a")]).queue) == 0


def test_series_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_tables, "MOST_SAMPLES", 10)
    pods = [
        make.pod(f"p{n}", cpu=1, metadata={"annotations": {"kubesched.dev/duration": f"{n + 1}m"}}) for n in range(60)
    ]
    report = kubesched.simulate([make.node("a", cpu=4), *pods], queue_lengths=True)
    timeline = report.timeline
    assert len(timeline) == 10
    assert (timeline["at_s"][0], timeline["at_s"][-1]) == (0.0, report.ended_s)
    assert len(report.queue) <= 21


def test_the_mean_of_the_series_is_the_mean_of_the_meter() -> None:
    """Two ways to the same number: the series, and the account that is kept of each node during the run."""
    report = kubesched.simulate(EXAMPLES / "simulate" / "workload.yaml", until="1m")
    assert len(report.usage) == 0  # no node, no resource
    report = _day()
    rows = [row for row in report.usage.to_rows() if row["resource"] == "cpu"]
    at_s = [float(row["at_s"] or 0) for row in rows]
    area = sum(
        float(row["requested"] or 0) * (end - begin) for row, begin, end in zip(rows, at_s, at_s[1:], strict=False)
    )
    means = [row for row in report.utilisation.to_rows() if row["resource"] == "cpu"]
    expected = sum(float(row["mean_share"] or 0) * float(row["allocatable"] or 0) for row in means) * report.ended_s
    assert area == pytest.approx(expected)


# -- plots -------------------------------------------------------------------------------------------------------------


def test_plots_are_axes() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    report = _day()
    axes = report.plot.utilisation(["cpu"])
    assert list(axes.lines[0].get_ydata()) == [100.0, 50.0, 0.0]
    assert report.plot.utilisation(["memory"], ax=axes, label="again") is axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["cpu", "again: memory"]
    assert [line.get_label() for line in report.plot.timeline().lines] == ["running", "pending"]
    heat = report.plot.heatmap()
    assert [text.get_text() for text in heat.get_yticklabels()] == ["a", "b"]
    assert heat.images[0].get_array()[0, 0] == 100.0
    kubesched.simulate([make.pod("p")]).plot.heatmap()
    pyplot.close("all")


def test_without_matplotlib_a_plot_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[plot\]'"):
        _day().plot.timeline()
