"""The status of deployments: what `kubectl rollout status` goes by."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from harness.workload_manifests import objects, workload
from kubesched.k8s.model.apps import Deployment, ReplicaSet
from kubesched.k8s.model.core import Pod, PodCondition, PodStatus
from kubesched.k8s.model.meta import ObjectMeta
from kubesched.k8s.workloads.deployments import sync_deployment
from kubesched.playground.controllers.status import deployment_status, stalls_in_s, with_replica_failure

NOW_S = 1_800_000_000.0


def _deployment(replicas: int) -> Deployment:
    (found,) = objects(workload("Deployment", "web", replicas=replicas))
    assert isinstance(found, Deployment)
    return replace(found, metadata=replace(found.metadata, uid="u", generation=2))


def _current_set(deployment: Deployment) -> ReplicaSet:
    (action,) = sync_deployment(deployment, [], {}).actions
    assert isinstance(action.item, ReplicaSet)
    return replace(action.item, metadata=replace(action.item.metadata, uid="rs"))


def _pods(n_ready: int, n_unready: int) -> list[Pod]:
    ready = PodStatus("Running", (PodCondition("Ready", "True"),))
    statuses = [ready] * n_ready + [PodStatus("Pending")] * n_unready
    return [Pod(metadata=ObjectMeta(name=f"p{n}"), status=status) for n, status in enumerate(statuses)]


def _status(n_ready: int, n_unready: int, before: dict[str, Any] | None = None, at_s: float = NOW_S) -> dict[str, Any]:
    deployment = _deployment(4)
    known = _current_set(deployment)
    return deployment_status(deployment, {}, before or {}, [known], {"rs": _pods(n_ready, n_unready)}, at_s)


def _reasons(status: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {known["type"]: (known["status"], known["reason"]) for known in status["conditions"]}


@pytest.mark.parametrize(
    ("n_ready", "n_unready", "available", "progressing"),
    [
        pytest.param(0, 4, ("False", "MinimumReplicasUnavailable"), ("True", "ReplicaSetUpdated"), id="none is ready"),
        pytest.param(3, 1, ("True", "MinimumReplicasAvailable"), ("True", "ReplicaSetUpdated"), id="enough are ready"),
        pytest.param(
            4, 0, ("True", "MinimumReplicasAvailable"), ("True", "NewReplicaSetAvailable"), id="all are ready"
        ),
    ],
)
def test_conditions_tell_how_far_the_rollout_is(
    n_ready: int, n_unready: int, available: tuple[str, str], progressing: tuple[str, str]
) -> None:
    status = _status(n_ready, n_unready)
    assert _reasons(status) == {"Available": available, "Progressing": progressing}
    assert (status["observedGeneration"], status["updatedReplicas"]) == (2, 4)
    assert status["unavailableReplicas"] == (4 - n_ready or None)


def test_a_rollout_that_stands_still_for_too_long_has_failed_to_progress() -> None:
    before = _status(1, 3)
    assert stalls_in_s(before, {}, NOW_S) == 601.0
    still = _status(1, 3, before, NOW_S + 599)
    assert _reasons(still)["Progressing"] == ("True", "ReplicaSetUpdated")
    late = _status(1, 3, still, NOW_S + 600)
    assert _reasons(late)["Progressing"] == ("False", "ProgressDeadlineExceeded")
    assert stalls_in_s(late, {}, NOW_S + 600) is None


def test_any_move_starts_the_time_anew() -> None:
    before = _status(1, 3)
    moved = _status(2, 2, before, NOW_S + 599)
    assert _reasons(_status(2, 2, moved, NOW_S + 700))["Progressing"] == ("True", "ReplicaSetUpdated")


def test_a_status_that_stays_is_the_same_later() -> None:
    before = _status(4, 0)
    assert _status(4, 0, before, NOW_S + 1000) == before


def test_a_paused_deployment_misses_no_deadline() -> None:
    paused = replace(_deployment(4), spec=replace(_deployment(4).spec, paused=True))
    known = _current_set(_deployment(4))
    pods = {"rs": _pods(1, 3)}
    status = deployment_status(paused, {}, _status(1, 3), [known], pods, NOW_S)
    assert _reasons(status)["Progressing"] == ("Unknown", "DeploymentPaused")
    assert stalls_in_s(status, {}, NOW_S) is None
    later = deployment_status(paused, {}, status, [known], pods, NOW_S + 10_000)
    assert _reasons(later)["Progressing"] == ("Unknown", "DeploymentPaused")
    resumed = deployment_status(_deployment(4), {}, later, [known], pods, NOW_S + 10_000)
    assert _reasons(resumed)["Progressing"] == ("Unknown", "DeploymentResumed")
    moving = deployment_status(_deployment(4), {}, resumed, [known], pods, NOW_S + 10_001)
    assert _reasons(moving)["Progressing"] == ("True", "ReplicaSetUpdated")


def test_what_keeps_a_replica_set_from_making_pods_is_told_while_it_lasts() -> None:
    failure = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota"}
    told = with_replica_failure([], [(), [failure]], NOW_S)
    assert [(one["type"], one["reason"], one["message"]) for one in told] == [
        ("ReplicaFailure", "FailedCreate", "exceeded quota")
    ]
    assert with_replica_failure(told, [[failure]], NOW_S + 60) == told
    assert with_replica_failure(told, [()], NOW_S) == []
