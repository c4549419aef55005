"""Status of replica sets, stateful sets, daemon sets and jobs."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from harness.workload_manifests import objects, workload
from kubesched.k8s.model.apps import DaemonSet, JobCondition, JobStatus, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Node, Pod, PodCondition, PodSpec, PodStatus
from kubesched.k8s.model.meta import ObjectMeta
from kubesched.k8s.workloads.templates import REVISION_HASH_LABEL
from kubesched.playground.controllers.status import (
    daemon_set_status,
    job_status,
    replica_set_status,
    stateful_set_status,
)
from kubesched.testing import make

NOW_S = 1_800_000_000.0


def _pod(name: str, *, ready: bool = True, labels: dict[str, str] | None = None, on: str = "", **meta: Any) -> Pod:
    status = PodStatus("Running", (PodCondition("Ready", "True"),)) if ready else PodStatus("Pending")
    return Pod(metadata=ObjectMeta(name=name, labels=labels, **meta), spec=PodSpec(node_name=on), status=status)


def test_a_replica_set_counts_active_ready_and_fully_labelled_pods() -> None:
    (owner,) = objects(workload("ReplicaSet", "web", replicas=3))
    assert isinstance(owner, ReplicaSet)
    going = _pod("c", labels={"app": "web"}, deletion_timestamp="2026-01-01T00:00:00Z")
    pods = [_pod("a", labels={"app": "web"}), _pod("b", ready=False), going]
    status = replica_set_status(owner, pods, NOW_S)
    assert status | {"observedGeneration": 0} == {
        "replicas": 2,
        "fullyLabeledReplicas": 1,
        "readyReplicas": 1,
        "availableReplicas": 1,
        "terminatingReplicas": 1,
        "observedGeneration": 0,
    }


def test_the_current_revision_of_a_stateful_set_follows_when_all_pods_have_it() -> None:
    (owner,) = objects(workload("StatefulSet", "db", replicas=2))
    assert isinstance(owner, StatefulSet)
    old, new = ({REVISION_HASH_LABEL: revision} for revision in ("db-1", "db-2"))
    rolling = stateful_set_status(
        owner, [_pod("a", labels=old), _pod("b", labels=new)], "db-2", {"currentRevision": "db-1"}, NOW_S
    )
    assert (rolling["currentRevision"], rolling["currentReplicas"], rolling["updatedReplicas"]) == ("db-1", 1, 1)
    done = stateful_set_status(owner, [_pod("a", labels=new), _pod("b", labels=new)], "db-2", rolling, NOW_S)
    assert (done["currentRevision"], done["updateRevision"], done["readyReplicas"]) == ("db-2", "db-2", 2)


def test_a_daemon_set_counts_nodes() -> None:
    (owner,) = objects(workload("DaemonSet", "agent"))
    assert isinstance(owner, DaemonSet)
    tainted = make.node("c", taints=[make.taint("gpu")])
    nodes = [node for node in objects(make.node("a"), make.node("b"), tainted) if isinstance(node, Node)]
    pods = [_pod("p", on="a", labels={REVISION_HASH_LABEL: "h"}), _pod("q", on="c")]
    status = daemon_set_status(owner, pods, nodes, "h", NOW_S)
    wanted = {"desiredNumberScheduled": 2, "currentNumberScheduled": 1, "numberReady": 1, "numberUnavailable": 1}
    assert {key: status[key] for key in wanted} == wanted
    assert (status["numberMisscheduled"], status["updatedNumberScheduled"]) == (1, 1)


def test_a_job_that_is_complete_says_so_twice_and_when() -> None:
    counted = JobStatus(succeeded=3, start_time="2026-01-01T00:00:00Z")
    conditions = tuple(JobCondition(kind, "True", "Reached") for kind in ("SuccessCriteriaMet", "Complete"))
    ended = replace(counted, conditions=conditions, completion_time="2027-01-15T08:00:00Z")
    status = job_status(ended, [], {}, NOW_S)
    assert [known["type"] for known in status["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    assert status["completionTime"] == "2027-01-15T08:00:00Z"
    assert status["active"] is None


def test_a_job_that_runs_counts_its_pods() -> None:
    status = job_status(JobStatus(failed=1), [_pod("a"), _pod("b", ready=False)], {}, NOW_S)
    assert (status["active"], status["ready"], status["failed"], status["succeeded"]) == (2, 1, 1, None)
    assert "conditions" not in status
