"""Stateful sets: numbers, order, claims, updates."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from harness.workload_manifests import objects, workload
from kubesched.k8s.model.apps import StatefulSet
from kubesched.k8s.model.core import Pod, PodCondition
from kubesched.k8s.model.meta import ObjectMeta, OwnerReference
from kubesched.k8s.model.reported_pods import ReportedCondition, ReportedPod, ReportedPodStatus
from kubesched.k8s.model.storage import PersistentVolumeClaim
from kubesched.k8s.model.times import parse_instant
from kubesched.k8s.workloads.actions import CreateObject, DeleteObject, Plan
from kubesched.k8s.workloads.stateful_sets import OlderTemplate, sync_stateful_set
from kubesched.k8s.workloads.templates import Revisions

CLAIM_TEMPLATE = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}


def _set(**spec: Any) -> StatefulSet:
    (found,) = objects(workload("StatefulSet", "db", **spec))
    assert isinstance(found, StatefulSet)
    return replace(found, metadata=replace(found.metadata, uid="uid-db"))


def _made(owner: StatefulSet, n: int, *, ready: bool = True) -> list[Pod]:
    """The first n pods of the set, as its controller makes them."""
    revisions = Revisions()
    found: list[Pod] = []
    for _ in range(n):
        plan = sync_stateful_set(owner, found, {}, revisions)
        pod = next(action.item for action in plan.actions if isinstance(action.item, Pod))
        found.append(_in_phase(pod, "Running", ready=True))
    return found if ready else [*found[:-1], _in_phase(found[-1], "Running", ready=False)]


def _in_phase(pod: Pod, phase: str, *, ready: bool = False) -> Pod:
    conditions = (PodCondition("Ready", str(ready)),)
    return replace(pod, status=replace(pod.status, phase=phase, conditions=conditions))


def _leaving(pod: Pod) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))


def _summary(plan: Plan) -> list[str]:
    signs = {CreateObject: "+", DeleteObject: "-"}
    return [signs[type(action)] + action.item.name for action in plan.actions]


OWNER = _set(replicas=3)
PARALLEL = _set(replicas=3, podManagementPolicy="Parallel")


@pytest.mark.parametrize(
    ("owner", "pods", "expected"),
    [
        pytest.param(OWNER, [], ["+db-0"], id="the first"),
        pytest.param(OWNER, _made(OWNER, 1), ["+db-1"], id="the next when the one before is ready"),
        pytest.param(OWNER, _made(OWNER, 1, ready=False), [], id="not before"),
        pytest.param(OWNER, _made(OWNER, 3), [], id="all there"),
        pytest.param(PARALLEL, [], ["+db-0", "+db-1", "+db-2"], id="all at once in parallel"),
        pytest.param(_set(replicas=2, ordinals={"start": 5}), [], ["+db-5"], id="numbers may start elsewhere"),
        pytest.param(_set(replicas=1), _made(OWNER, 3), ["-db-2"], id="too many: the last goes first"),
        pytest.param(_set(replicas=1), [*_made(OWNER, 2), _leaving(_made(OWNER, 3)[2])], [], id="one at a time goes"),
        pytest.param(
            _set(replicas=1, podManagementPolicy="Parallel"), _made(OWNER, 3), ["-db-2", "-db-1"], id="or all at once"
        ),
        pytest.param(OWNER, [_in_phase(_made(OWNER, 1)[0], "Failed")], ["-db-0"], id="one that ended is replaced"),
        pytest.param(OWNER, [_leaving(_made(OWNER, 1)[0])], [], id="its name is taken until it is gone"),
    ],
)
def test_pods_come_and_go_in_order(owner: StatefulSet, pods: list[Pod], expected: list[str]) -> None:
    assert _summary(sync_stateful_set(owner, pods, {}, Revisions())) == expected


def test_a_pod_has_its_number_its_labels_and_its_claim() -> None:
    owner = _set(volumeClaimTemplates=[CLAIM_TEMPLATE])
    claim, pod = (action.item for action in sync_stateful_set(owner, [], {}, Revisions()).actions)
    assert isinstance(claim, PersistentVolumeClaim)
    assert (claim.key, claim.metadata.labels) == ("default/data-db-0", {"app": "db"})
    assert isinstance(pod, Pod)
    assert pod.labels["statefulset.kubernetes.io/pod-name"] == "db-0"
    assert pod.labels["apps.kubernetes.io/pod-index"] == "0"
    assert pod.labels["controller-revision-hash"].startswith("db-")
    (volume,) = pod.spec.volumes or ()
    assert volume.persistent_volume_claim is not None
    assert volume.persistent_volume_claim.claim_name == "data-db-0"


def _claim(owner: StatefulSet) -> PersistentVolumeClaim:
    claim = sync_stateful_set(owner, [], {}, Revisions()).actions[0].item
    assert isinstance(claim, PersistentVolumeClaim)
    return replace(claim, metadata=replace(claim.metadata, uid="uid-claim"))


def _owners(plan: Plan) -> list[str]:
    claims = [action.item for action in plan.actions if isinstance(action.item, PersistentVolumeClaim)]
    return [reference.kind for claim in claims for reference in claim.metadata.owner_references or ()]


def test_claims_belong_to_the_set_or_to_the_pod_that_goes_if_they_are_to_go_with_it() -> None:
    def spec(replicas: int, **retention: str) -> StatefulSet:
        return _set(
            replicas=replicas,
            volumeClaimTemplates=[CLAIM_TEMPLATE],
            persistentVolumeClaimRetentionPolicy=retention,
        )

    owner = spec(1, whenDeleted="Delete")
    made = _claim(owner)
    assert _owners(sync_stateful_set(owner, [], {}, Revisions())) == ["StatefulSet"]
    (pod,) = _made(spec(1), 1)
    pod = replace(pod, metadata=replace(pod.metadata, uid="uid-pod"))
    kept = {made.key: replace(made, metadata=replace(made.metadata, owner_references=None))}
    assert _owners(sync_stateful_set(owner, [pod], kept, Revisions())) == ["StatefulSet"]
    assert _owners(sync_stateful_set(spec(0, whenScaled="Delete"), [pod], kept, Revisions())) == ["Pod"]
    assert sync_stateful_set(spec(1, whenScaled="Delete"), [pod], kept, Revisions()).actions == []
    other = OwnerReference("ConfigMap", "c", "uid-c", "v1", controller=True)
    foreign = {made.key: replace(made, metadata=replace(made.metadata, owner_references=(other,)))}
    assert _owners(sync_stateful_set(spec(0, whenScaled="Delete"), [pod], foreign, Revisions())) == []
    back = sync_stateful_set(spec(1), [pod], {made.key: made}, Revisions())
    assert [type(action).__name__ for action in back.actions] == ["UpdateObject"]
    assert _owners(back) == []


def test_below_the_partition_pods_are_made_from_the_older_template() -> None:
    owner = _set(replicas=3, updateStrategy={"rollingUpdate": {"partition": 1}}, podManagementPolicy="Parallel")
    assert owner.spec.template is not None
    older = OlderTemplate(replace(owner.spec.template, metadata=ObjectMeta(labels={"is": "older"})), "abc")
    plan = sync_stateful_set(owner, [], {}, Revisions(), older=older)
    made = [action.item for action in plan.actions if isinstance(action.item, Pod)]
    assert [pod.labels.get("is") for pod in made] == ["older", None, None]
    assert made[0].labels["controller-revision-hash"] == "db-abc"


def test_the_next_pod_waits_until_the_one_before_has_been_ready_long_enough() -> None:
    owner = _set(replicas=2, minReadySeconds=10)
    (pod,) = _made(owner, 1)
    ready = ReportedCondition("Ready", "True", last_transition_time="2026-01-01T00:00:00Z")
    status = ReportedPodStatus("Running", conditions=(ready,))
    pods = [ReportedPod(metadata=pod.metadata, spec=pod.spec, status=status)]
    since_s = parse_instant("2026-01-01T00:00:00Z")
    early = sync_stateful_set(owner, pods, {}, Revisions(), now_s=since_s + 1)
    assert (_summary(early), early.again_at_s) == ([], since_s + 10)
    assert _summary(sync_stateful_set(owner, pods, {}, Revisions(), now_s=since_s + 10)) == ["+db-1"]


def test_a_claim_that_is_there_is_used_again() -> None:
    owner = _set(volumeClaimTemplates=[CLAIM_TEMPLATE])
    claim = _claim(owner)
    assert _summary(sync_stateful_set(owner, [], {claim.key: claim}, Revisions())) == ["+db-0"]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        pytest.param({}, ["-db-2"], id="the last first"),
        pytest.param({"type": "OnDelete"}, [], id="only when somebody deletes them"),
        pytest.param({"type": "RollingUpdate", "rollingUpdate": {"partition": 3}}, [], id="none below the partition"),
    ],
)
def test_pods_of_an_older_template_are_replaced(strategy: dict[str, Any], expected: list[str]) -> None:
    revisions = Revisions()
    pods = _made(OWNER, 3)
    assert _summary(sync_stateful_set(OWNER, pods, {}, revisions)) == []
    changed = _set(replicas=3, pod={"cpu": "2"}, updateStrategy=strategy)
    assert _summary(sync_stateful_set(changed, pods, {}, revisions)) == expected


def test_pods_with_a_hash_of_somebody_elses_making_are_of_the_first_template() -> None:
    pods = [
        replace(pod, metadata=replace(pod.metadata, labels={"controller-revision-hash": "db-7d9c"}))
        for pod in _made(OWNER, 3)
    ]
    revisions = Revisions()
    assert _summary(sync_stateful_set(OWNER, pods, {}, revisions)) == []
    assert _summary(sync_stateful_set(_set(replicas=3, pod={"cpu": "2"}), pods, {}, revisions)) == ["-db-2"]
