"""Claims, volumes and devices on the simulated cluster."""

from __future__ import annotations

from typing import Any

import pytest
from simulated_clusters import pods, records, run, scenario, workload

import kubesched
from kubesched.k8s.model.resource import ResourceClaim
from kubesched.k8s.model.storage import PersistentVolume, PersistentVolumeClaim
from kubesched.testing import make
from kubesched.testing.make import Manifest

NODES = [make.node(name, labels={make.ZONE: zone}) for name, zone in (("a", "north"), ("b", "south"))]


def _class(name: str, mode: str | None = None, provisioner: str = "disk.example.com", **fields: Any) -> Manifest:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, **fields.pop("metadata", {})},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        **fields,
    }


def _claim(name: str = "data", storage_class: str | None = "disk", **spec: Any) -> Manifest:
    fields: Manifest = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    if storage_class is not None:
        fields["storageClassName"] = storage_class
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": fields}


def _volume(name: str, *, zone: str = "", size: str = "1Gi", **spec: Any) -> Manifest:
    fields: Manifest = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "disk",
        "csi": {"driver": "disk.example.com", "volumeHandle": name},
        **spec,
    }
    if zone:
        term = {"matchExpressions": [{"key": make.ZONE, "operator": "In", "values": [zone]}]}
        fields["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": fields}


def _pod(name: str = "p", claim: str = "data", **spec: Any) -> Manifest:
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]
    return make.pod(name, cpu=1, spec={"volumes": volumes, **spec})


WAITS = "WaitForFirstConsumer"


def test_a_volume_is_made_where_the_first_pod_goes_and_holds_later_pods_there() -> None:
    moved = _pod("q")
    steps = scenario({"at": "1m", "delete": [{"kind": "Pod", "name": "p"}]}, {"at": "5m", "apply": [moved]})
    first = _pod(nodeSelector={make.ZONE: "south"})
    cluster = run(*NODES, _class("disk", WAITS), _claim(), first, steps)
    assert [(record.key, record.node) for record in records(cluster)] == [("default/p", "b"), ("default/q", "b")]
    (volume,) = cluster.store.of(PersistentVolume).values()
    assert volume.status.phase == "Bound"
    assert volume.spec.capacity == {"storage": "1Gi"}


def test_a_volume_of_an_immediate_class_is_made_at_once() -> None:
    cluster = run(*NODES, _class("disk"), _claim())
    (claim,) = cluster.store.of(PersistentVolumeClaim).values()
    assert claim.status.phase == "Bound"
    assert claim.spec.volume_name == f"pvc-{claim.metadata.uid}"


def test_the_smallest_suitable_volume_is_taken_by_an_immediate_claim() -> None:
    volumes = [_volume("big", size="9Gi"), _volume("fits", size="2Gi"), _volume("small", size="1Mi")]
    cluster = run(*NODES, _class("disk", provisioner="kubernetes.io/no-provisioner"), _claim(), *volumes)
    assert cluster.store.of(PersistentVolumeClaim)["default/data"].spec.volume_name == "fits"
    assert {v.name: v.status.phase for v in cluster.store.of(PersistentVolume).values()} == {
        "big": "Available",
        "fits": "Bound",
        "small": "Available",
    }


def test_a_pod_goes_where_a_volume_is_that_suits_its_waiting_claim() -> None:
    local = _class("disk", WAITS, provisioner="kubernetes.io/no-provisioner")
    cluster = run(*NODES, local, _claim(), _volume("there", zone="south"), _pod())
    assert [record.node for record in records(cluster)] == ["b"]
    assert cluster.store.of(PersistentVolumeClaim)["default/data"].spec.volume_name == "there"


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        pytest.param([], 'persistentvolumeclaim "data" not found', id="no claim"),
        pytest.param([_claim()], "pod has unbound immediate PersistentVolumeClaims", id="no class, no volume"),
        pytest.param(
            [_class("disk", WAITS, provisioner="kubernetes.io/no-provisioner"), _claim()],
            "didn't find available persistent volumes to bind",
            id="nobody makes volumes",
        ),
    ],
)
def test_a_pod_without_its_volume_waits_and_says_why(extra: list[Manifest], message: str) -> None:
    cluster = run(*NODES, *extra, _pod())
    (record,) = records(cluster)
    assert record.node == ""
    assert message in record.message


def test_a_claim_without_a_class_gets_the_default_one() -> None:
    default = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    cluster = run(*NODES, _claim(storage_class=None), _pod(), _class("disk", WAITS, metadata=default))
    assert [record.node for record in records(cluster)] == ["a"]


