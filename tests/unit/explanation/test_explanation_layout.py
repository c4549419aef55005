"""Plain text in any width."""

from __future__ import annotations

import pytest

from kubesched.explanation.layout import (
    counted,
    exact,
    exact_and_readable,
    listed,
    readable,
    score_table,
    table,
    wrapped,
)

GI = 1024**3


def test_texts_stand_to_the_left_and_numbers_to_the_right() -> None:
    assert table(["NODE", "CPU"], [["a", "1"], ["node-b", "1500m"]], indent=2) == [
        "  NODE      CPU",
        "  a           1",
        "  node-b  1500m",
    ]


def test_headings_are_stacked_word_by_word_when_they_would_be_too_wide() -> None:
    header, rows = ["NODE", "TOTAL", "NodeResourcesFit", "ImageLocality"], [["a", "3", "1", "2"]]
    assert score_table(header, rows, indent=0, width=80)[0] == "NODE  TOTAL  NodeResourcesFit  ImageLocality"
    assert score_table(header, rows, indent=0, width=40) == [
        "                  Node",
        "             Resources     Image",
        "NODE  TOTAL        Fit  Locality",
        "a         3          1         2",
    ]


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        pytest.param(2, "a, b and 1 more", id="the first few and a count"),
        pytest.param(3, "a, b, c", id="all where they fit"),
        pytest.param(None, "a, b, c", id="all where there is no limit"),
    ],
)
def test_names_are_listed(most: int | None, expected: str) -> None:
    assert listed(["a", "b", "c"], most) == expected


def test_a_count_of_one_is_singular() -> None:
    assert [counted(n, "node") for n in (0, 1, 2)] == ["0 nodes", "1 node", "2 nodes"]


def test_wrapping_never_breaks_names() -> None:
    name = "topology.kubernetes.io/zone-of-the-node-that-has-a-long-name"
    assert wrapped(f"drop {name}", indent=2, hanging=2, width=30) == ["  drop", f"    {name}"]


@pytest.mark.parametrize(
    ("resource", "units", "in_full", "short"),
    [
        pytest.param("cpu", 1500, "1500m", "1500m", id="milli-cpus"),
        pytest.param("cpu", 2000, "2", "2", id="whole cpus"),
        pytest.param("memory", 3 * GI, "3Gi", "3Gi", id="round bytes"),
        pytest.param("memory", 3 * GI + 1, "3221225473", "~3.00Gi", id="odd bytes"),
        pytest.param("memory", -5 * GI - 3, "-5368709123", "~-5.00Gi", id="less than nothing"),
        pytest.param("pods", 110, "110", "110", id="pods"),
        pytest.param("example.com/gpu", 20000000, "20M", "20M", id="extended resources"),
    ],
)
def test_amounts_are_exact_or_say_that_they_are_not(resource: str, units: int, in_full: str, short: str) -> None:
    assert exact(resource, units) == in_full
    assert readable(resource, units) == short
    assert exact_and_readable(resource, units) == (in_full if in_full == short else f"{in_full} ({short})")
