"""Reports of the library as pages and in notebooks; the maps, flows and matrices on them."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner
from resting_clusters import node, random_cluster, workload

import kubesched
from kubesched.cli.main import main
from kubesched.planning.catalogue_files import read_catalogue
from kubesched.planning.html_plots import MOST_TILES, Bar, Hit, Tile, bars, flow, levels, matrix, node_map
from kubesched.planning.html_report import ReportAsPage, ReportPage
from kubesched.simulator.column_table import ColumnKind, ColumnTable

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"


def _reports() -> dict[str, Any]:
    cluster = [
        *(node(name, zone) for name, zone in (("a", "x"), ("b", "y"), ("c", "y"))),
        *workload("Deployment", "web", "1500m", ["a", "a", "b"]),
    ]
    catalogue = read_catalogue(str(EXAMPLES / "plan" / "catalogue.yaml"))
    shop = str(EXAMPLES / "plan" / "shop.yaml")
    return {
        "capacity": kubesched.capacity(cluster, shapes=["500m/1Gi"]),
        "plan": kubesched.plan(shop, catalogue, from_scratch=True, orders=1),
        "consolidate": kubesched.consolidate(cluster),
        "outage": kubesched.outage(cluster, every="zone"),
        "upgrade": kubesched.upgrade(cluster),
        "optimal": kubesched.optimal(cluster),
        "check": kubesched.check(str(EXAMPLES / "check" / "check.yaml")),
    }


def test_every_planning_report_is_a_page_and_shows_in_a_notebook() -> None:
    for name, report in _reports().items():
        assert isinstance(report, ReportAsPage), name
        page, shown = report.to_html(), report._repr_html_()
        assert page.startswith("<!doctype html>")
        assert f"<p class=dim>kubesched {name}</p>" in page
        assert f"<p class=dim>kubesched {name}</p>" in shown
        assert "<script" not in shown
        assert "://" not in page + shown
        style = shown[shown.index("<style>") : shown.index("</style>")]
        assert style.startswith("<style>.kubesched-page{")
        assert style.count("{") == style.count("}")


def test_the_map_adds_up_to_what_the_steps_do() -> None:
    for seed in range(6):
        report = kubesched.consolidate(random_cluster(Random(seed), prices=True), tie_break="name")
        assert {one.node for one in report.nodes if one.fate == "goes"} == set(report.removed)
        for resource in ("cpu", "memory"):
            before, after = (sum(dict(kind).get(resource, 0) for kind in kinds) for kinds in _kinds(report.nodes))
            assert before == after
        assert all(one.after.get("cpu", 0) <= one.has["cpu"] for one in report.nodes)


def _kinds(nodes: Any) -> tuple[list[Any], list[Any]]:
    return [one.before for one in nodes], [one.after for one in nodes]


def test_the_timeline_of_an_upgrade_ends_with_all_nodes_upgraded() -> None:
    cluster = [*(node(name) for name in "abc"), *workload("Deployment", "web", "3", ["a", "b", "c"])]
    rows = kubesched.upgrade(cluster, max_surge=0, max_unavailable=1).tables["timeline"].named()
    assert rows[-1].upgraded == 3
    assert max(row.pending for row in rows) == 1
    assert [row.at_s for row in rows] == sorted(row.at_s for row in rows)


@pytest.mark.parametrize("n", [1, 6, 60, 61, MOST_TILES])
def test_a_map_has_a_tile_for_each_node_whatever_their_number(n: int) -> None:
    tiles = [Tile(f"n-{i}", "zone a", {"cpu": 0.5}, {"cpu": 0.2}, "goes" if i == 0 else "") for i in range(n)]
    drawn = node_map("Nodes", tiles)
    assert drawn.count('class="tile ') == n + 1  # one in the legend
    assert "n-0 goes: cpu 20 %, then 50 %" in drawn
    assert node_map("Nodes", tiles * (MOST_TILES + 1)) == ""


def test_flows_of_many_nodes_put_the_smallest_together() -> None:
    drawn = flow("Moves", [(f"a-{i}", f"b-{i % 3}") for i in range(100)])
    assert "77 others (77)" in drawn
    assert drawn.count("<rect") == 24 + 3
    assert flow("Moves", []) == ""


def test_a_flow_of_which_most_would_be_others_is_not_drawn() -> None:
    assert flow("Where pods go", [(f"from-{n}", f"to-{n}") for n in range(200)]) == ""
    assert "a to b: 2" in flow("Where pods go", [("a", "b"), ("a", "b")])


def test_a_long_number_beside_an_axis_is_not_cut_off() -> None:
    found = re.search(
        r'<text class="dim" x="([\d.]+)" y="14" text-anchor="end">42.9739<',
        levels("Saved", [0, 9], [("saved", [0, 42.9739])]),
    )
    assert found is not None
    assert float(found[1]) >= 7 * len("42.9739")


def test_labels_that_are_sentences_stand_above_their_bars() -> None:
    remedy = "add a node in zone eu-1a of pool big (m7i.4xlarge)"
    assert f'<text x="0" y="14">{remedy}</text>' in bars("How many more", [Bar(remedy, 3, "+3")])
    assert 'text-anchor="end">n1</text>' in bars("By node", [Bar("n1", 3, "3")])


def test_a_matrix_says_how_many_of_how_many() -> None:
    drawn = matrix("Missing", [Hit("web", "zone=a", 3, 9), Hit("web", "zone=b", 0, 9), Hit("db", "zone=a", 1, 1)])
    assert "web, zone=a: 3 of 9 are missing" in drawn
    assert "web, zone=b: all 9 are back" in drawn
    assert "db, zone=b: not hit" in drawn
    assert matrix("Missing", [Hit("web", "zone=a", 3, 9)]) == ""


def test_a_table_on_a_page_has_units_no_empty_columns_and_unbroken_names() -> None:
    kinds = {
        "at_s": ColumnKind.FLOAT64,
        "resource": ColumnKind.UTF8,
        "requested": ColumnKind.INT64,
        "pool": ColumnKind.UTF8,
        "why": ColumnKind.UTF8,
    }
    found = ColumnTable(kinds, [(14_430.0, "memory", 2**30, "", "word " * 20), (0.25, "cpu", 1500, None, "a-b")])
    page = ReportPage(
        "kubesched x", "Yes.", "", f"  {'word ' * 50}\n  A  {'b  ' * 60}", (), {"seen": found}, ()
    ).to_html()
    assert re.findall(r"<th[^>]*><button>(.*?)</button>", page) == ["at", "resource", "requested", "why"]
    assert '<td class=n data-v="14430.0">4h30s</td>' in page
    assert '<td class=n data-v="0.25">0.25s</td>' in page
    assert f'<td class=n data-v="{2**30}">1Gi</td>' in page
    assert '<td class=n data-v="1500">1500m</td>' in page
    assert page.count("<td class=long>") == 1
    assert "<section class=plots>" not in page
    text = page.partition("<pre>")[2].partition("</pre>")[0].splitlines()
    assert [len(line) > 140 for line in text] == [False, False, True]  # the row of a table stays whole


def test_the_labels_of_plots_name_the_pod_or_variant_only_where_there_are_several() -> None:
    cluster = [node("a"), node("b")]
    one, two = (kubesched.capacity(cluster, shapes=shapes).to_html() for shapes in (["1/1Gi"], ["1/1Gi", "2/2Gi"]))
    assert "<title>add a node" in one
    assert "<title>1-1Gi: add a node" in two


def test_the_readme_shows_what_a_plan_of_the_applications_prints() -> None:
    arguments = ["-f", str(EXAMPLES / "plan" / "apps"), "--catalogue", str(EXAMPLES / "plan" / "aws.yaml")]
    printed = CliRunner().invoke(main, ["plan", *arguments, "--from-scratch"]).stdout
    assert f"```text\n{printed}```" in (ROOT / "README.md").read_text()
