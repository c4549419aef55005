"""Filters: order, ownership of reasons, the two forms, what becomes of errors, nominated pods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from kubesched.framework import OK, CycleState, NodeInfo, NodeTable, PodInfo, Status, Verdicts
from kubesched.k8s.model import manifests
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.filter import run_filters
from kubesched.scheduler.engine.plugin_call import PluginError
from kubesched.scheduler.engine.profile import Profile, filter_step
from kubesched.scheduler.engine.row_check import run_filters_with_nominated
from kubesched.testing import make


@dataclass(frozen=True)
class RejectNamed:
    """Answers for the whole table."""

    names: tuple[str, ...]
    name: str = "RejectNamed"
    unresolvable: bool = False

    def filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdicts:
        mask = np.isin(np.array(nodes.names), self.names)
        return Verdicts.reject(mask, f"rejected by {self.name}", unresolvable=self.unresolvable)


class CountingNodeByNode:
    """Answers node by node, and remembers whom it was asked about."""

    name = "CountingNodeByNode"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        self.asked.append(node.name)
        return OK if node.name != "c" else Status.unschedulable("not c")


class Broken:
    name = "Broken"

    def filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdicts:
        raise ZeroDivisionError("oops")


class OnePodPerNode:
    name = "OnePodPerNode"

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        return Status.unschedulable("taken") if node.pods else OK


def _profile(*plugins: Any) -> Profile:
    extension_points = (
        "pre_enqueue queue_sort pre_filter pre_filter_extensions post_filter pre_score score "
        "reserve permit pre_bind bind post_bind emitters"
    )
    empty: dict[str, Any] = {extension_point: [] for extension_point in extension_points.split()}
    steps = [filter_step(plugin) for plugin in plugins]
    return Profile(
        scheduler_name="s", percentage_of_nodes_to_score=None, plugins={}, followers={}, filter=steps, **empty
    )


def _cluster(*more: make.Manifest) -> tuple[Cluster, PodInfo]:
    nodes = [make.node(name) for name in "abcd"]
    cluster = Cluster.from_objects(manifests.from_dicts([*nodes, make.pod("p"), *more]).objects)
    return cluster, next(info for info in cluster.pending.values() if info.name == "p")


def test_the_first_plugin_to_reject_a_node_owns_its_reasons() -> None:
    cluster, pod = _cluster()
    profile = _profile(RejectNamed(("a", "b"), "First"), RejectNamed(("b", "c"), "Second", unresolvable=True))
    outcome = run_filters(profile, CycleState(), pod, cluster.nodes)
    assert [outcome.status(i) for i in range(4)] == [
        Status.unschedulable("rejected by First").by("First"),
        Status.unschedulable("rejected by First").by("First"),
        Status.unresolvable("rejected by Second").by("Second"),
        OK,
    ]
    assert outcome.reason_counts() == {"rejected by First": 2, "rejected by Second": 1}
    assert outcome.unresolvable.tolist() == [False, False, True, False]


def test_a_plugin_that_answers_node_by_node_is_asked_about_live_nodes_only() -> None:
    cluster, pod = _cluster()
    counting = CountingNodeByNode()
    outcome = run_filters(_profile(RejectNamed(("a",)), counting), CycleState(), pod, cluster.nodes)
    assert counting.asked == ["b", "c", "d"]
    assert outcome.fits.tolist() == [False, True, False, True]
    assert outcome.status(2) == Status.unschedulable("not c").by("CountingNodeByNode")


def test_a_skipped_plugin_is_not_asked() -> None:
    cluster, pod = _cluster()
    cycle = CycleState()
    cycle.skip_filter = frozenset({"Broken"})
    assert run_filters(_profile(Broken()), cycle, pod, cluster.nodes).fits.all()


def test_an_exception_names_the_plugin() -> None:
    cluster, pod = _cluster()
    with pytest.raises(PluginError, match='running "Broken" filter plugin: oops'):
        run_filters(_profile(Broken()), CycleState(), pod, cluster.nodes)


@pytest.mark.parametrize(
    ("priority", "fits"),
    [
        pytest.param(5, False, id="a nominated pod of higher priority keeps its place"),
        pytest.param(0, False, id="a nominated pod of equal priority keeps its place"),
        pytest.param(-1, True, id="a nominated pod of lower priority does not count"),
    ],
)
def test_the_pod_must_fit_beside_nominated_pods(priority: int, fits: bool) -> None:
    nominated_pod = make.pod("nominated pod", priority=priority, status={"nominatedNodeName": "b"})
    cluster, pod = _cluster(nominated_pod)
    outcome = run_filters_with_nominated(cluster, _profile(OnePodPerNode()), CycleState(), pod, cluster.nodes)
    assert outcome.fits.tolist() == [True, fits, True, True]
    assert outcome.reason_counts() == ({} if fits else {"taken": 1})
    assert len(cluster.table.pods) == 0


def test_a_pod_is_no_rival_of_itself() -> None:
    cluster = Cluster.from_objects(
        manifests.from_dicts([make.node("a"), make.pod("p", status={"nominatedNodeName": "a"})]).objects
    )
    pod = next(iter(cluster.pending.values()))
    outcome = run_filters_with_nominated(cluster, _profile(OnePodPerNode()), CycleState(), pod, cluster.nodes)
    assert outcome.fits.all()


def test_where_nominated_pods_are_in_the_way_nobody_else_counts_as_rejecting() -> None:
    nominated_pod = make.pod("nominated pod", status={"nominatedNodeName": "b"})
    cluster, pod = _cluster(nominated_pod)
    profile = _profile(OnePodPerNode(), RejectNamed(("b",)))
    outcome = run_filters_with_nominated(cluster, profile, CycleState(), pod, cluster.nodes)
    assert outcome.status(1).plugin == "OnePodPerNode"
    assert outcome.rejecting_plugins() == ["OnePodPerNode"]
