"""Pod groups on a real server: a deleted one waits for its pods, and a job that is a gang gets one."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from controlled_api_server import Body, Cluster, on_cluster

from kubesched.k8s.model.apps import Job, JobSpec
from kubesched.k8s.model.meta import ObjectMeta
from kubesched.k8s.workloads.jobs import pod_group_for, workload_for
from kubesched.playground.controllers.runner import all_controllers

_PODS = "/api/v1/namespaces/default/pods"
_JOBS = "/apis/batch/v1/namespaces/default/jobs"
_API = "scheduling.k8s.io/v1alpha2"
_GROUPS = f"/apis/{_API}/namespaces/default/podgroups"
_WORKLOADS = f"/apis/{_API}/namespaces/default/workloads"
_POD_SPEC: Body = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "i"}]}
_NEXT_API = "scheduling.k8s.io/v1beta1"
_NEXT_GROUPS = f"/apis/{_NEXT_API}/namespaces/default/podgroups"
_NEXT_WORKLOADS = f"/apis/{_NEXT_API}/namespaces/default/workloads"
_with_groups = partial(all_controllers, jobs_have_groups=True)
_with_claims = partial(all_controllers, groups_have_claims=True)


def _job(name: str = "train", **spec: Any) -> Body:
    wanted = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", **spec}
    return {"metadata": {"name": name}, "spec": {"template": {"spec": _POD_SPEC}, **wanted}}


async def _items(cluster: Cluster, path: str) -> list[Body]:
    found = await cluster.ask("GET", path)
    return list(found["items"])


async def _pods(cluster: Cluster, n_pods: int) -> list[Body]:
    await cluster.until(_PODS, lambda found: found is not None and len(found["items"]) == n_pods)
    return await _items(cluster, _PODS)


def test_a_deleted_group_waits_for_the_last_of_its_pods(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        group = {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
        await cluster.ask("POST", _GROUPS, group)
        for name in ("a", "b"):
            spec = {**_POD_SPEC, "schedulingGroup": {"podGroupName": "g"}}
            await cluster.ask("POST", _PODS, {"metadata": {"name": name}, "spec": spec})
        await cluster.ask("DELETE", f"{_GROUPS}/g")
        await cluster.ask("DELETE", f"{_PODS}/a")
        await cluster.until(f"{_PODS}/a", lambda found: found is None)
        held = await cluster.find(f"{_GROUPS}/g")
        assert held is not None
        assert held["metadata"]["deletionTimestamp"]
        body = {"status": {"phase": "Failed"}}
        await cluster.ask("PATCH", f"{_PODS}/b/status", body)
        await cluster.until(f"{_GROUPS}/g", lambda found: found is None)

    on_cluster(scenario, tmp_path)


def test_a_job_that_is_a_gang_gets_a_workload_and_a_group(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        job = await cluster.ask("POST", _JOBS, _job())
        pods = await _pods(cluster, 2)
        (workload,) = await _items(cluster, _WORKLOADS)
        (group,) = await _items(cluster, _GROUPS)
        name = group["metadata"]["name"]
        assert all(pod["spec"]["schedulingGroup"] == {"podGroupName": name} for pod in pods)
        assert all([one["kind"] for one in pod["metadata"]["ownerReferences"]] == ["Job"] for pod in pods)
        of_job = {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "name": "train",
            "uid": job["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        made_from = workload["metadata"]["name"]
        of_workload = {"apiVersion": _API, "kind": "Workload", "name": made_from, "uid": workload["metadata"]["uid"]}
        assert workload["metadata"]["ownerReferences"] == [of_job]
        assert group["metadata"]["ownerReferences"] == [of_job, of_workload]
        assert workload["spec"] == {
            "controllerRef": {"apiGroup": "batch", "kind": "Job", "name": "train"},
            "podGroupTemplates": [
                {
                    "name": "train-pgt-0",
                    "schedulingPolicy": {"gang": {"minCount": 2}},
                    "schedulingConstraints": None,
                }
            ],
        }
        reference = {"workloadName": made_from, "podGroupTemplateName": "train-pgt-0"}
        assert group["spec"]["podGroupTemplateRef"] == {"workload": reference}
        assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}
        told = f"Created Workload {made_from} for Job train"
        await cluster.until(
            "/api/v1/namespaces/default/events",
            lambda found: found is not None and any(one["message"] == told for one in found["items"]),
        )

    on_cluster(scenario, tmp_path, _with_groups)


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(_job(parallelism=1, completions=1), id="one pod"),
        pytest.param(_job(completionMode="NonIndexed"), id="not indexed"),
        pytest.param(_job(completions=3), id="more completions than pods at a time"),
        pytest.param(
            _job(template={"spec": {**_POD_SPEC, "schedulingGroup": {"podGroupName": "mine"}}}), id="a group of its own"
        ),
    ],
)
def test_other_jobs_get_none(job: Body, tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.ask("POST", _JOBS, job)
        pods = await _pods(cluster, job["spec"]["parallelism"])
        wanted = job["spec"]["template"]["spec"].get("schedulingGroup")
        assert all(pod["spec"].get("schedulingGroup") == wanted for pod in pods)
        assert await _items(cluster, _WORKLOADS) == await _items(cluster, _GROUPS) == []

    on_cluster(scenario, tmp_path, _with_groups)


def test_without_the_gate_no_job_gets_a_group(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.ask("POST", _JOBS, _job())
        assert all("schedulingGroup" not in pod["spec"] for pod in await _pods(cluster, 2))
        assert await _items(cluster, _GROUPS) == []

    on_cluster(scenario, tmp_path)


def test_a_group_that_somebody_deleted_is_made_again(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.ask("POST", _JOBS, _job(suspend=True))
        await cluster.until(_GROUPS, lambda found: found is not None and len(found["items"]) == 1)
        (group,) = await _items(cluster, _GROUPS)
        await cluster.ask("DELETE", f"{_GROUPS}/{group['metadata']['name']}")
        uid = group["metadata"]["uid"]
        await cluster.until(
            _GROUPS,
            lambda found: found is not None and any(one["metadata"]["uid"] != uid for one in found["items"]),
        )

    on_cluster(scenario, tmp_path, _with_groups)


def test_names_are_those_of_the_job_controller() -> None:
    """As kube-controller-manager v1.36.4 named them for a job of this uid."""
    uid = "ff6b007c-fcc8-4d42-95f0-bf579b7c4ebe"
    job = Job(metadata=ObjectMeta(name="train", namespace="default", uid=uid), spec=JobSpec(parallelism=2))
    workload = workload_for(job)
    assert workload.name == "train-755d57cdc6"
    assert pod_group_for(job, workload, _API).name == "train-755d57cdc6-train-pgt-0-6f79bff4d8"


@pytest.mark.parametrize("length", [100, 130, 200, 253])
def test_long_names_are_cut_to_what_a_name_may_have(length: int) -> None:
    job = Job(metadata=ObjectMeta(name="j" * length, namespace="default", uid="u"), spec=JobSpec(parallelism=2))
    workload = workload_for(job)
    group = pod_group_for(job, workload, _API)
    assert len(workload.name) <= 253
    assert len(group.name) <= 253
    assert group.name.count("-") >= 2


_TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
_CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
_DEVICES: Body = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpus"}}]}}


def test_pods_of_a_group_share_the_claim_that_was_made_for_it(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        entry = {"name": "gpu", "resourceClaimTemplateName": "one-gpu"}
        policy = {"gang": {"minCount": 2}}
        spec = {"schedulingPolicy": policy, "resourceClaims": [entry]}
        await cluster.ask("POST", _GROUPS, {"metadata": {"name": "g"}, "spec": spec})
        for name, own in (("a", entry), ("b", entry), ("c", {**entry, "name": "mine"})):
            pod = {**_POD_SPEC, "schedulingGroup": {"podGroupName": "g"}, "resourceClaims": [own]}
            await cluster.ask("POST", _PODS, {"metadata": {"name": name}, "spec": pod})
        await cluster.ask("POST", _TEMPLATES, {"metadata": {"name": "one-gpu"}, "spec": {"spec": _DEVICES}})

        def statuses(found: Body | None) -> list[Body]:
            return [] if found is None else found["status"].get("resourceClaimStatuses") or []

        for name in ("a", "b", "c"):
            await cluster.until(f"{_PODS}/{name}", statuses)
        (of_group,) = statuses(await cluster.find(f"{_GROUPS}/g"))
        assert statuses(await cluster.find(f"{_PODS}/a")) == statuses(await cluster.find(f"{_PODS}/b")) == [of_group]
        claims = {one["metadata"]["name"]: one["metadata"] for one in await _items(cluster, _CLAIMS)}
        assert len(claims) == 2
        shared = claims[of_group["resourceClaimName"]]
        assert shared["name"].startswith("g-gpu-")
        assert shared["annotations"] == {"resource.kubernetes.io/pod-claim-name": "gpu"}
        assert [(one["kind"], one["name"], one["controller"]) for one in shared["ownerReferences"]] == [
            ("PodGroup", "g", True)
        ]

    on_cluster(scenario, tmp_path, _with_claims)


def test_a_claim_is_left_when_the_group_that_it_is_reserved_for_is_gone(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        spec = {"schedulingPolicy": {"basic": {}}, "resourceClaims": [{"name": "gpu", "resourceClaimName": "shared"}]}
        group = await cluster.ask("POST", _GROUPS, {"metadata": {"name": "g"}, "spec": spec})
        await cluster.ask("POST", _CLAIMS, {"metadata": {"name": "shared"}, "spec": _DEVICES})
        device = {"request": "gpu", "driver": "d.example.com", "pool": "p", "device": "gpu-0"}
        user = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": group["metadata"]["uid"]}
        status = {"allocation": {"devices": {"results": [device]}}, "reservedFor": [user]}
        body = {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}}
        await cluster.ask("PATCH", f"{_CLAIMS}/shared", body)
        await cluster.ask("PATCH", f"{_CLAIMS}/shared/status", {"status": status})
        await cluster.ask("DELETE", f"{_GROUPS}/g")
        await cluster.until(f"{_CLAIMS}/shared", lambda found: found is not None and not found["status"])

    on_cluster(scenario, tmp_path)


# -- as v1.37 has them -------------------------------------------------------------------------------------------------


def test_in_v1_37_every_job_of_nobody_else_gets_a_group_that_is_no_gang(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.ask("POST", _JOBS, _job(completionMode="NonIndexed"))
        pods = await _pods(cluster, 2)
        (workload,) = await _items(cluster, _NEXT_WORKLOADS)
        (group,) = await _items(cluster, _NEXT_GROUPS)
        name = group["metadata"]["name"]
        assert all(pod["spec"]["schedulingGroup"] == {"podGroupName": name} for pod in pods)
        assert group["spec"]["schedulingPolicy"] == {"basic": {}}
        assert group["spec"]["workloadRef"] == {
            "workloadName": workload["metadata"]["name"],
            "templateName": "train-pgt-0",
        }
        owners = [(one["apiVersion"], one["kind"]) for one in group["metadata"]["ownerReferences"]]
        assert owners == [("batch/v1", "Job"), (_NEXT_API, "Workload")]
        job = await cluster.ask("PATCH", f"{_JOBS}/train", {"spec": {"parallelism": 3}})
        assert job["spec"]["parallelism"] == 3

    on_cluster(scenario, tmp_path, _with_groups, is_next=True)


def test_in_v1_37_a_job_that_belongs_to_somebody_gets_no_group(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        owner = {"apiVersion": "example.com/v1", "kind": "Set", "name": "s", "uid": "1", "controller": True}
        job = _job()
        job["metadata"]["ownerReferences"] = [owner]
        await cluster.ask("POST", _JOBS, job)
        pods = await _pods(cluster, 2)
        assert all("schedulingGroup" not in pod["spec"] for pod in pods)
        assert await _items(cluster, _NEXT_GROUPS) == []

    on_cluster(scenario, tmp_path, _with_groups, is_next=True)


def test_in_v1_37_a_deleted_group_waits_for_its_pods_and_its_claims_belong_to_it(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        request = {"name": "r", "exactly": {"deviceClassName": "d"}}
        template = {"metadata": {"name": "t"}, "spec": {"spec": {"devices": {"requests": [request]}}}}
        await cluster.ask("POST", "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates", template)
        claims = [{"name": "gpu", "resourceClaimTemplateName": "t"}]
        spec = {"schedulingPolicy": {"gang": {"minCount": 1}}, "resourceClaims": claims}
        await cluster.ask("POST", _NEXT_GROUPS, {"metadata": {"name": "g"}, "spec": spec})
        await cluster.until(
            f"{_NEXT_GROUPS}/g", lambda found: found is not None and bool(found["status"].get("resourceClaimStatuses"))
        )
        (claim,) = await _items(cluster, "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims")
        assert claim["metadata"]["ownerReferences"][0]["apiVersion"] == _NEXT_API
        member = {**_POD_SPEC, "schedulingGroup": {"podGroupName": "g"}}
        await cluster.ask("POST", _PODS, {"metadata": {"name": "a"}, "spec": member})
        await cluster.ask("DELETE", f"{_NEXT_GROUPS}/g")
        assert await cluster.find(f"{_NEXT_GROUPS}/g") is not None
        await cluster.ask("DELETE", f"{_PODS}/a")
        await cluster.until(f"{_NEXT_GROUPS}/g", lambda found: found is None)

    on_cluster(scenario, tmp_path, _with_claims, is_next=True)
