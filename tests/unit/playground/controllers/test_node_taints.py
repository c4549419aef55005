"""Taints that follow from the state of a node."""

from __future__ import annotations

import pytest

from kubesched.k8s.model.core import Node, NodeCondition, NodeSpec, NodeStatus, Taint
from kubesched.k8s.model.meta import ObjectMeta
from kubesched.playground.controllers.node_lifecycle import are_taints_right, wanted_taints, with_taints_right

NOT_READY = {("node.kubernetes.io/not-ready", "NoSchedule"), ("node.kubernetes.io/not-ready", "NoExecute")}
UNREACHABLE = {("node.kubernetes.io/unreachable", "NoSchedule"), ("node.kubernetes.io/unreachable", "NoExecute")}


def _node(conditions: dict[str, str], *, cordoned: bool = False, taints: tuple[Taint, ...] = ()) -> Node:
    made = tuple(NodeCondition(kind, status) for kind, status in conditions.items())
    return Node(ObjectMeta(name="n"), NodeSpec(cordoned, taints or None), NodeStatus(conditions=made))


@pytest.mark.parametrize(
    ("node", "wanted"),
    [
        pytest.param(_node({"Ready": "True"}), set(), id="ready"),
        pytest.param(_node({"Ready": "False"}), NOT_READY, id="not ready"),
        pytest.param(_node({"Ready": "Unknown"}), UNREACHABLE, id="silent"),
        pytest.param(
            _node({"Ready": "True", "DiskPressure": "True"}),
            {("node.kubernetes.io/disk-pressure", "NoSchedule")},
            id="under pressure",
        ),
        pytest.param(
            _node({"Ready": "True"}, cordoned=True), {("node.kubernetes.io/unschedulable", "NoSchedule")}, id="cordoned"
        ),
    ],
)
def test_taints_follow_from_conditions(node: Node, wanted: set[tuple[str, str]]) -> None:
    assert wanted_taints(node) == wanted


def test_taints_of_others_stay_as_they_are() -> None:
    gpu = {"key": "gpu", "value": "a100", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}
    stale = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    found = with_taints_right([gpu, stale], UNREACHABLE, "2026-02-02T00:00:00Z")
    assert found == [
        gpu,
        {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": "2026-02-02T00:00:00Z"},
        {"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"},
    ]


def test_a_node_whose_taints_are_right_is_left_alone() -> None:
    tainted = tuple(Taint(key, effect) for key, effect in sorted(UNREACHABLE))
    assert are_taints_right(_node({"Ready": "Unknown"}, taints=(*tainted, Taint("gpu", "NoSchedule"))))
    assert not are_taints_right(_node({"Ready": "True"}, taints=tainted))
