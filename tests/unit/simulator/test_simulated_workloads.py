"""Workloads on the simulated cluster: expanded, placed, run to their end, in virtual time."""

from __future__ import annotations

from collections import Counter

import pytest
from simulated_clusters import cron_job, notes, pods, records, run, scenario, workload

import kubesched
from kubesched.k8s.model.apps import Job, ReplicaSet
from kubesched.testing import make
from kubesched.testing.make import Manifest

NODES = [make.node(name, cpu=4) for name in ("a", "b", "c")]
PRIORITY = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 100,
}


@pytest.mark.parametrize(
    ("manifest", "n_pods", "owner"),
    [
        pytest.param(workload("Deployment", "web", replicas=3), 3, "Deployment web", id="Deployment"),
        pytest.param(workload("ReplicaSet", "web", replicas=2), 2, "ReplicaSet web", id="ReplicaSet"),
        pytest.param(workload("ReplicationController", "web"), 1, "ReplicationController web", id="RC"),
        pytest.param(workload("StatefulSet", "web", replicas=3), 3, "StatefulSet web", id="StatefulSet"),
        pytest.param(workload("DaemonSet", "web"), 3, "DaemonSet web", id="DaemonSet"),
        pytest.param(workload("Job", "web", parallelism=2, completions=4), 2, "Job web", id="Job"),
        pytest.param(make.pod("web", cpu=1), 1, "", id="a pod of nobody"),
    ],
)
def test_every_kind_of_workload_is_expanded_and_placed(manifest: Manifest, n_pods: int, owner: str) -> None:
    cluster = run(*NODES, manifest)
    assert [pod.status.phase for pod in pods(cluster)] == ["Running"] * n_pods
    assert all(pod.spec.node_name for pod in pods(cluster))
    assert {record.workload for record in records(cluster)} == {owner}
    assert not cluster.is_cut_short


def test_daemons_go_one_to_each_node() -> None:
    cluster = run(*NODES, workload("DaemonSet", "agent"))
    assert sorted(pod.spec.node_name for pod in pods(cluster)) == ["a", "b", "c"]


def test_a_stateful_set_comes_up_in_order_each_when_the_one_before_runs() -> None:
    cluster = run(*NODES, workload("StatefulSet", "db", replicas=3), start_latency_s=10.0)
    assert [(record.key, record.created_s) for record in records(cluster)] == [
        ("default/db-0", 0.0),
        ("default/db-1", 10.0),
        ("default/db-2", 20.0),
    ]


def test_a_job_runs_for_as_long_as_its_pods_are_told_to() -> None:
    job = workload("Job", "sum", completions=6, parallelism=2, pod={"duration": "5m"})
    cluster = run(*NODES, job)
    assert len(records(cluster)) == 6
    assert {record.phase for record in records(cluster)} == {"Succeeded"}
    assert cluster.ended_at_s - cluster.clock.start_s == 15 * 60
    (found,) = cluster.store.of(Job).values()
    assert found.is_finished


def test_a_job_whose_pods_fail_gives_up_after_its_limit() -> None:
    job = workload("Job", "sum", backoffLimit=2, pod={"duration": "1m", "result": "Failed"})
    cluster = run(*NODES, job)
    assert [record.phase for record in records(cluster)] == ["Failed"] * 3
    assert [record.created_s for record in records(cluster)] == [0, 70, 150]  # after 10 and 20 seconds more


def test_a_cron_job_starts_jobs_until_the_time_is_over() -> None:
    cluster = run(*NODES, cron_job("tick", "*/15 * * * *", pod={"duration": "1m"}), until_s=3600)
    assert [record.created_s for record in records(cluster)] == [900, 1800, 2700, 3600]
    assert cluster.is_cut_short


