"""What compares pod groups with kube-scheduler: scenarios come from their seed alone, and outcomes leave out chance."""

from __future__ import annotations

from typing import Any

from harness.group_comparison.demanding_scenarios import draw
from harness.group_comparison.outcomes import outcome_of
from harness.group_comparison.playing import Played
from harness.group_comparison.scenarios import SETS, VERSIONS, written_for


def _pod(name: str, node: str = "", message: str = "") -> dict[str, Any]:
    told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    spec = {"schedulingGroup": {"podGroupName": "g"}, **({"nodeName": node} if node else {})}
    return {"metadata": {"name": name}, "spec": spec, "status": {} if node else {"conditions": [told]}}


def _played(bound: str, waiting: str, nodes_in_cluster: int, uid: str) -> Played:
    pods = [
        _pod(bound, "a"),
        _pod(waiting, message=f"0/{nodes_in_cluster} nodes are available: 2 Insufficient cpu."),
    ]
    evicted = {"involvedObject": {"name": "low-0"}, "reason": "Preempted", "message": f"Preempted by podgroup {uid} on"}
    nodes = [{"metadata": {"name": "a", "labels": {"scenario": "s", "rack-s": "r0"}}}]
    return Played(pods, [], nodes, [evicted], {"m-0", "m-1", "low-0"})


def test_the_same_seed_draws_the_same_scenarios() -> None:
    for name in SETS:
        assert draw(name, 6, 4) == draw(name, 8, 4)[:6]
        assert draw(name, 6, 4) != draw(name, 6, 5)


def test_which_of_equal_pods_it_was_and_what_others_have_does_not_matter() -> None:
    one = outcome_of(_played("m-0", "m-1", 4, "13c1f219-8624-4293-ae2d-961615f2ee42"))
    assert one == outcome_of(_played("m-1", "m-0", 90, "00000000-8624-4293-ae2d-961615f2ee42"))
    assert ("bound", "1 x m") in one
    assert ("gone", "1 x low") in one
    waits = "PodScheduled False Unschedulable N nodes are available: 2 Insufficient cpu."
    assert ("pending", f"1 x m: {waits}") in one


def test_another_number_of_bound_pods_is_another_outcome() -> None:
    fewer = _played("m-0", "m-1", 4, "13c1f219-8624-4293-ae2d-961615f2ee42")
    more = Played([_pod("m-0", "a"), _pod("m-1", "a")], fewer.groups, fewer.nodes, fewer.events, fewer.made)
    assert outcome_of(fewer) != outcome_of(more)


def test_for_v1_37_groups_are_written_in_its_fields() -> None:
    created = [one for scenario in draw("preempt", 40, 1) for step in scenario.steps for one in step.created]
    groups = [one for one in created if one["kind"] == "PodGroup"]
    modes = [written_for(one, VERSIONS["1.37"])["spec"].get("disruptionMode") for one in groups]
    assert [one["spec"].get("disruptionMode") for one in groups] == [mode and "PodGroup" for mode in modes]
    assert {"all": {}} in modes
