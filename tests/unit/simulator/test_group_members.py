"""What is told of a gang whose pods are not created: by whom not, and what would let them be."""

from __future__ import annotations

from typing import Any

import pytest

import kubesched
from harness.workload_manifests import workload
from kubesched.testing import make

_NODES = [make.node("a", cpu=4)]


def _gang(min_count: int = 3) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}},
    }


def _quota(name: str, used: dict[str, str], hard: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"hard": hard},
        "status": {"hard": hard, "used": used},
    }


def _job(**spec: Any) -> dict[str, Any]:
    pod = {"cpu": 1, "restartPolicy": "Never", "schedulingGroup": {"podGroupName": "g"}}
    return workload("Job", "train", pod=pod, parallelism=3, completions=3, **spec)


def _members(n: int) -> list[dict[str, Any]]:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": True}
    pods = [make.pod(f"train-{at}", cpu=1) for at in range(n)]
    for pod in pods:
        pod["metadata"]["ownerReferences"] = [owner]
        pod["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    return pods


_USED_UP = _quota("team", {"requests.cpu": "1"}, {"requests.cpu": "1"})
_WAITS = "PodGroup default/g waits: 2 of the 3 pods that it needs do not exist; Job train cannot create them: "
_LOWER = "lower minCount from 3 to 1"


@pytest.mark.parametrize(
    ("objects", "headline", "told"),
    [
        pytest.param(
            [*_NODES, _gang(), _job(), *_members(1), _USED_UP],
            f"{_WAITS}quota team is used up: 1 of 1 requests.cpu used, a pod needs 1.",
            ["raise requests.cpu from 1 to 3 in ResourceQuota team", _LOWER],
            id="a quota is used up",
        ),
        pytest.param(
            [*_NODES, _gang(), _job(), *_members(1), _quota("team", {"requests.cpu": "500m"}, {"requests.cpu": "2"})],
            f"{_WAITS}quota team has room for 1 of the 2 that are missing: 500m of 2 requests.cpu used, a pod needs 1.",
            ["raise requests.cpu from 2 to 2500m in ResourceQuota team", _LOWER],
            id="a quota has room for some",
        ),
        pytest.param(
            [*_NODES, _gang(), _job(), *_members(1), _USED_UP, _quota("few", {"pods": "1"}, {"pods": "2"})],
            f"{_WAITS}quota team is used up: 1 of 1 requests.cpu used, a pod needs 1.",
            [
                "raise requests.cpu from 1 to 3 in ResourceQuota team and raise pods from 2 to 3 in ResourceQuota few",
                _LOWER,
            ],
            id="two quotas",
        ),
        pytest.param(
            [*_NODES, _gang(), _job(), *_members(1), _quota("limits", {}, {"limits.cpu": "9"})],
            f"{_WAITS}quota limits refuses its pods: must specify limits.cpu for: main.",
            ["let the pod template meet ResourceQuota limits: its pods must specify limits.cpu for: main", _LOWER],
            id="a quota of what pods do not say",
        ),
        pytest.param(
            [make.node("a", cpu=2), _gang(), _job(), *_members(1), _USED_UP],
            f"{_WAITS}quota team is used up: 1 of 1 requests.cpu used, a pod needs 1.",
            [
                "raise requests.cpu from 1 to 3 in ResourceQuota team, and add a node like a (2 cpu, 8Gi memory)",
                _LOWER,
            ],
            id="there is no room for them either",
        ),
        pytest.param(
            [*_NODES, _gang(), _job(), _quota("team", {"requests.cpu": "4"}, {"requests.cpu": "4"})],
            "PodGroup default/g waits: none of the 3 pods that it needs exists; Job train cannot create them: quota "
            "team is used up: 4 of 4 requests.cpu used, a pod needs 1.",
            ["raise requests.cpu from 4 to 7 in ResourceQuota team"],
            id="no pod exists",
        ),
        pytest.param(
            [*_NODES, _gang(), _job(suspend=True), *_members(1)],
            f"{_WAITS}it is suspended (spec.suspend).",
            ["resume Job train (spec.suspend: false)", _LOWER],
            id="suspended",
        ),
        pytest.param(
            [*_NODES, _gang(), _job(), *_members(1), _quota("team", {"requests.cpu": "1"}, {"requests.cpu": "3"})],
            "PodGroup default/g waits: 2 of the 3 pods that it needs do not exist.",
            ["create 2 more pods like train-0", _LOWER],
            id="the quota has room",
        ),
        pytest.param(
            [*_NODES, _gang(), *_members(1), _USED_UP],
            "PodGroup default/g waits: 2 of the 3 pods that it needs do not exist.",
            ["create 2 more pods like train-0", _LOWER],
            id="nobody makes them",
        ),
    ],
)
def test_what_keeps_the_pods_of_a_gang_from_being_created_is_told(
    objects: list[dict[str, Any]], headline: str, told: list[str]
) -> None:
    found = kubesched.explain(objects, "podgroup/g").to_dict()
    assert found["headline"] == headline
    assert [change["description"] for change in found["changes"]] == told
    assert (found["unmade"] is not None) == ("cannot create" in headline)


def test_a_quota_that_is_raised_as_told_is_enough() -> None:
    raised = _quota("team", {"requests.cpu": "1"}, {"requests.cpu": "3"})
    assert kubesched.explain([*_NODES, _gang(), _job(), *_members(1), raised], "podgroup/g").to_dict()["unmade"] is None


def test_a_job_for_which_a_group_was_made_need_not_name_it() -> None:
    gang, job = _gang(), _job()
    gang["metadata"]["ownerReferences"] = _members(1)[0]["metadata"]["ownerReferences"]
    del job["spec"]["template"]["spec"]["schedulingGroup"]
    headline = kubesched.explain([*_NODES, gang, job, *_members(1), _USED_UP], "podgroup/g").headline
    assert headline.startswith(f"{_WAITS}quota team is used up")
