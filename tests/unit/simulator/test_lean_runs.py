"""What a run does once for many pods, and what it does only when it is asked: neither may change an answer."""

from __future__ import annotations

import gc
from typing import Any

from simulated_clusters import pods, run, scenario, workload

import kubesched
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.simulator.api_model import TypedStore
from kubesched.simulator.loading import SIMULATED_KINDS, load
from kubesched.testing import make


def _pods(n: int, **fields: Any) -> list[dict[str, Any]]:
    return [make.pod(f"p{i}", cpu="100m", **fields) for i in range(n)]


def test_tables_are_made_when_they_are_asked_for() -> None:
    report = kubesched.simulate([make.node("a"), *_pods(3)])
    assert report.summary["states"] == {"Running": 3}
    assert "pods" not in vars(report)
    assert report.pods is report.pods
    assert report == kubesched.simulate([make.node("a"), *_pods(3)])
    assert report != kubesched.simulate([make.node("a"), *_pods(2)])


def test_a_loaded_cluster_is_checked_once() -> None:
    loaded = kubesched.load([make.node("a"), *_pods(3)])
    assert kubesched.simulate(loaded) == kubesched.simulate(loaded)
    other = loaded.replace(make.pod("p0", cpu="64"))
    assert kubesched.simulate(other).summary["states"] == {"Pending": 1, "Running": 2}


def test_pods_that_ask_for_the_same_share_a_spec_and_nothing_else() -> None:
    labelled = make.pod("other", cpu="100m", labels={"app": "x"})
    found = manifests.from_dicts([*_pods(2), labelled, make.pod("large", cpu="2")], kinds=SIMULATED_KINDS)
    first, second, third, fourth = load(found).objects
    assert isinstance(first, Pod)
    assert isinstance(second, Pod)
    assert isinstance(third, Pod)
    assert isinstance(fourth, Pod)
    assert first.spec is second.spec is third.spec
    assert first.spec is not fourth.spec
    assert third.labels == {"app": "x"}
    assert second.name == "p1"


def test_a_priority_class_that_changes_counts_for_the_next_pods() -> None:
    def of(value: int) -> dict[str, Any]:
        kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
        return {**kind, "metadata": {"name": "usual"}, "value": value, "globalDefault": True}

    web = workload("Deployment", "web", replicas=1)
    more = workload("Deployment", "web", replicas=2)
    cluster = run(make.node("a"), of(5), web, scenario({"at": "1m", "apply": [of(7)]}, {"at": "2m", "apply": [more]}))
    assert sorted(pod.priority for pod in pods(cluster)) == [5, 7]


def test_listeners_hear_of_the_kinds_they_care_about() -> None:
    heard: list[tuple[str, str]] = []

    def note(who: str) -> Any:
        return lambda before, after: heard.append((who, (after or before).name))

    store = TypedStore()
    store.listen(note("all"))
    store.listen(note("pods"), Pod)
    store.create(Node(metadata=KubeObject().metadata))
    heard.clear()
    store.listen(note("nodes"), Node)
    for item in manifests.from_dicts([make.node("a"), make.pod("p")]).objects:
        store.remove(store.create(item))
    assert heard == [(who, name) for name, others in (("a", "nodes"), ("p", "pods")) for who in ("all", others) * 2]


def test_a_run_leaves_the_collector_as_it_was() -> None:
    before = gc.get_threshold()
    kubesched.simulate([make.node("a"), *_pods(2)])
    assert gc.get_threshold() == before
    assert gc.isenabled()
