"""Whole decisions: what the extension points make of a pod together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import kubesched
from kubesched.framework import CycleState, Handle, NodeTable, PodInfo
from kubesched.framework.nodes import RowArray
from kubesched.framework.results import Scores
from kubesched.k8s.model import manifests
from kubesched.k8s.model.meta import PodKey
from kubesched.scheduler.build import build_schedulers
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.config import default, load
from kubesched.scheduler.engine.score import ByName
from kubesched.scheduler.plugins.registry import REGISTRY
from kubesched.testing import make


def test_without_nodes_the_message_says_so() -> None:
    answer = kubesched.explain([make.pod("p")], "default/p").to_dict()
    assert answer["message"] == "no nodes available to schedule pods"
    assert answer["preemption"] is None


def test_a_message_is_cut_to_what_an_event_holds() -> None:
    nodes = [make.node(f"n{i}", cpu=0, allocatable={f"example.com/{'x' * 40}-{i}": 0}) for i in range(30)]
    wanted = {f"example.com/{'x' * 40}-{i}": 1 for i in range(30)}
    message = kubesched.explain([*nodes, make.pod("p", requests=wanted)], "default/p").to_dict()["message"]
    assert len(message) == 1024
    assert message.endswith(" ...")


def test_narrowing_to_no_node_at_all_names_the_plugin() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gone"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    answer = kubesched.explain([make.node("a"), make.pod("p", spec={"affinity": affinity})], "default/p").to_dict()
    assert answer["prefilterNodes"] == ["gone"]
    assert answer["message"].startswith("0/1 nodes are available: 1 node(s) didn't satisfy plugin(s) [NodeAffinity].")


class Choosy(ByName):
    """Remembers what it had to choose from."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def choose_row(self, rows: RowArray, names: Sequence[str]) -> int:
        self.asked.append(len(rows))
        return super().choose_row(rows, names)


@pytest.mark.parametrize(("n_feasible", "asked"), [(0, []), (1, []), (2, [2]), (3, [3])])
def test_there_is_always_something_to_choose_from(n_feasible: int, asked: list[int]) -> None:
    nodes = [make.node(f"n{i}", cpu=2 if i < n_feasible else 0) for i in range(4)]
    cluster = Cluster.from_objects(manifests.from_dicts([*nodes, make.pod("p", cpu=1)]).objects)
    tie_break = Choosy()
    (scheduler,) = build_schedulers(cluster, default(), tie_break).values()
    decision = scheduler.decide(cluster.pending[PodKey("default/p")])
    assert (decision.n_evaluated, decision.n_feasible) == (4, n_feasible)
    assert tie_break.asked == asked


class Alphabetical:
    """Prefers the last name: a score plugin from outside."""

    name = "Alphabetical"

    def __init__(self, args: object, handle: Handle) -> None:
        self.args = args

    def score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        ranks = np.argsort(np.argsort(np.array(nodes.names)))
        return ranks.astype(np.int64) * self.step

    step = 1


class TooGenerous(Alphabetical):
    name = "TooGenerous"
    step = 101


def _decide(plugin: type[Alphabetical]) -> tuple[str, str]:
    config = load(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"score": {"enabled": [{"name": plugin.name, "weight": 100}]}}}],
        },
        "test",
    )
    objects = [make.node("a"), make.node("b"), make.pod("p")]
    cluster = Cluster.from_objects(manifests.from_dicts(objects).objects)
    registry = REGISTRY.merged_with({plugin.name: plugin})
    scheduler = build_schedulers(cluster, config, ByName(), registry=registry)["default-scheduler"]
    decision = scheduler.decide(next(iter(cluster.pending.values())))
    return decision.node_name, decision.error


def test_a_plugin_from_outside_takes_part() -> None:
    assert _decide(Alphabetical) == ("b", "")


def test_a_score_outside_the_range_is_an_error_that_names_the_plugin() -> None:
    node_name, error = _decide(TooGenerous)
    assert node_name == ""
    assert 'plugin "TooGenerous" returns an invalid score 101' in error


@pytest.mark.parametrize("n_nodes", [1, 3])
def test_what_is_chosen_does_not_depend_on_explaining_it(n_nodes: int) -> None:
    objects = [*(make.node(f"n{i}", cpu=4 + i) for i in range(n_nodes)), make.pod("p", cpu=1)]
    cluster = Cluster.from_objects(manifests.from_dicts(objects).objects)
    scheduler = build_schedulers(cluster, default(), ByName())["default-scheduler"]
    pod = next(iter(cluster.pending.values()))
    assert scheduler.decide(pod).node_name == scheduler.decide(pod, complete=True).node_name
