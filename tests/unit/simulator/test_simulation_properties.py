"""What must hold whatever happens: no node holds more than it can, no pod is lost, the same seed says the same."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from simulated_clusters import run, scenario, workload

import kubesched
from kubesched.k8s.model.apps import Deployment, Job
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import controller_of
from kubesched.k8s.model.requests import PODS, node_units, pod_resources
from kubesched.simulator.virtual.cluster import VirtualCluster
from kubesched.testing import make
from kubesched.testing.make import Manifest

NODES = ("n0", "n1", "n2")


def _nodes() -> st.SearchStrategy[list[Manifest]]:
    sizes = st.lists(st.integers(1, 4), min_size=3, max_size=3)
    return sizes.map(lambda cpus: [make.node(name, cpu=cpu, pods=6) for name, cpu in zip(NODES, cpus, strict=True)])


def _pod() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"cpu": st.sampled_from(["200m", "1", "1500m"])},
        optional={
            "duration": st.sampled_from(["30s", "5m", "20m"]),
            "priority": st.integers(0, 2),
            "terminationGracePeriodSeconds": st.sampled_from([0, 10]),
        },
    )


@st.composite
def _workload(draw: st.DrawFn, index: int) -> Manifest:
    name, pod = f"w{index}", draw(_pod())
    match draw(st.sampled_from(["Deployment", "StatefulSet", "DaemonSet", "Job"])):
        case "Job":
            n = draw(st.integers(1, 4))
            pod.setdefault("duration", "5m")
            return workload("Job", name, completions=n, parallelism=draw(st.integers(1, n)), pod=pod)
        case "DaemonSet":
            return workload("DaemonSet", name, pod=pod)
        case kind:
            return workload(kind, name, replicas=draw(st.integers(0, 4)), pod=pod)


def _event() -> st.SearchStrategy[Manifest]:
    verbs = st.sampled_from(["drain", "fail", "recover", "cordon", "uncordon"])
    times = st.integers(0, 40).map(lambda minutes: f"{minutes}m")
    on_nodes = st.builds(lambda at, verb, name: {"at": at, verb: name}, times, verbs, st.sampled_from(NODES))
    batch = {"template": {"metadata": {"name": "extra"}, "status": {"allocatable": {"cpu": 2, "pods": 6}}}}
    joins = times.map(lambda at: {"at": at, "addNodes": batch})
    leaves = st.builds(
        lambda at, name: {"at": at, "delete": [{"kind": "Node", "name": name}]}, times, st.sampled_from(NODES)
    )
    return st.one_of(on_nodes, joins, leaves)


@st.composite
def _inputs(draw: st.DrawFn) -> list[Manifest]:
    workloads = [draw(_workload(index)) for index in range(draw(st.integers(1, 3)))]
    events = draw(st.lists(_event(), max_size=4))
    return [*draw(_nodes()), *workloads, scenario(*events)]


def _overcommitted(cluster: VirtualCluster) -> list[str]:
    found: list[str] = []
    for node in cluster.store.of(Node).values():
        allocatable = node_units(node.status.allocatable, "")
        used: Counter[str] = Counter()
        for pod in cluster.store.pods_on(node.name):
            used.update({**pod_resources(pod).requests, PODS: 1})
        found.extend(f"{node.name}: {name}" for name, amount in used.items() if amount > allocatable.get(name, 0))
    return found


def _lost(cluster: VirtualCluster) -> list[str]:
    """Pods that wait for a node and are nowhere in the queue."""
    contents = cluster.loop.queue.contents
    waiting = [pod for pod in cluster.store.of(Pod).values() if not pod.spec.node_name and not pod.is_terminal]
    return [pod.name for pod in waiting if contents.find(pod.pod_key) is None]


def _too_few(cluster: VirtualCluster) -> list[str]:
    """Workloads that do not have the pods they want."""
    n_active = Counter(
        cluster.ledger.pods[pod.metadata.uid].workload
        for pod in cluster.store.of(Pod).values()
        if controller_of(pod.metadata) is not None and not pod.is_terminal and not pod.is_terminating
    )
    deployments = cluster.store.of(Deployment).values()
    return [item.name for item in deployments if n_active[f"Deployment {item.name}"] != item.spec.replicas]


@settings(max_examples=40, deadline=None)
@given(_inputs(), st.integers(0, 3))
def test_no_node_holds_too_much_and_no_pod_is_lost(manifests: list[Manifest], seed: int) -> None:
    problems: set[str] = set()

    def watch(cluster: VirtualCluster) -> None:
        problems.update(_overcommitted(cluster))

    cluster = run(*manifests, tie_break="random", seed=seed, until_s=3600.0, progress=watch)
    assert problems == set()
    assert _overcommitted(cluster) == []
    assert _lost(cluster) == []
    assert _too_few(cluster) == []
    assert cluster.loop.cluster.n_assumed == 0
    for job in cluster.store.of(Job).values():
        assert job.status.succeeded <= (job.spec.completions or 0)
    event(f"preemptions: {bool(cluster.ledger.preemptions)}")
    event(f"pending: {any(not record.node for record in cluster.ledger.pods.values())}")


@settings(max_examples=15, deadline=None)
@given(_inputs(), st.integers(0, 3))
def test_the_same_seed_says_the_same(manifests: list[Manifest], seed: int) -> None:
    first, second = (kubesched.simulate(manifests, seed=seed, until_s=3600.0).to_dict() for _ in range(2))
    assert first == second


@pytest.mark.parametrize("planted", ["a pod too many", "a pod that is nowhere"])
def test_the_checks_find_what_they_look_for(planted: str) -> None:
    cluster = run(make.node("n0", cpu=1), make.pod("p", cpu=1), make.pod("q", cpu=1))
    if planted == "a pod too many":
        (extra,) = (pod for pod in cluster.store.of(Pod).values() if not pod.spec.node_name)
        cluster.store.update(replace(extra, spec=replace(extra.spec, node_name="n0")))
        assert _overcommitted(cluster) == ["n0: cpu"]
    else:
        (waiting,) = cluster.loop.cluster.pending.values()
        cluster.loop.queue.delete(waiting)
        assert _lost(cluster) == ["q"]
