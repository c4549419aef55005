"""Nodes that come, are drained, fail, recover and go."""

from __future__ import annotations

from typing import Any

from simulated_clusters import notes, pods, records, run, scenario, workload

from kubesched.k8s.model.core import Node, Pod
from kubesched.testing import make
from kubesched.testing.make import Manifest


def _where(cluster: Any) -> list[str]:
    return sorted(pod.spec.node_name for pod in pods(cluster) if not pod.is_terminating)


def _budget(min_available: int) -> Manifest:
    manifest = make.budget("keep", {"app": "web"}, allowed=0)
    manifest["spec"]["minAvailable"] = min_available
    return manifest


def test_a_node_that_joins_takes_what_waits() -> None:
    batch = {"count": 2, "template": {"metadata": {"name": "extra"}, "status": {"allocatable": {"cpu": 2, "pods": 9}}}}
    web = workload("Deployment", "web", replicas=3, pod={"cpu": 2})
    cluster = run(make.node("a", cpu=2), web, scenario({"at": "10m", "addNodes": batch}))
    assert _where(cluster) == ["a", "extra-1", "extra-2"]
    assert sorted(record.scheduled_s or 0 for record in records(cluster)) == [0, 600, 600]
    assert cluster.store.of(Node)["extra-1"].labels[make.HOSTNAME] == "extra-1"


def test_a_drained_node_is_left_by_all_but_daemons() -> None:
    drain = scenario({"at": "1h", "drain": "a"})
    cluster = run(
        make.node("a"),
        make.node("b"),
        workload("Deployment", "web", replicas=4),
        workload("DaemonSet", "agent"),
        make.pod("alone", cpu=1, spec={"nodeSelector": {make.HOSTNAME: "a"}}),
        drain,
    )
    assert _where(cluster) == ["a", "b", "b", "b", "b", "b"]
    (left,) = (pod for pod in pods(cluster) if pod.spec.node_name == "a")
    assert left.name.startswith("agent-")
    assert cluster.store.of(Node)["a"].spec.unschedulable
    causes = {record.cause for record in records(cluster) if record.is_gone}
    assert causes == {"drained from a"}
    assert [record.key for record in records(cluster) if record.is_gone and not record.workload] == ["default/alone"]


def test_a_budget_lets_a_drain_go_on_one_pod_after_another() -> None:
    nodes = [make.node("a", labels={"old": "yes"}), make.node("b")]
    web = workload("Deployment", "web", replicas=3, pod={"terminationGracePeriodSeconds": 10})
    steps = scenario({"at": "0s", "cordon": "b"}, {"at": "1m", "uncordon": "b"}, {"at": "2m", "drain": "a"})
    cluster = run(*nodes, web, _budget(2), steps, start_latency_s=5.0)
    assert _where(cluster) == ["b", "b", "b"]
    ended = sorted(record.ended_s or 0 for record in records(cluster) if record.is_gone)
    assert ended == [130.0, 135.0, 140.0]  # each when the one before has a successor that runs


def test_a_budget_that_allows_nothing_blocks_a_drain_for_good() -> None:
    web = workload("Deployment", "web", replicas=2)
    cluster = run(make.node("a"), web, _budget(2), scenario({"at": "1m", "drain": "a"}))
    assert _where(cluster) == ["a", "a"]
    assert {name: len(found) for name, found in cluster.drains.blocked().items()} == {"a": 2}


def test_pods_of_a_failed_node_are_replaced_after_five_minutes_and_stay_terminating() -> None:
    cluster = run(
        make.node("a"), workload("Deployment", "web", replicas=2), scenario({"at": "10m", "fail": "a"}, *_join("20m"))
    )
    old = [pod for pod in pods(cluster) if pod.is_terminating]
    assert len(old) == 2
    assert _where(cluster) == ["b-1", "b-1"]
    born = [record.created_s for record in records(cluster)]
    assert born == [0, 0, 950, 950]  # noticed after 50 s, tolerated for 300 s
    (cause,) = {record.cause for record in records(cluster) if record.cause}
    assert cause == "driven out of a by taint node.kubernetes.io/unreachable"
    assert cluster.store.of(Node)["a"].spec.taints is not None


def _join(at: str) -> list[dict[str, Any]]:
    template = {"metadata": {"name": "b"}, "status": {"allocatable": {"cpu": 4, "memory": "8Gi", "pods": 110}}}
    return [{"at": at, "addNodes": {"template": template}}]


def test_a_node_that_recovers_in_time_keeps_its_pods() -> None:
    steps = scenario({"at": "10m", "fail": "a"}, {"at": "12m", "recover": "a"})
    cluster = run(make.node("a"), workload("Deployment", "web", replicas=2), steps)
    assert len(records(cluster)) == 2
    assert [pod.status.phase for pod in pods(cluster)] == ["Running", "Running"]
    assert cluster.store.of(Node)["a"].spec.taints is None


def test_a_node_that_recovers_late_ends_the_pods_that_were_driven_out() -> None:
    steps = scenario({"at": "10m", "fail": "a"}, {"at": "30m", "recover": "a"})
    cluster = run(make.node("a"), workload("Deployment", "web"), steps)
    old, new = records(cluster)
    assert (old.is_gone, old.ended_s) == (True, 1800.0)
    assert (new.node, new.scheduled_s) == ("a", 1800.0)


def test_a_job_on_a_failed_node_goes_on_when_the_node_is_back() -> None:
    job = workload("Job", "sum", pod={"duration": "11m"})
    steps = scenario({"at": "10m", "fail": "a"}, {"at": "12m", "recover": "a"})
    cluster = run(make.node("a"), job, steps)
    (record,) = records(cluster)
    assert (record.phase, record.ended_s) == ("Succeeded", 720.0)


def test_pods_of_a_node_that_is_taken_away_are_lost_and_replaced() -> None:
    steps = scenario({"at": "10m", "delete": [{"kind": "Node", "name": "a"}]})
    cluster = run(make.node("a"), make.node("z"), workload("StatefulSet", "db"), steps)
    assert [(record.node, record.created_s) for record in records(cluster)] == [("a", 0.0), ("z", 640.0)]
    assert records(cluster)[0].cause == "node a is gone"


def test_a_taint_that_drives_out_spares_those_that_tolerate_it() -> None:
    taint = make.taint("broken", effect="NoExecute")
    tolerant = make.pod("tolerant", cpu=1, spec={"tolerations": [make.toleration("broken")]})
    patient = make.pod("patient", cpu=1, spec={"tolerations": [{**make.toleration("broken"), "tolerationSeconds": 60}]})
    steps = scenario({"at": "1m", "apply": [make.node("a", taints=[taint])]})
    cluster = run(make.node("a"), tolerant, patient, make.pod("plain", cpu=1), steps)
    ended = {record.key: record.ended_s for record in records(cluster)}
    assert ended == {"default/tolerant": None, "default/patient": 150.0, "default/plain": 90.0}


def test_steps_that_cannot_be_carried_out_are_told() -> None:
    steps = scenario(
        {"at": "1m", "delete": [{"kind": "Node", "name": "a"}, {"kind": "Pod", "namespace": "x", "name": "nobody"}]},
        {"at": "2m", "drain": "a"},
    )
    cluster = run(make.node("a"), steps)
    assert notes(cluster, "ScenarioFailed") == [
        "cannot delete it: it does not exist",
        "cannot drain it: it does not exist",
    ]
    assert cluster.store.of(Pod) == {}
