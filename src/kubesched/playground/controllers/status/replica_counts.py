"""The status of replica sets, replication controllers and stateful sets: pods, counted."""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.k8s.model.apps import ReplicaSet, StatefulSet
from kubesched.k8s.model.core import Pod, ReplicationController
from kubesched.k8s.workloads.pod_states import is_active, is_available, is_healthy
from kubesched.k8s.workloads.replicas import n_wanted
from kubesched.k8s.workloads.revisions import REVISION_HASH_LABEL
from kubesched.playground.controllers.documents import Body


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
