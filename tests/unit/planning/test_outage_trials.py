"""Failures tried at rest: the same as when they are played in virtual time; at random; in every form."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from resting_clusters import node, random_cluster, workload

import kubesched
from kubesched.cli.main import main
from kubesched.planning.node_groups import NoSuchGroupError
from kubesched.planning.outage_report import OutageReport
from kubesched.planning.statistics import Share

EXAMPLE = str(Path(__file__).parents[3] / "examples" / "outage")


def _essence(report: OutageReport) -> list[Any]:
    return [(result["case"], result["missing"], result["workloads"]) for result in report.to_dict()["cases"]]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([{}, {"gone": True}, {"force_delete_after": 60}]))
def test_a_case_tried_at_rest_ends_as_if_it_were_played(seed: int, rules: dict[str, Any]) -> None:
    cluster = random_cluster(Random(seed))
    tried = kubesched.outage(cluster, every="node", tie_break="name", **rules)
    played = kubesched.outage(cluster, every="node", tie_break="name", full=True, **rules)
    assert _essence(tried) == _essence(played)


def test_pods_that_tolerate_less_go_first_and_are_replaced_sooner() -> None:
    hasty = [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "operator": "Exists"}]
    hasty[0]["tolerationSeconds"] = 10  # type: ignore[assignment]
    cluster = [
        *(node(name, cpu="2") for name in "abc"),
        *workload("Deployment", "slow", "1", ["a"]),
        *workload("Deployment", "fast", "1500m", ["a"], tolerations=hasty),
        *workload("Deployment", "rest", "500m", ["b", "b"]),
    ]
    for full in (False, True):
        report = kubesched.outage(cluster, every="node", tie_break="name", full=full)
        times = {loss.workload: loss.replaced_s for loss in report.results[0].workloads}
        assert times == {"Deployment fast": 60.0, "Deployment slow": 350.0}


def test_preemption_is_counted_and_the_victims_are_missed() -> None:
    classes = [
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 100}
    ]
    cluster = [
        *classes,
        node("a", cpu="2"),
        node("b", cpu="2"),
        *workload("Deployment", "high", "1500m", ["a"], priorityClassName="high", priority=100),
        *workload("Deployment", "low", "1500m", ["b"]),
    ]
    for full in (False, True):
        report = kubesched.outage(cluster, every="node", tie_break="name", full=full)
        first = report.results[0]
        assert first.preempted == 1
        assert [(loss.workload, loss.missing) for loss in first.workloads] == [
            ("Deployment low", 1),
            ("Deployment high", 0),
        ]


def test_what_is_missing_in_the_worst_case_is_there_for_a_plan() -> None:
    cluster = [node("a"), node("b"), *workload("Deployment", "web", "3", ["a", "b"])]
    report = kubesched.outage(cluster, every="node")
    assert [(loss.workload, loss.missing, loss.requests["cpu"]) for loss in report.missing] == [
        ("Deployment web", 1, 3000)
    ]
    assert report.to_dict()["missing"] == {"pods": 1, "requests": {"cpu": 3000, "memory": 67108864}}


def test_failures_at_random_give_a_share_with_its_interval() -> None:
    cluster = [*(node(name) for name in "abc"), *workload("Deployment", "web", "3", ["a", "b"])]
    report = kubesched.outage(cluster, random=2, trials=40)
    again = kubesched.outage(cluster, random=2, trials=40)
    assert report.to_dict() == again.to_dict()
    assert report.lossy == Share(40, 40)
    assert report.headline.startswith("40 of 40 random failures of 2 nodes leave pods without a node")
    assert "91.2% to 100.0%" in report.headline
    one = kubesched.outage(cluster, random=1, trials=30)
    assert (one.lossy.count, one.survives) == (0, True)
    with pytest.raises(NoSuchGroupError, match="4 nodes cannot fail at random: there are 3"):
        kubesched.outage(cluster, random=4)


def test_wilsons_interval() -> None:
    assert Share(0, 10).interval == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert Share(5, 10).interval == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert Share(0, 0).interval == (0.0, 1.0)


def test_the_command_line_in_every_form() -> None:
    def run(*arguments: str) -> Any:
        return CliRunner().invoke(main, ["outage", "-f", EXAMPLE, "--tie-break", "name", *arguments])

    every = run("--every", "node", "-o", "csv")
    assert every.stdout.splitlines()[0].startswith("case,nodes,hit,missing")
    assert len(every.stdout.splitlines()) == 7
    assert "| case | nodes |" in run("--every", "node", "-o", "markdown").stdout
    assert json.loads(run("--random", "2", "--trials", "5", "-o", "json").stdout)["random"]["trials"] == 5
    assert "Tried on the cluster at rest" in run("--every", "node").stdout
    assert "Tried on the cluster at rest" not in run("--every", "node", "--full").stdout
    for wrong in (["--trials", "3"], ["--random", "2", "--every", "node"], ["--random", "0"], ["--random", "99"]):
        failed = run(*wrong)
        assert failed.exit_code == 2
        assert len(failed.stderr.splitlines()) == 1
