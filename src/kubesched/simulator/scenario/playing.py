"""Carries out a scenario on the simulated cluster, each step at its time."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.workloads.admission import AdmissionError
from kubesched.simulator.scenario.reading import NODE_VERBS, ScenarioStep
from kubesched.simulator.virtual.cluster import VirtualCluster

BY_SCENARIO = "deleted by the scenario"


def plan_scenario(cluster: VirtualCluster, steps: Iterable[ScenarioStep]) -> None:
    """From now on the steps are on the cluster's clock."""
    for step in steps:
        cluster.clock.at(cluster.clock.start_s + step.at_s, partial(_play, cluster, step))


def _play(cluster: VirtualCluster, step: ScenarioStep) -> None:
    if step.verb in NODE_VERBS:
        for name in step.node_names:
            _change_node(cluster, step.verb, name)
    for item in step.objects:
        _put(cluster, item)
    for kind, key in step.deleted:
        known = cluster.store.find(kind, key)
        if known is None:
            _complain(cluster, f"{kind.__name__} {key}", "delete", "it does not exist")
        else:
            cluster.deletions.delete(known, BY_SCENARIO)


def _change_node(cluster: VirtualCluster, verb: str, name: str) -> None:
    if not cluster.has_node(name):
        _complain(cluster, f"Node {name}", verb, "it does not exist")
        return
    cluster.ledger.event("Normal", "Scenario", f"Node {name}", verb)
    match verb:
        case "drain":
            cluster.drains.start(name)
        case "cordon":
            cluster.drains.cordon(name)
        case "uncordon":
            cluster.drains.cordon(name, closed=False)
        case "fail":
            cluster.faults.fail(name)
        case "recover":
            cluster.faults.recover(name)


def _put(cluster: VirtualCluster, item: KubeObject) -> None:
    about = f"{type(item).__name__} {item.key}"
    try:
        cluster.intake.apply(item)
    except AdmissionError as refusal:
        _complain(cluster, about, "apply", str(refusal))
    else:
        cluster.ledger.event("Normal", "Scenario", about, "apply")


def _complain(cluster: VirtualCluster, about: str, verb: str, problem: str) -> None:
    cluster.ledger.event("Warning", "ScenarioFailed", about, f"cannot {verb} it: {problem}")
