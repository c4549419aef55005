"""Disruption budgets: how many pods may go."""

from __future__ import annotations

from typing import Any

import pytest

from harness.workload_manifests import objects
from kubesched.k8s.model.core import Pod, PodDisruptionBudget
from kubesched.k8s.model.meta import OwnerReference
from kubesched.k8s.workloads.budgets import budget_numbers, disruptions_allowed
from kubesched.k8s.workloads.replicas import ShareError, share_of
from kubesched.testing import make

OWNER = {"ownerReferences": [{"kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}]}


def _budget(**spec: Any) -> PodDisruptionBudget:
    manifest = make.budget("b", {"app": "web"}, allowed=0)
    manifest["spec"].update(spec)
    (found,) = objects(manifest)
    assert isinstance(found, PodDisruptionBudget)
    return found


def _pods(n_ready: int, n_waiting: int = 0, *, owned: bool = True) -> list[Pod]:
    metadata = OWNER if owned else {}
    made = [
        *(make.pod(f"r{i}", on="a", labels={"app": "web"}, metadata=metadata) for i in range(n_ready)),
        *(make.pod(f"w{i}", labels={"app": "web"}, metadata=metadata) for i in range(n_waiting)),
        make.pod("other", on="a", labels={"app": "other"}),
    ]
    return [pod for pod in objects(*made) if isinstance(pod, Pod)]


def _scale(_: OwnerReference) -> tuple[str, int]:
    return "u", 4


@pytest.mark.parametrize(
    ("spec", "pods", "expected"),
    [
        pytest.param({"minAvailable": 2}, _pods(3), 1, id="one more than must stay"),
        pytest.param({"minAvailable": 3}, _pods(2, 1), 0, id="too few already"),
        pytest.param({"minAvailable": "50%"}, _pods(3), 1, id="a share of what is wanted, not of what runs"),
        pytest.param({"maxUnavailable": 1}, _pods(4), 1, id="one may miss"),
        pytest.param({"maxUnavailable": 1}, _pods(3), 0, id="one is missing already"),
        pytest.param({"maxUnavailable": "30%"}, _pods(4), 2, id="shares are rounded up"),
        pytest.param({"maxUnavailable": 1}, _pods(4, owned=False), 0, id="nobody says how many there should be"),
        pytest.param({"minAvailable": 0}, _pods(0), 0, id="no pods, nothing allowed"),
        pytest.param(
            {"maxUnavailable": 1}, [*_pods(4), *_pods(2, owned=False)], 3, id="pods of nobody are not expected"
        ),
        pytest.param({}, _pods(4), 0, id="a budget that says nothing"),
    ],
)
def test_as_many_may_go_as_are_healthy_beyond_need(spec: dict[str, Any], pods: list[Pod], expected: int) -> None:
    assert disruptions_allowed(_budget(**spec), pods, _scale) == expected


def test_a_budget_says_what_it_cannot_reckon() -> None:
    numbers = budget_numbers(_budget(minAvailable="50%"), _pods(2), lambda _: None)
    assert (numbers.n_allowed, numbers.problem) == (0, 'found no controllers for pod "r0"')
    numbers = budget_numbers(_budget(maxUnavailable=1), _pods(2, owned=False), _scale)
    assert numbers.unmanaged == ("r0", "r1")


def test_who_is_about_to_go_is_expected_but_not_healthy() -> None:
    numbers = budget_numbers(_budget(minAvailable=2), _pods(3), _scale, {"r1"})
    assert (numbers.n_expected, numbers.n_healthy, numbers.n_needed, numbers.n_allowed) == (3, 2, 2, 0)
    numbers = budget_numbers(_budget(minAvailable=2), [], _scale)
    assert (numbers.n_expected, numbers.n_needed, numbers.n_allowed) == (0, 2, 0)


def test_shares_are_percentages_or_numbers() -> None:
    assert share_of("25%", 10, rounding_up=True) == 3
    assert share_of("25%", 10, rounding_up=False) == 2
    assert share_of(7, 10, rounding_up=True) == 7
    with pytest.raises(ShareError, match="a number or a percentage is expected"):
        share_of("a quarter", 10, rounding_up=True)
