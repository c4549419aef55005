"""Nodes that join one by one while pods wait: the rehearsal, and plans that hold when they are played."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from plan_oracle import catalogue, pod, shape

import kubesched
from kubesched.k8s.loaded_cluster import read_objects
from kubesched.k8s.model.core import Node
from kubesched.older.config.emulation import GivenConfiguration
from kubesched.planning.catalogue_files import catalogue_from
from kubesched.planning.new_nodes import manifest_of
from kubesched.planning.plan.joining import JoiningRehearsal
from kubesched.planning.plan.judge import Joining, MixJudge
from kubesched.planning.plan.reading import read_problem
from kubesched.planning.plan.report import PlanReport
from kubesched.planning.plan.request import planned_world
from kubesched.simulator.loading import SIMULATED_KINDS, load
from kubesched.testing import make
from kubesched.testing.make import Manifest


def machines() -> Manifest:
    return catalogue(
        {**shape("wide", 8, 16, 0.36), "allocatable": {"cpu": 8, "memory": "16Gi", "pods": 110}},
        {**shape("deep", 8, 64, 0.56), "allocatable": {"cpu": 8, "memory": "64Gi", "pods": 110}},
        {**shape("small", 2, 8, 0.11), "allocatable": {"cpu": 2, "memory": "8Gi", "pods": 12}},
    )


def mixed_pods(n: int = 180) -> list[Manifest]:
    """Some ask for much cpu, some for much memory; some do not fit on the small machine."""
    chance = Random(4)
    kinds = [(250, 512), (100, 1024), (500, 4096), (1500, 1024), (1000, 6144), (3000, 2048)]
    return [pod(f"p{k}", *chance.choice(kinds)) for k in range(n)]


def played(report: PlanReport, pods: list[Manifest], n_first: int, tie_break: str = "random") -> int:
    """How many pods are left if so many of the plan's nodes are there, and the others join one after another."""
    nodes = [manifest_of(item) for item in report.new_objects if isinstance(item, Node)]
    with kubesched.world([*nodes[:n_first], *pods], tie_break=tie_break).trial() as trial:
        trial.reseed(0)
        settled = trial.settle()
        for node in nodes[n_first:]:
            trial.add_node(node)
            settled = trial.settle()
    return len(settled.pending)


def rehearsed(n_nodes: int, seed: int) -> tuple[list[int], list[int]]:
    """How many pods the rehearsal and the scheduler leave on random machines that join in a random order, by order of
    arrival."""
    pods, document = mixed_pods(), machines()
    options = tuple(catalogue_from(document).options())
    config = GivenConfiguration.read(None, None, None, None).as_of_today().config
    planned = planned_world(load(read_objects(pods, SIMULATED_KINDS)), options, config, from_scratch=True)
    judge = MixJudge(planned, orders=3, arrival="later")
    model = read_problem(planned).model
    chance = Random(seed)
    line = [chance.randrange(len(model.options)) for _ in range(n_nodes)]
    rehearsal = JoiningRehearsal(model, [judge.queue(order) for _, order in judge.circumstances])
    placed = rehearsal.start()
    for option in line:
        placed = rehearsal.join(placed, np.full((3, 1), option))
    members = [model.options[option].members[0] for option in line]
    mix = tuple(members.count(option) for option in range(len(options)))
    judge.let_join(mix, Joining(tuple(members), 0))
    left = [len(judge.try_once(mix, "later", seed, order).pending) for seed, order in judge.circumstances]
    return (rehearsal.demand - placed).sum(axis=1).tolist(), left


@pytest.mark.parametrize(("n_nodes", "seed"), [(3, 0), (8, 1), (12, 2), (20, 3), (30, 4)])
def test_a_rehearsal_of_nodes_that_join_agrees_with_the_scheduler_to_the_pod(n_nodes: int, seed: int) -> None:
    expected, left = rehearsed(n_nodes, seed)
    assert expected == left


def test_a_rehearsal_of_another_queue_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the queue is gone through from its end."""
    arrivals = MixJudge.arrivals
    monkeypatch.setattr(MixJudge, "queue", lambda judge, order: arrivals(judge, order)[::-1])
    assert any(expected != left for expected, left in (rehearsed(n, n) for n in (8, 12, 20)))


def test_nodes_that_join_one_by_one_hold_all_pods_in_the_order_that_is_told() -> None:
    pods = mixed_pods()
    report = kubesched.plan(pods, machines(), from_scratch=True, arrival="later", time_limit_s=12)
    assert report.answer == "yes" and report.n_first == 0
    assert played(report, pods, 0) == 0
    assert report.headline.endswith("places all 180 pods as the nodes join one by one.")
    assert "Nodes join in this order: " in str(report) and "There before the pods" not in str(report)
    assert report.to_dict()["nodesBeforePods"] == 0
    names = [item.name for item in report.new_objects if isinstance(item, Node)]
    assert [one.name for one in report.nodes] == names


def test_of_some_nodes_that_are_there_and_others_that_join_all_pods_have_one() -> None:
    pods = mixed_pods()
    together = kubesched.plan(pods, machines(), from_scratch=True, time_limit_s=12)
    report = kubesched.plan(pods, machines(), from_scratch=True, arrival="rest-later", time_limit_s=12)
    assert report.answer == "yes" and report.n_first is not None
    assert played(report, pods, report.n_first) == 0
    assert together.n_first is None and "join in this order" not in str(together)

    assert report.cost < together.cost


def test_pods_that_wait_fill_the_nodes_that_are_there_before_others_join() -> None:
    """Nodes that are there before the pods draw the small ones away from old nodes that are fuller."""
    old = [make.node(f"old-{k}", cpu="4", memory="16Gi") for k in range(12)]
    held = [make.pod(f"held-{k}", requests={"cpu": "3", "memory": "10Gi"}, on=f"old-{k}") for k in range(12)]
    pods = [*old, *held, *mixed_pods()]
    together = kubesched.plan(pods, machines(), tie_break="name", time_limit_s=12)
    report = kubesched.plan(pods, machines(), arrival="later", tie_break="name", time_limit_s=12)
    assert report.answer == together.answer == "yes"
    assert report.cost < together.cost
    assert played(report, pods, 0, "name") == 0


def test_daemons_come_first_on_a_node_that_joins() -> None:
    """Pods that wait would fill it to the brim."""
    template = {
        "metadata": {"labels": {"app": "agent"}},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m"}}}]},
    }
    selector = {"matchLabels": {"app": "agent"}}
    agent = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent", "namespace": "default"}}
    given = [{**agent, "spec": {"selector": selector, "template": template}}, *(pod(f"p{k}", 500) for k in range(30))]
    machine = catalogue(shape("two", 2, 8, 0.1))
    report = kubesched.plan(given, machine, from_scratch=True, arrival="later", time_limit_s=12)
    assert report.answer == "yes" and report.n_nodes == 10
