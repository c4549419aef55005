"""NodeName: a pod that names its node."""

from __future__ import annotations

import pytest
from small_clusters import NO_HANDLE, node, pod_info, statuses, table

from kubesched.framework import CycleState
from kubesched.framework.events import ActionType, ClusterEvent, EventResource, RegisteredEvent
from kubesched.k8s.model import manifests
from kubesched.scheduler.build import build_schedulers
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.config import default
from kubesched.scheduler.engine.score import ByName
from kubesched.scheduler.plugins.node_name import NodeName
from kubesched.testing import make

PLUGIN = NodeName(None, NO_HANDLE)
OTHER = ("UnschedulableAndUnresolvable", "node(s) didn't match the requested node name")


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param("", {}, id="names none"),
        pytest.param("a", {"b": OTHER}, id="names one of them"),
        pytest.param("c", {"a": OTHER, "b": OTHER}, id="names one that is not there"),
    ],
)
def test_a_pod_goes_only_to_the_node_it_names(wanted: str, expected: dict[str, tuple[str, ...]]) -> None:
    nodes = table(node("a"), node("b"))
    assert statuses(PLUGIN.filter(CycleState(), pod_info(nodeName=wanted), nodes), nodes) == expected


def test_every_new_node_is_worth_a_try() -> None:
    assert list(PLUGIN.events_to_register()) == [
        RegisteredEvent(ClusterEvent(EventResource.NODE, ActionType.ADD), None)
    ]


@pytest.mark.parametrize("wanted", ["", "a", "c"])
def test_one_node_is_answered_as_it_is_among_all(wanted: str) -> None:
    nodes = table(node("a"), node("b"))
    info = pod_info(nodeName=wanted)
    together = PLUGIN.filter(CycleState(), info, nodes)
    for position in range(len(nodes)):
        assert PLUGIN.filter_node(CycleState(), info, nodes.at(position)) == together.status(position)


def test_a_decision_about_a_pod_that_names_its_node() -> None:
    """No queue has such a pod, and `explain` says that it is bound; the library can be asked all the same."""
    cluster = Cluster.from_objects(manifests.from_dicts([make.node("a"), make.node("b")]).objects)
    scheduler = build_schedulers(cluster, default(), ByName())["default-scheduler"]
    assert scheduler.decide(pod_info(nodeName="b")).node_name == "b"
    decision = scheduler.decide(pod_info(nodeName="c"))
    assert decision.node_name == ""
    assert decision.message.startswith("0/2 nodes are available: 2 node(s) didn't match the requested node name.")
    assert (decision.n_evaluated, decision.n_feasible) == (2, 0)
