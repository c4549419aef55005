"""The status of a deployment: counts over its replica sets, and the conditions that tell how its rollout goes.

A rollout progresses as long as its numbers move; when they have stood still for `progressDeadlineSeconds`, it has
failed to, and `kubectl rollout status` says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kubesched.k8s.model.apps import Deployment, DeploymentStrategy, ReplicaSet
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.times import parse_instant, print_instant
from kubesched.k8s.workloads.deployments import find_current, rolling_limits
from kubesched.k8s.workloads.pod_states import is_active, is_available, is_healthy
from kubesched.k8s.workloads.replicas import n_wanted
from kubesched.playground.controllers.documents import Body
from kubesched.playground.controllers.status.conditions import condition, find_condition, with_condition_set
from kubesched.playground.controllers.status.pod_counts import n_terminating

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