def test_a_stateful_set_gets_a_volume_for_each_pod_and_keeps_them() -> None:
    templates = [{"metadata": {"name": "data"}, "spec": _claim()["spec"]}]
    db = workload("StatefulSet", "db", replicas=2, volumeClaimTemplates=templates)
    fewer = {**db, "spec": {**db["spec"], "replicas": 1}}
    cluster = run(*NODES, _class("disk", WAITS), db, scenario({"at": "1h", "apply": [fewer]}))
    assert [pod.name for pod in pods(cluster)] == ["db-0"]
    assert sorted(cluster.store.of(PersistentVolumeClaim)) == ["default/data-db-0", "default/data-db-1"]


def test_an_ephemeral_volume_comes_and_goes_with_its_pod() -> None:
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": _claim()["spec"]}}}]
    pod = make.pod("p", cpu=1, spec={"volumes": volumes})
    cluster = run(*NODES, _class("disk", WAITS), pod)
    assert list(cluster.store.of(PersistentVolumeClaim)) == ["default/p-scratch"]
    ended = scenario({"at": "1m", "delete": [{"kind": "Pod", "name": "p"}]})
    cluster = run(*NODES, _class("disk", WAITS), pod, ended)
    assert cluster.store.of(PersistentVolumeClaim) == {}
    assert cluster.store.of(PersistentVolume) == {}


def test_a_volume_made_by_hand_is_released_and_not_used_again() -> None:
    steps = scenario(
        {"at": "1m", "delete": [{"kind": "PersistentVolumeClaim", "name": "data"}]},
        {"at": "2m", "apply": [_claim("next")]},
    )
    cluster = run(*NODES, _volume("v"), _claim(), steps)
    assert cluster.store.of(PersistentVolume)["v"].status.phase == "Released"
    assert cluster.store.of(PersistentVolumeClaim)["default/next"].spec.volume_name == ""


# -- devices -----------------------------------------------------------------------------------------------------------


def _devices() -> list[Manifest]:
    version = "resource.k8s.io/v1"
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}]
    device_class = {"apiVersion": version, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}}
    template = {
        "apiVersion": version,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one-gpu"},
        "spec": {"spec": {"devices": {"requests": requests}}},
    }
    slice_ = {
        "apiVersion": version,
        "kind": "ResourceSlice",
        "metadata": {"name": "b-gpus"},
        "spec": {
            "driver": "gpu.example.com",
            "nodeName": "b",
            "pool": {"name": "b", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0"}],
        },
    }
    return [device_class, template, slice_]


def test_a_device_is_given_to_one_pod_after_the_other() -> None:
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
    job = workload("Job", "train", completions=2, parallelism=2, pod={"duration": "10m", "resourceClaims": claims})
    cluster = run(*NODES, *_devices(), job)
    assert [(record.node, record.scheduled_s) for record in records(cluster)] == [("b", 0.0), ("b", 600.0)]
    assert all(claim.status.allocation is None for claim in cluster.store.of(ResourceClaim).values())


_GROUP_GATES = {"GenericWorkload": True, "GangScheduling": True}


@pytest.mark.parametrize(("has_claims", "n_running"), [(True, 3), (False, 0)])
def test_the_pods_of_a_group_share_its_device(has_claims: bool, n_running: int) -> None:
    """Without the gate each pod has a claim of its own, and there is one device for three."""
    devices = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpus"}}]}}
    amounts = {"cpu": "8", "memory": "4Gi", "pods": "10"}
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 1}
    kept = {"nodeName": "a", "driver": "d.example.com", "pool": pool, "devices": [{"name": "gpu-0"}]}
    policy = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}, "claims": [{"name": "gpu"}]}}
    spec = {"containers": [container], "schedulingGroup": {"podGroupName": "g"}, "resourceClaims": claims}
    named = {"namespace": "default"}
    objects = [
        {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "a"}, "status": {"allocatable": amounts}},
        {"kind": "DeviceClass", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "gpus"}, "spec": {}},
        {"kind": "ResourceSlice", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": "s"}, "spec": kept},
        {
            "kind": "ResourceClaimTemplate",
            "apiVersion": "resource.k8s.io/v1",
            "metadata": {"name": "one", **named},
            "spec": {"spec": devices},
        },
        {
            "kind": "PodGroup",
            "apiVersion": "scheduling.k8s.io/v1alpha2",
            "metadata": {"name": "g", **named},
            "spec": {**policy, "resourceClaims": claims},
        },
        *({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": f"p-{i}", **named}, "spec": spec} for i in range(3)),
    ]
    gates = {**_GROUP_GATES, "DRAWorkloadResourceClaims": has_claims}
    report = kubesched.simulate(objects, feature_gates=gates)
    assert sum(bool(row.node) for row in report.pods.named()) == n_running
