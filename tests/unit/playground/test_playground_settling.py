"""When all is decided, and what is told of it."""

from __future__ import annotations

import pytest

from kubesched.k8s.model.core import Pod, PodCondition, PodSchedulingGate, PodSpec, PodStatus
from kubesched.k8s.model.meta import ObjectMeta
from kubesched.playground.settling import Outcome, is_decided

REFUSED = PodCondition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available")


def _pod(name: str = "p", *, node: str = "", going: bool = False, gated: bool = False, **status: object) -> Pod:
    gone = "2026-01-01T00:00:00Z" if going else None
    gates = (PodSchedulingGate("g"),) if gated else None
    metadata = ObjectMeta(name=name, namespace="d", deletion_timestamp=gone)
    return Pod(metadata, PodSpec(node_name=node, scheduling_gates=gates), PodStatus(**status))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pod", "decided"),
    [
        pytest.param(_pod(), False, id="not looked at yet"),
        pytest.param(_pod(node="n"), True, id="has a place"),
        pytest.param(_pod(conditions=(REFUSED,)), True, id="has none, and the scheduler said why"),
        pytest.param(_pod(conditions=(REFUSED,), nominated_node_name="n"), False, id="makes room for itself"),
        pytest.param(_pod(node="n", going=True), False, id="on its way out"),
        pytest.param(_pod(gated=True), True, id="gated"),
        pytest.param(_pod(phase="Succeeded"), True, id="finished"),
    ],
)
def test_a_pod_is_decided_when_nothing_more_will_come(pod: Pod, decided: bool) -> None:
    assert is_decided(pod, {}) is decided


def test_the_summary_counts_places_and_groups_reasons() -> None:
    pods = [_pod("a", node="n"), _pod("b", node="n"), *(_pod(f"x{n}", conditions=(REFUSED,)) for n in range(5))]
    outcome = Outcome.of(pods, {})
    assert outcome.lines() == [
        "2 of 7 pods scheduled, on 1 node",
        "pending: d/x0, d/x1, d/x2 and 2 more: 0/1 nodes are available",
    ]
    assert outcome.by_node == {"n": 2}
