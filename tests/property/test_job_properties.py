"""Whatever happens to its pods, and wherever the controller is cut short: a job counts each pod that ends once."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from harness.workload_manifests import objects, workload
from kubesched.k8s.model.apps import Job
from kubesched.k8s.model.core import Pod
from kubesched.k8s.workloads.actions import CreateObject, DeleteObject, SeededNames, UpdateObject
from kubesched.k8s.workloads.job_pods import JOB_FINALIZER, JobFailures, completion_index, count
from kubesched.k8s.workloads.jobs import sync_job

PARALLELISM = 3
HOURS_S = 3600.0

STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["Succeeded", "Failed", "delete", "gone"]), st.integers(0, PARALLELISM)),
        st.tuples(st.just("look"), st.sampled_from(["noted", "let go", "all"])),
    ),
    max_size=30,
)


class Cluster:
    """A job and its pods, on a server of which a controller may be cut off after any write."""

    def __init__(self, *, notes: bool = True, **spec: Any) -> None:
        (job,) = objects(workload("Job", "sum", parallelism=PARALLELISM, backoffLimit=1000, **spec))
        assert isinstance(job, Job)
        self.job = replace(job, metadata=replace(job.metadata, uid="uid-sum"))
        self.pods: dict[str, Pod] = {}
        self.names = SeededNames(0)
        self.failures = JobFailures()
        self.now_s = 1e9
        self.notes = notes
        self.ended: dict[str, str] = {}
        """How each pod ended that ever did, by name."""

    def happen(self, what: str, which: int) -> None:
        running = [pod for pod in self.pods.values() if not pod.is_terminal]
        if what == "gone":  # kubelets take deleted pods away when nobody holds them
            for pod in list(self.pods.values()):
                if pod.is_terminating and not pod.metadata.finalizers:
                    del self.pods[pod.name]
        elif which < len(running):
            pod = running[which]
            if what == "delete":
                metadata = replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
                self.pods[pod.name] = replace(pod, metadata=metadata)
                self.ended.setdefault(pod.name, "Failed")
            else:
                self.pods[pod.name] = replace(pod, status=replace(pod.status, phase=what))
                if not pod.is_terminating:
                    self.ended[pod.name] = what

    def look(self, until: str) -> None:
        """The controller looks, and is cut off after this."""
        self.now_s += HOURS_S
        plan = sync_job(self.job, list(self.pods.values()), self.names, self.failures, self.now_s)
        if self.notes and not self.job.is_finished:
            counted = count(self.job, list(self.pods.values()), JobFailures(), self.now_s)
            noted = replace(
                self.job.status,
                uncounted_terminated_pods=counted.newly,
                completed_indexes=counted.status.completed_indexes,
            )
            self.job = replace(self.job, status=noted)
        if until == "noted":
            return
        for action in plan.actions:
            if not isinstance(action.item, Pod):
                continue
            pod = action.item
            if isinstance(action, CreateObject):
                self.pods[pod.name] = replace(pod, metadata=replace(pod.metadata, uid=f"uid-{pod.name}"))
            elif isinstance(action, UpdateObject):
                self.pods[pod.name] = replace(
                    self.pods[pod.name], metadata=replace(pod.metadata, finalizers=pod.metadata.finalizers)
                )
            elif isinstance(action, DeleteObject):
                metadata = replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
                self.pods[pod.name] = replace(pod, metadata=metadata)
                self.ended.setdefault(pod.name, "Failed")
        if until == "all":
            for action in plan.actions:
                if isinstance(action, UpdateObject) and isinstance(action.item, Job):
                    self.job = action.item

    def check(self) -> None:
        active = [pod for pod in self.pods.values() if not pod.is_terminal and not pod.is_terminating]
        assert len(active) <= PARALLELISM
        numbers = [completion_index(pod) for pod in active]
        assert len(set(numbers)) == len(numbers) or numbers[0] is None

    def settle(self) -> None:
        for _ in range(4):
            self.look("all")
            self.happen("gone", 0)


def _run(cluster: Cluster, steps: list[tuple[str, Any]]) -> None:
    cluster.look("all")
    for what, which in steps:
        if what == "look":
            cluster.look(which)
        else:
            cluster.happen(what, which)
        cluster.check()
    before = len(cluster.ended)
    cluster.settle()
    assert len(cluster.ended) >= before
    ended = [pod for pod in cluster.pods.values() if pod.is_terminal]
    assert not any(JOB_FINALIZER in (pod.metadata.finalizers or ()) for pod in ended)


def _check_counts(cluster: Cluster) -> None:
    """A deleted pod may still succeed before it is counted; it counts once all the same."""
    status = cluster.job.status
    assert status.succeeded + status.failed == len(cluster.ended)
    assert status.succeeded >= sum(ending == "Succeeded" for ending in cluster.ended.values())


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_each_pod_that_ends_is_counted_once(steps: list[tuple[str, Any]]) -> None:
    cluster = Cluster(completions=1000)
    _run(cluster, steps)
    _check_counts(cluster)


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_each_number_is_done_by_one_pod(steps: list[tuple[str, Any]]) -> None:
    cluster = Cluster(completions=4, completionMode="Indexed")
    _run(cluster, steps)
    succeeded = sum(ending == "Succeeded" for ending in cluster.ended.values())
    assert min(succeeded, 4) <= cluster.job.status.succeeded <= 4
    assert cluster.job.is_finished == (cluster.job.status.succeeded == 4)


def test_a_count_without_notes_loses_pods() -> None:
    """A planted bug: pods are let go before anybody has written down that they ended."""
    steps: list[tuple[str, Any]] = [("Succeeded", 0), ("look", "let go"), ("look", "all")]
    cluster = Cluster(completions=1000, notes=False)
    _run(cluster, steps)
    with pytest.raises(AssertionError):
        _check_counts(cluster)