def test_a_workload_without_an_end_is_stopped_after_a_day() -> None:
    cluster = run(*NODES, cron_job("tick", "0 */6 * * *", pod={"duration": "1m"}))
    assert [record.created_s / 3600 for record in records(cluster)] == [6, 12, 18, 24]
    assert cluster.ended_at_s - cluster.clock.start_s == 24 * 3600


def test_pods_of_a_deployment_that_end_are_replaced() -> None:
    cluster = run(*NODES, workload("Deployment", "web", pod={"duration": "1h"}), until_s=3 * 3600 + 1)
    assert Counter(record.phase for record in records(cluster)) == {"Succeeded": 3, "Running": 1}


def test_what_fits_nowhere_waits_and_says_why() -> None:
    cluster = run(*NODES, workload("Deployment", "big", replicas=2, pod={"cpu": 8}))
    assert [record.node for record in records(cluster)] == ["", ""]
    assert all("3 Insufficient cpu" in record.message for record in records(cluster))
    assert cluster.ended_at_s == cluster.clock.start_s


def test_a_pod_that_waits_is_placed_when_another_has_ended() -> None:
    first = make.pod("first", cpu=4, metadata={"annotations": {"kubesched.dev/duration": "10m"}})
    cluster = run(make.node("a", cpu=4), first, make.pod("second", cpu=4))
    assert [(record.key, record.scheduled_s) for record in records(cluster)] == [
        ("default/first", 0.0),
        ("default/second", 600.0),
    ]


def test_a_preempted_pod_is_given_its_grace_and_replaced_by_its_controller() -> None:
    low = workload("Deployment", "low", replicas=2, pod={"cpu": 2, "terminationGracePeriodSeconds": 20})
    high = workload("Deployment", "high", pod={"cpu": 3, "priorityClassName": "high"})
    late = scenario({"at": "1m", "apply": [high]})
    cluster = run(make.node("a", cpu=4), low, PRIORITY, late)
    gone = [record for record in records(cluster) if record.is_gone]
    assert [(record.workload, record.ended_s) for record in gone] == [("Deployment low", 80.0)] * 2
    assert {record.cause.partition("-")[0] for record in gone} == {"preempted by default/high"}
    (winner,) = (record for record in records(cluster) if record.workload == "Deployment high")
    assert (winner.node, winner.scheduled_s) == ("a", 80.0)
    assert sum(1 for record in records(cluster) if record.workload == "Deployment low" and not record.is_gone) == 2
    assert len(cluster.ledger.preemptions) == 2


def test_a_pod_the_api_server_would_refuse_is_reported() -> None:
    cluster = run(*NODES, workload("Deployment", "web", pod={"priorityClassName": "nope"}))
    assert records(cluster) == []
    (note,) = notes(cluster, "FailedCreate")
    assert note == "Error creating: pods is forbidden: no PriorityClass with name nope was found"


def test_a_refused_pod_is_made_when_its_class_comes() -> None:
    web = workload("Deployment", "web", pod={"priorityClassName": "high"})
    cluster = run(*NODES, web, scenario({"at": "5m", "apply": [PRIORITY]}))
    assert [(record.created_s, record.priority) for record in records(cluster)] == [(300.0, 100)]


def test_a_changed_deployment_is_rolled_out_pod_by_pod() -> None:
    old, new = (workload("Deployment", "web", replicas=4, pod={"cpu": cpu}) for cpu in ("100m", "200m"))
    cluster = run(*NODES, old, scenario({"at": "10m", "apply": [new]}), start_latency_s=5.0)
    sizes = [known.spec.replicas for known in cluster.store.of(ReplicaSet).values()]
    assert sizes == [0, 4]
    assert [record.requests["cpu"] for record in records(cluster) if not record.is_gone] == [200] * 4
    moved = sorted(record.created_s for record in records(cluster))[4:]
    assert moved[0] < moved[-1]  # not all at once


