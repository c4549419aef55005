"""Preemption: who may, where, at whose expense."""

from __future__ import annotations

from typing import Any

import pytest

import kubesched
from kubesched.testing import make
from kubesched.testing.make import Manifest


def _explain(*objects: Manifest, **pending: Any) -> dict[str, Any]:
    pending = {"cpu": 1, "priority": 10, **pending}
    found: dict[str, Any] = kubesched.explain([*objects, make.pod("p", **pending)], "default/p").to_dict()
    return found


def _full(name: str, **pod: Any) -> list[Manifest]:
    """A node whose only cpu is taken by one pod."""
    return [make.node(name, cpu=1), make.pod(f"on-{name}", on=name, cpu=1, **pod)]


@pytest.mark.parametrize(
    ("left", "right", "chosen"),
    [
        pytest.param({"priority": 2}, {"priority": 1}, "b", id="the lower of the highest priorities"),
        pytest.param(
            {"priority": 1, "started": "2026-01-01T00:00:00Z"},
            {"priority": 1, "started": "2026-01-02T00:00:00Z"},
            "b",
            id="the one that started last",
        ),
        pytest.param({"priority": 1, "labels": {"app": "kept"}}, {"priority": 5}, "b", id="the one no budget protects"),
    ],
)
def test_the_least_harmful_node_is_chosen(left: Manifest, right: Manifest, chosen: str) -> None:
    budget = make.budget("kept", {"app": "kept"}, allowed=0)
    answer = _explain(*_full("a", **left), *_full("b", **right), budget)
    assert answer["preemption"]["node"] == chosen
    assert answer["preemption"]["victims"] == [f"default/on-{chosen}"]


def test_fewer_victims_are_better_than_more_of_the_same_sum() -> None:
    two = [make.node("a", cpu=1), *(make.pod(f"a{i}", on="a", cpu="500m", priority=1) for i in range(2))]
    assert _explain(*two, *_full("b", priority=1))["preemption"]["node"] == "b"


def test_equal_candidates_are_all_named() -> None:
    answer = _explain(*_full("a"), *_full("b"))
    assert [choice["node"] for choice in answer["preemption"]["acceptable"]] == ["a", "b"]


def test_whoever_can_stay_is_spared_most_important_first() -> None:
    node = make.node("a", cpu=3)
    pods = [make.pod(f"v{i}", on="a", cpu=1, priority=i) for i in range(3)]
    assert _explain(node, *pods, cpu=2)["preemption"]["victims"] == ["default/v0", "default/v1"]


def test_a_budget_spares_a_pod_at_the_expense_of_another() -> None:
    node = make.node("a", cpu=2)
    kept = make.pod("kept", on="a", cpu=1, priority=0, labels={"app": "kept"})
    other = make.pod("other", on="a", cpu=1, priority=5)
    budget = make.budget("kept", {"app": "kept"}, allowed=0)
    assert _explain(node, kept, other, budget)["preemption"]["victims"] == ["default/other"]


@pytest.mark.parametrize(
    ("pending", "message"),
    [
        pytest.param(
            {"spec": {"preemptionPolicy": "Never"}}, "not eligible due to preemptionPolicy=Never.", id="the pod may not"
        ),
        pytest.param(
            {"priority": 0},
            "0/1 nodes are available: 1 No preemption victims found for incoming pod.",
            id="nobody is of lower priority",
        ),
        pytest.param(
            {"cpu": 2},
            "0/1 nodes are available: 1 Preemption is not helpful for scheduling.",
            id="the node is too small anyway",
        ),
    ],
)
def test_no_room_can_be_made(pending: Manifest, message: str) -> None:
    answer = _explain(*_full("a"), **pending)
    assert answer["preemption"] == {"node": "", "message": f"no new claims to deallocate, preemption: {message}"}
    assert answer["message"].endswith(f". no new claims to deallocate, preemption: {message}")


def test_a_pod_waits_for_its_victims_to_leave() -> None:
    leaving = {
        "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
        "status": {
            "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}],
        },
    }
    answer = _explain(*_full("a", **leaving), *_full("b"), status={"nominatedNodeName": "a"})
    assert "not eligible due to a terminating pod on the nominated node." in answer["preemption"]["message"]
