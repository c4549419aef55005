"""Older schedulers in a simulation: the same loop, other decisions."""

from __future__ import annotations

import pytest

import kubesched
from kubesched.older.config import EMULATED_VERSIONS
from kubesched.testing import make


@pytest.mark.parametrize("version", EMULATED_VERSIONS)
def test_pods_of_a_sequence_are_placed_one_after_another(version: str) -> None:
    objects = [make.node("a", cpu="2"), make.node("b", cpu="4"), *(make.pod(f"p-{n}", cpu="1") for n in range(7))]
    sequence = [f"default/p-{n}" for n in range(7)]
    steps = kubesched.simulate(objects, sequence=sequence, emulate=version, tie_break="name").to_dict()["steps"]
    assert [step.get("node") for step in steps[:6]].count("b") == 4
    assert steps[6]["message"] == "0/2 nodes are available: 2 Insufficient cpu."


def test_the_provider_of_autoscalers_fills_nodes() -> None:
    objects = [make.node("a"), make.node("b"), make.pod("old", on="b", cpu="2", memory="4Gi"), make.pod("new", cpu="1")]
    sequence = ["default/new"]

    def chosen(provider: str) -> str:
        how = {"provider": provider, "emulate": "1.17"}
        return str(kubesched.simulate(objects, sequence=sequence, **how).to_dict()["steps"][0]["node"])  # type: ignore[call-overload]

    assert (chosen("DefaultProvider"), chosen("ClusterAutoscalerProvider")) == ("a", "b")


def test_a_translated_policy_decides_as_today() -> None:
    policy = {"kind": "Policy", "priorities": [{"name": "MostRequestedPriority", "weight": 1}]}
    objects = [make.node("a"), make.node("b"), make.pod("old", on="b", cpu="2", memory="4Gi"), make.pod("new", cpu="1")]
    explanation = kubesched.explain(objects, "default/new", policy=policy)
    assert explanation.to_dict()["best"] == ["b"]


def test_an_evicted_pod_makes_room_in_virtual_time() -> None:
    objects = [
        make.node("a", cpu="2"),
        make.pod("old", on="a", cpu="2", priority=1),
        make.pod("new", cpu="2", priority=10),
    ]
    report = kubesched.simulate(objects, emulate="1.18", tie_break="name")
    [preemption] = report.preemptions
    assert "default/old" in str(preemption)
