"""Workloads that are too large to make at once: a few hundred pods a look, and none while too many wait."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from harness.workload_manifests import objects, workload
from kubesched.k8s.model.apps import Job, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Pod
from kubesched.k8s.workloads.actions import BURST, Bursts, CreateObject, Plan, SeededNames
from kubesched.k8s.workloads.job_pods import JobFailures
from kubesched.k8s.workloads.jobs import sync_job
from kubesched.k8s.workloads.replicas import sync_replicas
from kubesched.k8s.workloads.stateful_sets import sync_stateful_set
from kubesched.k8s.workloads.templates import Revisions

BILLIONS = 2_000_000_000
NAMES = SeededNames(0)


def _replica_set() -> Plan:
    (owner,) = objects(workload("ReplicaSet", "web", replicas=BILLIONS))
    assert isinstance(owner, ReplicaSet)
    return sync_replicas(owner, [], NAMES)


def _stateful_set() -> Plan:
    (owner,) = objects(workload("StatefulSet", "db", replicas=BILLIONS, podManagementPolicy="Parallel"))
    assert isinstance(owner, StatefulSet)
    return sync_stateful_set(owner, [], {}, Revisions())


def _indexed_job() -> Plan:
    (owner,) = objects(workload("Job", "sum", completions=BILLIONS, parallelism=BILLIONS, completionMode="Indexed"))
    assert isinstance(owner, Job)
    return sync_job(owner, [], NAMES, JobFailures(), 0.0)


@pytest.mark.parametrize("made", [_replica_set, _stateful_set, _indexed_job])
def test_billions_of_pods_are_made_some_hundred_a_look(made: object) -> None:
    plan = made()  # type: ignore[operator]
    assert sum(isinstance(action, CreateObject) for action in plan.actions) == BURST
    assert plan.is_cut


def test_no_more_pods_are_made_while_many_wait_for_a_node() -> None:
    (owner,) = objects(workload("ReplicaSet", "web", replicas=10))
    assert isinstance(owner, ReplicaSet)
    bursts = Bursts(most=4, most_waiting=6)
    pods: list[Pod] = []
    counts = []
    for _ in range(3):
        plan = sync_replicas(owner, pods, NAMES, bursts)
        pods += [action.item for action in plan.actions if isinstance(action.item, Pod)]
        counts.append((len(pods), plan.is_cut, plan.held_back))
    waits = "{} of its pods wait for a node: {} more are created when some have one"
    assert counts == [(4, True, ""), (6, False, waits.format(4, 4)), (6, False, waits.format(6, 4))]
    pods = [replace(pod, spec=replace(pod.spec, node_name="n")) for pod in pods]
    plan = sync_replicas(owner, pods, NAMES, bursts)
    assert (len(plan.actions), plan.is_cut, plan.held_back) == (4, False, "")
