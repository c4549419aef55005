"""What controllers write into the status of workloads: pure functions from what there is to the status as JSON has it.

`kubectl rollout status` and `kubectl wait` read these. Of a daemon set: nodes that should have a daemon, and nodes that
have. Of a job: what the rules counted, and what a user wants to see besides. Of a deployment: counts over its replica
sets, and the conditions that tell how its rollout goes.

A rollout progresses as long as its numbers move; when they have stood still for `progressDeadlineSeconds`, it has
failed to, and `kubectl rollout status` says so. The time of a condition's last transition moves only when its status
changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kubesched.k8s.model.apps import DaemonSet, Deployment, DeploymentStrategy, JobStatus, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Node, Pod, ReplicationController
from kubesched.k8s.model.times import parse_instant, print_instant
from kubesched.k8s.workloads.daemon_sets import DaemonRules, node_of, with_daemon_tolerations
from kubesched.k8s.workloads.deployments import find_current, rolling_limits
from kubesched.k8s.workloads.pod_states import is_active, is_available, is_healthy
from kubesched.k8s.workloads.replicas import n_wanted
from kubesched.k8s.workloads.templates import EMPTY_TEMPLATE, REVISION_HASH_LABEL
from kubesched.playground.controllers.whole_objects import Body


def find_condition(conditions: Iterable[Body], kind: str) -> Body | None:
    return next((known for known in conditions if known.get("type") == kind), None)


def with_condition_set(conditions: Iterable[Body], new: Body, now_s: float) -> list[Body]:
    """The conditions with this one in the place of its predecessor; `new` has type, status, reason and message."""
    known = list(conditions)
    before = find_condition(known, new["type"])
    moment = print_instant(now_s)
    kept = before is not None and before.get("status") == new["status"]
    made = {**new, "lastTransitionTime": before["lastTransitionTime"] if kept and before else moment}
    if before is None:
        return [*known, made]
    return [made if condition is before else condition for condition in known]


def condition(kind: str, is_true: bool, reason: str, message: str) -> Body:
    return {"type": kind, "status": "True" if is_true else "False", "reason": reason, "message": message}


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


DEFAULT_DEADLINE_S = 600
_SETTLED = ("NewReplicaSetAvailable", "DeploymentPaused")
_COUNTED = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")


def deployment_status(
    deployment: Deployment,
    whole_spec: Body,
    before: Body,
    replica_sets: Sequence[ReplicaSet],
    pods: Mapping[str, Sequence[Pod]],
    now_s: float,
) -> Body:
    """`pods` are those of each set, by its uid."""
    current = find_current(deployment, replica_sets)
    status = _counts(deployment, current, replica_sets, pods, now_s)
    conditions = with_condition_set(
        before.get("conditions") or (), _with_update_time(_available(deployment, status), before, now_s), now_s
    )
    deadline_s = whole_spec.get("progressDeadlineSeconds", DEFAULT_DEADLINE_S)
    progress = _progress(deployment, current, status, before, deadline_s, now_s)
    if progress is not None:
        conditions = with_condition_set(conditions, progress, now_s)
    return {**status, "conditions": conditions}


def stalls_in_s(status: Body, whole_spec: Body, now_s: float) -> float | None:
    """When to look whether the rollout stands still; None when it is over."""
    progress = find_condition(status.get("conditions") or (), "Progressing")
    if progress is None or progress["status"] == "False" or progress["reason"] in _SETTLED:
        return None
    deadline_s: float = whole_spec.get("progressDeadlineSeconds", DEFAULT_DEADLINE_S)
    return max(1.0, parse_instant(progress["lastUpdateTime"]) + deadline_s - now_s + 1.0)


def _counts(
    deployment: Deployment,
    current: ReplicaSet | None,
    replica_sets: Sequence[ReplicaSet],
    pods: Mapping[str, Sequence[Pod]],
    now_s: float,
) -> Body:
    active = {
        known.metadata.uid: [p for p in pods.get(known.metadata.uid, ()) if is_active(p)] for known in replica_sets
    }
    n_all = sum(map(len, active.values()))
    n_ready = sum(sum(map(is_healthy, some)) for some in active.values())
    min_ready_s = deployment.spec.min_ready_seconds
    n_available = sum(sum(is_available(pod, min_ready_s, now_s) for pod in some) for some in active.values())
    n_updated = 0 if current is None else len(active[current.metadata.uid])
    return {
        "observedGeneration": deployment.metadata.generation or None,
        "replicas": n_all or None,
        "updatedReplicas": n_updated or None,
        "readyReplicas": n_ready or None,
        "availableReplicas": n_available or None,
        "terminatingReplicas": sum(n_terminating(some) for some in pods.values()),
        "unavailableReplicas": max(0, max(n_all, n_wanted(deployment)) - n_available) or None,
    }


def _available(deployment: Deployment, status: Body) -> Body:
    wanted = n_wanted(deployment)
    _, unavailable = rolling_limits(deployment.spec.strategy or DeploymentStrategy(), wanted)
    if (status["availableReplicas"] or 0) >= wanted - unavailable:
        return condition("Available", True, "MinimumReplicasAvailable", "Deployment has minimum availability.")
    return condition("Available", False, "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")


def _progress(
    deployment: Deployment, current: ReplicaSet | None, status: Body, before: Body, deadline_s: float, now_s: float
) -> Body | None:
    """The new condition; None if it stays as it is."""
    known = find_condition(before.get("conditions") or (), "Progressing")
    paused = _paused(deployment, known, now_s)
    if paused is not None:
        return paused
    if current is None or deployment.spec.paused:
        return None
    name, moment = f'ReplicaSet "{current.name}"', print_instant(now_s)
    if _is_complete(deployment, status):
        if known is not None and known["reason"] == "NewReplicaSetAvailable" and name in known["message"]:
            return None
        made = condition("Progressing", True, "NewReplicaSetAvailable", f"{name} has successfully progressed.")
        return {**made, "lastUpdateTime": moment}
    moved = any((status[key] or 0) != (before.get(key) or 0) for key in _COUNTED)
    if known is None or moved or name not in known["message"] or known["reason"] == "NewReplicaSetAvailable":
        made = condition("Progressing", True, "ReplicaSetUpdated", f"{name} is progressing.")
        return {**made, "lastUpdateTime": moment}
    if known["status"] != "False" and now_s >= parse_instant(known["lastUpdateTime"]) + deadline_s:
        made = condition("Progressing", False, "ProgressDeadlineExceeded", f"{name} has timed out progressing.")
        return {**made, "lastUpdateTime": moment}
    return None


def _paused(deployment: Deployment, known: Body | None, now_s: float) -> Body | None:
    """A paused deployment makes no progress, and one that goes on says so once: no deadline is missed meanwhile."""
    was_paused = known is not None and known["reason"] == "DeploymentPaused"
    if deployment.spec.paused == was_paused:
        return None
    reason, message = (
        ("DeploymentPaused", "Deployment is paused")
        if deployment.spec.paused
        else ("DeploymentResumed", "Deployment is resumed")
    )
    made = condition("Progressing", True, reason, message)
    return {**made, "status": "Unknown", "lastUpdateTime": print_instant(now_s)}


def with_replica_failure(conditions: Sequence[Body], of_sets: Iterable[Iterable[Body]], now_s: float) -> list[Body]:
    """What keeps a replica set from making pods is told by its deployment, too, for as long as it lasts."""
    failure = next((found for known in of_sets if (found := find_condition(known, "ReplicaFailure")) is not None), None)
    others = [known for known in conditions if known["type"] != "ReplicaFailure"]
    if failure is None:
        return others
    before = find_condition(conditions, "ReplicaFailure")
    told = condition("ReplicaFailure", True, failure.get("reason", ""), failure.get("message", ""))
    kept = before is not None and before.get("message") == told["message"]
    told["lastUpdateTime"] = before["lastUpdateTime"] if kept and before else print_instant(now_s)
    return with_condition_set(conditions, told, now_s)


def _is_complete(deployment: Deployment, status: Body) -> bool:
    wanted = n_wanted(deployment)
    return all((status[key] or 0) == wanted for key in ("replicas", "updatedReplicas", "availableReplicas"))


def _with_update_time(new: Body, before: Body, now_s: float) -> Body:
    known = find_condition(before.get("conditions") or (), new["type"])
    if known is not None and known["status"] == new["status"] and known["reason"] == new["reason"]:
        return {**new, "lastUpdateTime": known.get("lastUpdateTime", print_instant(now_s))}
    return {**new, "lastUpdateTime": print_instant(now_s)}
