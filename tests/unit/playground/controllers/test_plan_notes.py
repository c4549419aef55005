"""What controllers say about what they do."""

from __future__ import annotations

import pytest
from recording_api import RecordingApi

from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.event_recorder import EventSource
from kubesched.k8s.model.apps import CronJob, Deployment, Job, ReplicaSet, ReplicaSetSpec, StatefulSet
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject, ObjectMeta
from kubesched.k8s.model.storage import ObjectReference, PersistentVolumeClaim
from kubesched.k8s.workloads.actions import Action, CreateObject, DeleteObject, UpdateObject
from kubesched.playground.controllers.cluster_view import ClusterView
from kubesched.playground.controllers.controller import ControllerContext, PlanListener, PlanWriter
from kubesched.playground.controllers.workload import JobNotes, PodNotes, ScalingNotes

META = ObjectMeta(name="db", namespace="shop", uid="1")


class _Heard:
    def __init__(self) -> None:
        self.said: list[tuple[str, str, str, str]] = []
        view = ClusterView()
        self.context = ControllerContext(view, PlanWriter(RecordingApi(), view), tell=self._tell)

    def _tell(self, who: EventSource, about: ObjectReference, reason: str, note: str, type_: str) -> None:
        assert about.name == "db"
        self.said.append((who.component, type_, reason, note))


def _named(kind: type[KubeObject], name: str) -> KubeObject:
    return kind(metadata=ObjectMeta(name=name, namespace="shop"))


def _set(replicas: int) -> ReplicaSet:
    return ReplicaSet(metadata=ObjectMeta(name="db-1", namespace="shop"), spec=ReplicaSetSpec(replicas=replicas))


@pytest.mark.parametrize(
    ("owner", "action", "reason", "note"),
    [
        pytest.param(ReplicaSet(metadata=META), CreateObject(_named(Pod, "db-x")), "SuccessfulCreate",
                     "Created pod: db-x", id="a replica set's pod"),
        pytest.param(Job(metadata=META), DeleteObject(_named(Pod, "db-x")), "SuccessfulDelete",
                     "Deleted pod: db-x", id="a job's pod goes"),
        pytest.param(StatefulSet(metadata=META), CreateObject(_named(Pod, "db-0")), "SuccessfulCreate",
                     "Create Pod db-0 in StatefulSet db successful", id="a stateful set's pod"),
        pytest.param(StatefulSet(metadata=META), CreateObject(_named(PersistentVolumeClaim, "data-db-0")),
                     "SuccessfulCreate", "Create Claim data-db-0 Pod db-0 in StatefulSet db success", id="its claim"),
    ],
)  # fmt: skip
def test_pods_that_come_and_go_are_told(owner: KubeObject, action: Action, reason: str, note: str) -> None:
    heard = _Heard()
    PodNotes(heard.context, "some-controller", owner).done(action, None)
    assert heard.said == [("some-controller", "Normal", reason, note)]


def test_a_pod_that_is_refused_is_told_unless_the_namespace_ends() -> None:
    heard = _Heard()
    notes = PodNotes(heard.context, "c", ReplicaSet(metadata=META))
    action = CreateObject(_named(Pod, "db-x"))
    notes.failed(action, ApiError(403, "Forbidden", "exceeded quota"))
    notes.failed(action, ApiError(403, "Forbidden", "no new content because it is being terminated"))
    notes.failed(action, ApiError(409, "AlreadyExists", "there is one"))
    assert heard.said == [("c", "Warning", "FailedCreate", "Error creating: exceeded quota")]


@pytest.mark.parametrize(
    ("action", "before", "note"),
    [
        pytest.param(CreateObject(_set(3)), None, "Scaled up replica set db-1 from 0 to 3", id="a new one"),
        pytest.param(UpdateObject(_set(1)), _set(4), "Scaled down replica set db-1 from 4 to 1", id="one that shrinks"),
        pytest.param(UpdateObject(_set(4)), _set(4), None, id="one that stays as large as it is"),
        pytest.param(DeleteObject(_set(0)), _set(0), None, id="one that is tidied away"),
    ],
)
def test_scaled_replica_sets_are_told(action: Action, before: KubeObject | None, note: str | None) -> None:
    heard = _Heard()
    ScalingNotes(heard.context, Deployment(metadata=META)).done(action, before)
    assert [said[3] for said in heard.said] == ([] if note is None else [note])


def test_the_end_of_a_job_is_told_once() -> None:
    heard = _Heard()
    notes = PodNotes(heard.context, "job-controller", Job(metadata=META))
    complete = {"conditions": [{"type": "Complete", "status": "True"}]}
    failed = {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "no"}]}
    notes.tell_end({}, complete)
    notes.tell_end(complete, complete)
    notes.tell_end({}, failed)
    assert [said[1:] for said in heard.said] == [
        ("Normal", "Completed", "Job completed"),
        ("Warning", "BackoffLimitExceeded", "no"),
    ]


def test_jobs_of_a_cron_job_are_told() -> None:
    heard = _Heard()
    JobNotes(heard.context, CronJob(metadata=META)).done(CreateObject(_named(Job, "db-1")), None)
    assert heard.said == [("cronjob-controller", "Normal", "SuccessfulCreate", "Created job db-1")]


def test_whoever_does_not_care_is_told_nothing() -> None:
    PlanListener().done(CreateObject(_set(1)), None)
    PlanListener().failed(CreateObject(_set(1)), ApiError(500, "", ""))
