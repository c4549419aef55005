"""Preemption as each version did it: who is a victim, whom budgets protect, and where the least harm is."""

from __future__ import annotations

from typing import Any

import pytest

import kubesched
from kubesched.older.config import EMULATED_VERSIONS
from kubesched.testing import make


def preemption(version: str, *objects: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = kubesched.explain(objects, "default/new", emulate=version).to_dict()["preemption"]
    return found


def full(node: str, *pods: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    return make.node(node, cpu="2"), *pods


@pytest.mark.parametrize("version", EMULATED_VERSIONS)
def test_the_least_important_pods_go(version: str) -> None:
    objects = full("a", make.pod("low", on="a", cpu="1", priority=1), make.pod("mid", on="a", cpu="1", priority=5))
    found = preemption(version, *objects, make.pod("new", cpu="1", priority=10))
    assert (found["node"], found["victims"]) == ("a", ["default/low"])


@pytest.mark.parametrize("version", EMULATED_VERSIONS)
def test_equals_are_not_evicted(version: str) -> None:
    objects = full("a", make.pod("old", on="a", cpu="2", priority=10))
    found = preemption(version, *objects, make.pod("new", cpu="1", priority=10))
    assert found == {"node": "", "message": "no candidates"}


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        pytest.param("1.14", ["a", "b"], id="1.14 leaves it to chance"),
        pytest.param("1.17", ["b"], id="later ones evict who started last"),
        pytest.param("1.19", ["b"], id="and 1.19, too"),
    ],
)
def test_start_times_decide_between_nodes(version: str, expected: list[str]) -> None:
    early = make.pod("early", on="a", cpu="2", priority=1, started="2026-01-01T00:00:00Z")
    late = make.pod("late", on="b", cpu="2", priority=1, started="2026-01-02T00:00:00Z")
    found = preemption(version, *full("a", early), *full("b", late), make.pod("new", cpu="1", priority=10))
    acceptable = [candidate["node"] for candidate in found.get("acceptable", [found])]
    assert acceptable == expected


@pytest.mark.parametrize(
    ("version", "violations"),
    [
        pytest.param("1.17", None, id="a budget of one protects none until it is used up"),
        pytest.param("1.18", 1, id="victims use it up"),
        pytest.param("1.19", 1, id="in 1.19 as well"),
    ],
)
def test_budgets_count_down_from_1_18_on(version: str, violations: int | None) -> None:
    labels = {"app": "web"}
    pods = [make.pod(f"web-{n}", on="a", cpu="1", priority=n, labels=labels) for n in (1, 2)]
    objects = (*full("a", *pods), make.budget("b", labels, allowed=1), make.pod("new", cpu="2", priority=10))
    assert preemption(version, *objects)["candidates"]["a"].get("pdbViolations") == violations


@pytest.mark.parametrize("version", EMULATED_VERSIONS)
def test_a_pod_waits_for_its_victims_to_leave(version: str) -> None:
    leaving = make.pod("leaving", on="a", cpu="2", priority=1, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})
    new = make.pod("new", cpu="2", priority=10, status={"nominatedNodeName": "a"})
    assert preemption(version, *full("a", leaving), new) == {"node": "", "message": "not eligible"}


@pytest.mark.parametrize(("version", "preempts"), [("1.18", True), ("1.19", False)])
def test_a_pod_that_never_preempts_is_known_from_1_19_on(version: str, preempts: bool) -> None:
    objects = full("a", make.pod("old", on="a", cpu="2", priority=1))
    new = make.pod("new", cpu="2", priority=10, spec={"preemptionPolicy": "Never"})
    assert bool(preemption(version, *objects, new)["node"]) is preempts


def test_where_nothing_can_be_evicted_for_good_there_is_no_candidate() -> None:
    new = make.pod("new", priority=10)
    found = preemption("1.19", make.node("a", taints=[make.taint("gpu")]), make.pod("old", on="a", priority=1), new)
    assert found == {"node": "", "message": "no candidates"}


def test_the_table_is_as_before_after_all_trials() -> None:
    pods = [make.pod(f"old-{n}", on="a", cpu="1", priority=n) for n in (1, 2)]
    objects = [*full("a", *pods), make.pod("new", cpu="2", priority=10)]
    explanation = kubesched.explain(objects, "default/new", emulate="1.19")
    assert [info.name for info in explanation.cluster.nodes.at(0).pods] == ["old-1", "old-2"]
    assert explanation.cluster.nodes.at(0).requested("cpu") == 2000
