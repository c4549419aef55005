"""Replica sets, replication controllers and deployments: what their controllers want."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from harness.workload_manifests import objects, workload
from kubesched.k8s.model.apps import Deployment, DeploymentStatus, ReplicaSet
from kubesched.k8s.model.core import Pod, PodCondition, ReplicationController
from kubesched.k8s.model.reported_pods import ReportedCondition, ReportedPod, ReportedPodStatus
from kubesched.k8s.model.times import parse_instant
from kubesched.k8s.workloads.actions import CreateObject, DeleteObject, Plan, SeededNames, UpdateObject
from kubesched.k8s.workloads.deployments import ReplicaSetScale, ReplicaSetSizes, next_sizes, sync_deployment
from kubesched.k8s.workloads.pod_states import available_next_s, is_available
from kubesched.k8s.workloads.replicas import least_valuable, sync_replicas
from kubesched.testing import make
from kubesched.testing.make import Manifest


def _pod(manifest: Manifest) -> Pod:
    (found,) = objects(manifest)
    assert isinstance(found, Pod)
    return found


def _ready(pod: Pod) -> Pod:
    return replace(pod, status=replace(pod.status, phase="Running", conditions=(PodCondition("Ready", "True"),)))


def _set(kind: str = "ReplicaSet", **spec: Any) -> Any:
    (found,) = objects(workload(kind, "web", **spec))
    return replace(found, metadata=replace(found.metadata, uid="uid-web"))


def _created(plan: Plan) -> list[Any]:
    return [action.item for action in plan.actions if isinstance(action, CreateObject)]


def _deleted(plan: Plan) -> list[str]:
    return [action.item.name for action in plan.actions if isinstance(action, DeleteObject)]


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController"])
def test_missing_pods_are_created_with_owner_labels_and_name(kind: str) -> None:
    owner = _set(kind, replicas=2)
    assert isinstance(owner, ReplicaSet | ReplicationController)
    first, second = _created(sync_replicas(owner, [], SeededNames(0)))
    assert first.name != second.name
    assert first.name.startswith("web-")
    assert first.labels == {"app": "web"}
    (reference,) = first.metadata.owner_references
    assert (reference.kind, reference.name, reference.uid, reference.controller) == (kind, "web", "uid-web", True)


@pytest.mark.parametrize(
    ("pod", "n_created"),
    [
        pytest.param(make.pod("p", on="a"), 0, id="one that runs counts"),
        pytest.param(make.pod("p"), 0, id="one that waits counts"),
        pytest.param(make.pod("p", on="a", status={"phase": "Succeeded"}), 1, id="one that finished does not"),
        pytest.param(make.pod("p", metadata={"deletionTimestamp": "x"}), 1, id="one on its way out does not"),
    ],
)
def test_a_set_counts_the_pods_that_will_stay(pod: Manifest, n_created: int) -> None:
    plan = sync_replicas(_set(), [_pod(pod)], SeededNames(0))
    assert len(_created(plan)) == n_created


CROWD = {
    "waiting": make.pod("waiting"),
    "starting": make.pod("starting", on="a", status={"phase": "Pending"}),
    "cheap": make.pod("cheap", on="b", metadata={"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}}),
    "doubled-new": make.pod("doubled-new", on="a", metadata={"creationTimestamp": "2026-01-02T00:00:00Z"}),
    "doubled-old": make.pod("doubled-old", on="a", metadata={"creationTimestamp": "2026-01-01T00:00:00Z"}),
    "alone": make.pod("alone", on="c"),
}


def test_the_least_valuable_pods_go_first() -> None:
    crowd = [_pod(manifest) for manifest in reversed(CROWD.values())]
    assert [pod.name for pod in least_valuable(crowd, 6)] == list(CROWD)
    assert _deleted(sync_replicas(_set(replicas=4), crowd, SeededNames(0))) == ["waiting", "starting"]


# -- deployments -------------------------------------------------------------------------------------------------------


def _deployment(**spec: Any) -> Deployment:
    found: Deployment = _set("Deployment", **spec)
    return found


def test_a_deployment_makes_one_replica_set_marked_with_its_templates_hash() -> None:
    (found,) = _created(sync_deployment(_deployment(replicas=3), [], {}))
    mark = found.spec.template.metadata.labels["pod-template-hash"]
    assert found.name == f"web-{mark}"
    assert found.spec.selector.match_labels == {"app": "web", "pod-template-hash": mark}
    assert found.spec.replicas == 3
    assert found.metadata.owner_references[0].kind == "Deployment"


def test_a_replica_set_of_the_same_template_is_kept_and_scaled() -> None:
    deployment = _deployment(replicas=3)
    (known,) = _created(sync_deployment(deployment, [], {}))
    assert sync_deployment(deployment, [known], {}).actions == []
    (action,) = sync_deployment(_deployment(replicas=1), [known], {}).actions
    assert isinstance(action, UpdateObject)
    assert isinstance(action.item, ReplicaSet)
    assert action.item.spec.replicas == 1


def test_of_several_replica_sets_alike_the_last_revision_counts() -> None:
    deployment = _deployment(replicas=2)
    (known,) = _created(sync_deployment(deployment, [], {}))
    old = replace(known, metadata=replace(known.metadata, name="web-old"), spec=replace(known.spec, replicas=0))
    newer = {**known.metadata.annotations, "deployment.kubernetes.io/revision": "9"}
    new = replace(known, metadata=replace(known.metadata, annotations=newer))
    assert sync_deployment(deployment, [old, new], {}).actions == []


def test_another_template_gets_another_replica_set_with_the_next_revision() -> None:
    (known,) = _created(sync_deployment(_deployment(replicas=4), [], {}))
    known = replace(known, metadata=replace(known.metadata, uid="uid-old"))
    pods = [_ready(_pod(make.pod(f"p{i}", on="a"))) for i in range(4)]
    plan = sync_deployment(_deployment(replicas=4, pod={"cpu": "2"}), [known], {"uid-old": pods})
    (new,) = _created(plan)
    assert new.metadata.annotations == {
        "deployment.kubernetes.io/revision": "2",
        "deployment.kubernetes.io/desired-replicas": "4",
        "deployment.kubernetes.io/max-replicas": "5",
    }
    assert new.spec.replicas == 1  # 25% more
    (old,) = (action.item for action in plan.actions if isinstance(action, UpdateObject))
    assert isinstance(old, ReplicaSet)
    assert old.spec.replicas == 3  # 25% fewer


def _noted(told: int, desired: int, most: int, available: int = 0) -> ReplicaSetScale:
    return ReplicaSetScale(told, told, available, desired, most)


@pytest.mark.parametrize(
    ("replicas", "current", "old", "expected"),
    [
        pytest.param(30, _noted(5, 10, 13), [_noted(8, 10, 13)], (13, (20,)), id="each grows by its share"),
        pytest.param(5, _noted(5, 10, 13), [_noted(8, 10, 13)], (3, (5,)), id="each shrinks by its share"),
        pytest.param(0, _noted(5, 10, 13), [_noted(8, 10, 13)], (0, (0,)), id="all go"),
        pytest.param(30, _noted(10, 10, 13), [], (30, ()), id="the only one grows to all"),
        pytest.param(30, _noted(0, 10, 13), [_noted(10, 10, 13)], (0, (30,)), id="the only one that has pods"),
        pytest.param(
            10, _noted(10, 10, 13, 10), [_noted(2, 12, 15)], (10, (0,)), id="a new one that is full: the old ones go"
        ),
    ],
)
def test_a_deployment_that_is_resized_in_a_rollout_shares_out(
    replicas: int, current: ReplicaSetScale, old: list[ReplicaSetScale], expected: tuple[int, tuple[int, ...]]
) -> None:
    rolling = {"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    found = next_sizes(_deployment(replicas=replicas, strategy=rolling), current, old)
    assert found == ReplicaSetSizes(*expected)


def test_a_paused_deployment_is_scaled_but_rolls_out_nothing() -> None:
    (known,) = _created(sync_deployment(_deployment(replicas=2), [], {}))
    assert sync_deployment(_deployment(replicas=2, paused=True, pod={"cpu": "2"}), [known], {}).actions == []
    (action,) = sync_deployment(_deployment(replicas=5, paused=True), [known], {}).actions
    assert isinstance(action.item, ReplicaSet)
    assert action.item.spec.replicas == 5


def test_a_pod_is_available_when_it_has_been_ready_long_enough() -> None:
    ready = ReportedCondition("Ready", "True", last_transition_time="2026-01-01T00:00:00Z")
    pod = ReportedPod(status=ReportedPodStatus("Running", conditions=(ready,)))
    since_s = parse_instant("2026-01-01T00:00:00Z")
    assert [is_available(pod, 10, since_s + for_s) for for_s in (0, 9, 10)] == [False, False, True]
    assert available_next_s([pod], 10, since_s) == since_s + 10
    assert available_next_s([pod], 10, since_s + 10) is None
    assert is_available(pod, 0, since_s)


def test_a_name_that_is_taken_is_followed_by_another() -> None:
    deployment = _deployment(replicas=1)
    again = replace(deployment, status=DeploymentStatus(collision_count=1))
    names = [_created(sync_deployment(one, [], {}))[0].name for one in (deployment, again)]
    assert names[0] != names[1]


def _scale(told: int, available: int) -> ReplicaSetScale:
    return ReplicaSetScale(told, told, available)


@pytest.mark.parametrize(
    ("strategy", "current", "old", "expected"),
    [
        pytest.param({}, None, [], (10, ()), id="nothing yet: all at once"),
        pytest.param({}, None, [_scale(10, 10)], (3, (8,)), id="the first step surges and frees"),
        pytest.param({}, _scale(3, 0), [_scale(8, 8)], (5, (8,)), id="nothing more goes before the new ones are ready"),
        pytest.param({}, _scale(5, 5), [_scale(8, 8)], (5, (3,)), id="ready ones let old ones go"),
        pytest.param({}, _scale(10, 10), [_scale(3, 3)], (10, (0,)), id="the last old ones go"),
        pytest.param({}, None, [_scale(10, 4)], (3, (8,)), id="old ones that do not run go first"),
        pytest.param(
            {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}, None, [_scale(10, 10)], (0, (9,)), id="no surge"
        ),
        pytest.param(
            {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}},
            None,
            [_scale(10, 10)],
            (0, (9,)),
            id="neither allowed: one may miss",
        ),
        pytest.param({"type": "Recreate"}, None, [_scale(10, 10)], (0, (0,)), id="recreate: the old ones first"),
        pytest.param({"type": "Recreate"}, None, [_scale(0, 0)], (10, (0,)), id="recreate: then all new ones"),
        pytest.param(
            {"type": "Recreate"},
            None,
            [ReplicaSetScale(0, 2, 0)],
            (0, (0,)),
            id="recreate: not while old ones are on their way out",
        ),
    ],
)
def test_a_rollout_goes_as_far_as_it_may(
    strategy: dict[str, Any],
    current: ReplicaSetScale | None,
    old: list[ReplicaSetScale],
    expected: tuple[int, tuple[int, ...]],
) -> None:
    found = next_sizes(_deployment(replicas=10, strategy=strategy), current, old)
    assert found == ReplicaSetSizes(*expected)
