"""The status of workloads that have pods of their own, counted: replica sets, stateful sets, daemon sets and jobs.

Of a daemon set: nodes that should have a daemon, and nodes that have. Of a job: what the rules counted, and what a user
wants to see besides.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubesched.k8s.model.apps import DaemonSet, JobStatus, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Node, Pod, ReplicationController
from kubesched.k8s.model.times import print_instant
from kubesched.k8s.workloads.daemon_sets import DaemonRules, node_of, with_daemon_tolerations
from kubesched.k8s.workloads.pod_states import is_active, is_available, is_healthy
from kubesched.k8s.workloads.replicas import n_wanted
from kubesched.k8s.workloads.templates import EMPTY_TEMPLATE, REVISION_HASH_LABEL
from kubesched.playground.controllers.documents import Body
from kubesched.playground.controllers.status.conditions import condition, find_condition, with_condition_set


def replica_set_status(owner: ReplicaSet | ReplicationController, pods: Sequence[Pod], now_s: float) -> Body:
    active = [pod for pod in pods if is_active(pod)]
    n_ready = sum(map(is_healthy, active))
    n_available = sum(is_available(pod, owner.spec.min_ready_seconds, now_s) for pod in active)
    template = owner.spec.template
    wanted = (template.metadata.labels or {}).items() if template is not None else ()
    n_labelled = sum(1 for pod in active if all(pod.labels.get(key) == value for key, value in wanted))
    status: Body = {
        "replicas": len(active),
        "fullyLabeledReplicas": n_labelled or None,
        "readyReplicas": n_ready or None,
        "availableReplicas": n_available or None,
        "observedGeneration": owner.metadata.generation or None,
    }
    if isinstance(owner, ReplicaSet):
        status["terminatingReplicas"] = n_terminating(pods)
    return status


def n_terminating(pods: Sequence[Pod]) -> int:
    return sum(1 for pod in pods if pod.is_terminating and not pod.is_terminal)


def stateful_set_status(
    owner: StatefulSet, pods: Sequence[Pod], update_revision: str, before: Body, now_s: float
) -> Body:
    """`update_revision` is that of the present template; the current one follows when all pods have it."""
    n_ready = sum(map(is_healthy, pods))
    n_available = sum(is_available(pod, owner.spec.min_ready_seconds, now_s) for pod in pods)
    updated = [pod for pod in pods if pod.labels.get(REVISION_HASH_LABEL) == update_revision]
    current_revision = before.get("currentRevision") or update_revision
    if len(updated) >= n_wanted(owner) and len(updated) == len(pods) and all(map(is_healthy, updated)):
        current_revision = update_revision
    current = [pod for pod in pods if pod.labels.get(REVISION_HASH_LABEL) == current_revision]
    return {
        "observedGeneration": owner.metadata.generation or None,
        "replicas": len(pods),
        "readyReplicas": n_ready or None,
        "availableReplicas": n_available,
        "currentReplicas": len(current) or None,
        "updatedReplicas": len(updated) or None,
        "currentRevision": current_revision,
        "updateRevision": update_revision,
        "collisionCount": before.get("collisionCount", 0),
    }


def daemon_set_status(
    owner: DaemonSet, pods: Sequence[Pod], nodes: Iterable[Node], revision: str, now_s: float
) -> Body:
    rules = DaemonRules.of(with_daemon_tolerations((owner.spec.template or EMPTY_TEMPLATE).spec))
    by_node: dict[str, list[Pod]] = {}
    for pod in pods:
        if not pod.is_terminal and not pod.is_terminating:
            by_node.setdefault(node_of(pod), []).append(pod)
    n_desired = n_current = n_ready = n_available = n_updated = n_misplaced = 0
    for node in nodes:
        here = by_node.get(node.name, [])
        if not rules.should_run_on(node):
            n_misplaced += bool(here)
            continue
        n_desired += 1
        n_current += bool(here)
        n_ready += any(map(is_healthy, here))
        n_available += any(is_available(pod, owner.spec.min_ready_seconds, now_s) for pod in here)
        n_updated += any(pod.labels.get(REVISION_HASH_LABEL) == revision for pod in here)
    return {
        "currentNumberScheduled": n_current,
        "desiredNumberScheduled": n_desired,
        "numberMisscheduled": n_misplaced,
        "numberReady": n_ready,
        "numberAvailable": n_available or None,
        "numberUnavailable": (n_desired - n_available) or None,
        "updatedNumberScheduled": n_updated or None,
        "observedGeneration": owner.metadata.generation or None,
    }


def job_status(counted: JobStatus, pods: Sequence[Pod], before: Body, now_s: float) -> Body:
    """`counted` is what the rules made of the status; `pods` are those of the job."""
    active = [pod for pod in pods if is_active(pod)]
    status: Body = {
        "succeeded": counted.succeeded or None,
        "failed": counted.failed or None,
        "active": len(active) or None,
        "ready": sum(map(is_healthy, active)),
        "terminating": sum(1 for pod in pods if pod.is_terminating and not pod.is_terminal),
        "uncountedTerminatedPods": {},
        "startTime": counted.start_time,
        "completedIndexes": counted.completed_indexes or None,
        "failedIndexes": counted.failed_indexes,
    }
    conditions: list[Body] = list(before.get("conditions") or ())
    for known in counted.conditions or ():
        there = find_condition(conditions, known.type)
        if there is not None and there.get("status") == known.status:
            continue
        made = condition(known.type, known.status == "True", known.reason, known.message)
        conditions = with_condition_set(conditions, {**made, "lastProbeTime": print_instant(now_s)}, now_s)
        if known.type in ("Complete", "Failed") and known.status == "True":
            status |= {"active": None, "ready": 0, "terminating": 0}
    if counted.completion_time is not None:
        status["completionTime"] = counted.completion_time
    if conditions:
        status["conditions"] = conditions
    return status


def noted_status(counted: JobStatus, newly: Body) -> Body:
    """What is written before pods are let go: should we end in between, they are counted all the same."""
    return {
        "uncountedTerminatedPods": newly,
        "completedIndexes": counted.completed_indexes or None,
        "failedIndexes": counted.failed_indexes,
    }