def test_what_belongs_to_a_deleted_deployment_goes_with_it() -> None:
    gone = {"at": "1m", "delete": [{"kind": "Deployment", "name": "web"}]}
    cluster = run(*NODES, workload("Deployment", "web", replicas=2), scenario(gone))
    assert pods(cluster) == []
    assert cluster.store.of(ReplicaSet) == {}
    assert [record.ended_s for record in records(cluster)] == [90.0, 90.0]


def test_bindings_and_starts_take_the_time_they_are_given() -> None:
    cluster = run(*NODES, make.pod("p", cpu=1), bind_latency_s=2.0, start_latency_s=3.0)
    (record,) = records(cluster)
    assert (record.scheduled_s, record.started_s) == (2.0, 5.0)


def test_pods_that_were_there_before_keep_their_place_and_their_owner() -> None:
    known = workload("ReplicaSet", "web", replicas=2)
    known["metadata"]["uid"] = "u"
    owner = {"kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    there = make.pod("web-1", on="b", labels={"app": "web"}, metadata={"ownerReferences": [owner]})
    cluster = run(*NODES, known, there)
    assert len(pods(cluster)) == 2
    assert cluster.ledger.pods["uid-default-web-1"].was_there


def test_a_manifest_without_uid_owns_the_pods_that_name_it() -> None:
    """As when a dump of pods is given together with the files that somebody applied."""
    owner = {"kind": "StatefulSet", "name": "db", "uid": "from-the-cluster", "controller": True}
    there = make.pod("db-0", on="b", metadata={"ownerReferences": [owner]})
    cluster = run(*NODES, workload("StatefulSet", "db", replicas=2), there)
    assert [(pod.name, pod.spec.node_name) for pod in pods(cluster)] == [("db-0", "b"), ("db-1", "a")]


def test_a_name_that_is_taken_cannot_be_used_by_a_controller() -> None:
    cluster = run(*NODES, workload("StatefulSet", "db"), make.pod("db-0", on="b"))
    assert [pod.spec.node_name for pod in pods(cluster)] == ["b"]
    assert notes(cluster, "FailedCreate") == ['Error creating: pods "db-0" already exists']


def test_a_gated_pod_and_one_of_another_scheduler_wait_without_being_tried() -> None:
    gated = make.pod("gated", spec={"schedulingGates": [{"name": "example.com/quota"}]})
    foreign = make.pod("foreign", spec={"schedulerName": "other"})
    cluster = run(*NODES, gated, foreign)
    assert [record.n_attempts for record in records(cluster)] == [0, 0]


# -- pod groups --------------------------------------------------------------------------------------------------------


def _gang_of(n: int, min_count: int) -> list[Manifest]:
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}},
    }
    pods = [make.pod(f"p{i}", cpu=3) for i in range(n)]
    for pod in pods:
        pod["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    return [group, *pods]


@pytest.mark.parametrize(("emulate", "backoff_s"), [(None, 10), ("1.37", 20)])
def test_a_report_says_when_a_gang_was_complete(emulate: str | None, backoff_s: int) -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "featureGates": {"GenericWorkload": True, **({} if emulate else {"GangScheduling": True})},
        **({"emulate": emulate} if emulate else {}),
    }
    template = {key: value for key, value in make.node("late", cpu=4).items() if key not in ("apiVersion", "kind")}
    later = scenario({"at": "60s", "addNodes": {"count": 1, "template": template}})
    objects = [*NODES[:2], *_gang_of(4, 3), later]
    report = kubesched.simulate(objects, config=config, until="10m")
    (row,) = report.pod_groups
    assert (row["pods"], row["placed"], row["scheduled"]) == (4, 3, True)
    assert 60 <= row["complete_after_s"] <= 60 + backoff_s + 1
    assert "COMPLETE" in str(report)
    (row,) = kubesched.simulate([*NODES[:2], *_gang_of(4, 3)], config=config, until="10m").pod_groups
    assert (row["placed"], row["scheduled"], row["complete_after_s"]) == (0, False, None)
