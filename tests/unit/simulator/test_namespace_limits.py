"""Quotas and limit ranges in a simulation: what they fill in, what they refuse, and when it is tried again."""

from __future__ import annotations

from typing import Any

import pytest
from simulated_clusters import notes, pods, records, run, scenario, workload

from kubesched.k8s.model.manifests import ManifestError
from kubesched.testing import make
from kubesched.testing.make import Manifest

NODES = [make.node(name, cpu=32, memory="64Gi") for name in ("a", "b")]


def quota(name: str = "team", **spec: Any) -> Manifest:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec}


def limit_range(**item: Any) -> Manifest:
    metadata = {"name": "sizes", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": [item]}}


def new(pod: Manifest) -> Manifest:
    """As somebody writes it: no API server has given it a uid yet."""
    del pod["metadata"]["uid"]
    return pod


def test_a_quota_lets_no_more_pods_be_created_than_it_has_room_for() -> None:
    cluster = run(*NODES, quota(hard={"pods": "2"}), workload("Deployment", "web", replicas=5))
    assert len(pods(cluster)) == 2
    assert notes(cluster, "FailedCreate") == [
        "Error creating: pods is forbidden: exceeded quota: team, requested: pods=1, used: pods=2, limited: pods=2"
    ]
    assert {event.kind for event in cluster.ledger.events if event.reason == "FailedCreate"} == {"ReplicaSet"}


def test_pods_that_are_there_count_and_are_never_refused() -> None:
    there = [make.pod(f"old-{n}", cpu=4, on="a") for n in range(3)]
    cluster = run(*NODES, quota(hard={"requests.cpu": "9"}), *there, new(make.pod("new", cpu=1)))
    assert [pod.name for pod in pods(cluster)] == ["old-0", "old-1", "old-2"]
    assert (
        "requested: requests.cpu=1, used: requests.cpu=12, limited: requests.cpu=9" in notes(cluster, "FailedCreate")[0]
    )


def test_what_was_refused_is_created_when_others_have_ended() -> None:
    job = workload("Job", "sum", completions=6, parallelism=6, pod={"duration": "5m", "cpu": 1})
    cluster = run(*NODES, quota(hard={"requests.cpu": "2"}), job)
    assert [record.phase for record in records(cluster)] == ["Succeeded"] * 6
    assert {record.created_s // 300 for record in records(cluster)} == {0, 1, 2}


def test_what_was_refused_is_created_when_the_quota_is_raised() -> None:
    more = {"at": "10m", "apply": [quota(hard={"pods": "4"})]}
    cluster = run(*NODES, quota(hard={"pods": "1"}), workload("Deployment", "web", replicas=3), scenario(more))
    assert [record.created_s for record in records(cluster)] == [0.0, 600.0, 600.0]


def test_a_quota_in_a_scope_counts_only_what_is_in_it() -> None:
    cluster = run(*NODES, quota(hard={"pods": "1"}, scopes=["BestEffort"]), workload("Deployment", "web", replicas=3))
    assert len(pods(cluster)) == 3


def test_limit_ranges_fill_in_requests_and_limits() -> None:
    silent = {**new(make.pod("silent")), "spec": {"containers": [{"name": "main", "image": "app"}]}}
    cluster = run(*NODES, limit_range(type="Container", max={"cpu": "2"}, defaultRequest={"memory": "1Gi"}), silent)
    (pod,) = pods(cluster)
    resources = pod.spec.containers[0].resources
    assert resources is not None
    assert resources.limits == {"cpu": "2"}
    assert resources.requests == {"cpu": "2", "memory": "1Gi"}


def test_limit_ranges_refuse_what_is_out_of_range() -> None:
    cluster = run(
        *NODES, limit_range(type="Pod", min={"cpu": "2"}), workload("Deployment", "web", replicas=2, pod={"cpu": 1})
    )
    assert pods(cluster) == []
    assert "minimum cpu usage per Pod is 2, but request is 1" in notes(cluster, "FailedCreate")[0]


def test_a_pod_from_a_dump_was_admitted_before() -> None:
    old = make.pod("old", cpu=1)
    old["metadata"]["uid"] = "an-api-server-gave-it"
    cluster = run(*NODES, quota(hard={"pods": "0"}), limit_range(type="Pod", min={"cpu": "2"}), old)
    assert [pod.name for pod in pods(cluster)] == ["old"]


def test_amounts_that_cannot_be_read_are_named() -> None:
    with pytest.raises(ManifestError, match=r"ResourceQuota default/team: spec.hard.pods: "):
        run(*NODES, quota(hard={"pods": "many"}))
    with pytest.raises(ManifestError, match=r"LimitRange default/sizes: spec.limits\[0\].max.cpu: "):
        run(*NODES, limit_range(type="Container", max={"cpu": "fast"}))
