"""v1.13: the same as v1.14, but for what changed between them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kubesched
from kubesched.older.config import emulate, generation_of
from kubesched.testing import make
from kubesched.testing.vectors import older_differences, read_cases

VECTORS_OF_1_14 = Path(__file__).parents[2] / "vectors" / "older" / "1.14"
SPREADING = {
    "kind": "Policy",
    "predicates": [],
    "priorities": [{"name": "SelectorSpreadPriority", "weight": 1}],
}


def asked(version: str, *objects: dict[str, Any], **how: Any) -> dict[str, Any]:
    found: dict[str, Any] = kubesched.explain(objects, "default/new", emulate=version, **how).to_dict()
    return found


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        pytest.param("1.13", {"a": 0, "b": 10}, id="a pod that one of the selectors matches counts in 1.13"),
        pytest.param("1.14", {"a": 10, "b": 10}, id="all of them must match in 1.14"),
    ],
)
def test_which_pods_are_spread_from(version: str, expected: dict[str, int]) -> None:
    services = [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": selector},
        }
        for name, selector in (("web", {"app": "web"}), ("canary", {"track": "canary"}))
    ]
    bound = make.pod("old", on="a", labels={"app": "web"})
    new = make.pod("new", labels={"app": "web", "track": "canary"})
    answer = asked(version, make.node("a"), make.node("b"), *services, bound, new, policy=SPREADING)
    assert {name: node["scores"]["SelectorSpreadPriority"] for name, node in answer["nodes"].items()} == expected


@pytest.mark.parametrize(("version", "fits"), [("1.13", False), ("1.14", True)])
def test_a_node_that_is_out_of_disk_space(version: str, fits: bool) -> None:
    node = make.node("a")
    node["status"]["conditions"] = [{"type": "Ready", "status": "True"}, {"type": "OutOfDisk", "status": "True"}]
    answer = asked(version, node, make.pod("new"), feature_gates={"TaintNodesByCondition": False})
    reasons = answer["nodes"]["a"].get("reasons", [])
    assert reasons == ([] if fits else ["node(s) were out of disk space"])


@pytest.mark.parametrize(
    ("version", "given", "expected"),
    [("1.13", 0, 50), ("1.13", 30, 30), ("1.14", 0, 0), ("1.14", 30, 30)],
)
def test_the_share_of_nodes_that_is_scored(version: str, given: int, expected: int) -> None:
    generation = generation_of(version)
    assert generation is not None
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1alpha1",
        "kind": "KubeSchedulerConfiguration",
        "percentageOfNodesToScore": given,
    }
    assert emulate(generation, config=config).config.percentage_of_nodes_to_score == expected


def test_what_1_14_answered_is_what_1_13_answers_where_nothing_changed() -> None:
    """Its own answers were never recorded; those of 1.14 cover everything but selectors and Cinder."""
    n_cases, cinder = 0, []
    for family in sorted(VECTORS_OF_1_14.glob("*.jsonl.gz")):
        for case in read_cases(family):
            n_cases += 1
            predicates = (case["policy"] or {}).get("predicates") or ()
            if any(predicate["name"] == "MaxCinderVolumeCount" for predicate in predicates):
                cinder.append(case)
            else:
                assert older_differences(case | {"version": "1.13"}) == [], case["name"]
    assert n_cases - len(cinder) == 164
    for case in cinder:
        told = " ".join(older_differences(case | {"version": "1.13"}))
        assert "Invalid configuration: Predicate type not found for MaxCinderVolumeCount" in told
