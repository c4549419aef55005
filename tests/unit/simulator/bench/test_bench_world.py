"""The world around the loop: evictions, volumes, devices."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from bench_files import MEASURED, placements, run_of

from kubesched.simulator.bench.run import BenchRun

NODES = {"opcode": "createNodes", "count": 2, "nodeTemplatePath": "node.yaml"}
HIGH = """
apiVersion: v1
kind: Pod
metadata: {generateName: high-}
spec: {priority: 5, containers: [{name: a, resources: {requests: {cpu: 1900m}}}]}
"""


def _preempt(folder: Path, **case: object) -> BenchRun:
    fill = {"opcode": "createPods", "count": 8, "podTemplatePath": "pod.yaml", "namespace": "low"}
    return run_of(folder, [NODES, fill, {**MEASURED, "podTemplatePath": "high.yaml"}], {"high.yaml": HIGH}, **case)


def test_victims_are_gone_at_once_unless_they_take_a_while(tmp_path: Path) -> None:
    at_once, later = _preempt(tmp_path), _preempt(tmp_path, evictionMilliseconds=1500)
    for run in (at_once, later):
        assert Counter(pod.namespace for pod in run.world.pods.values()) == {"low": 4, "namespace-2": 1}
        assert all(placements(run).values())
    assert later.world.now_s - at_once.world.now_s >= 1.5


CLASS = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: late}
provisioner: csi.example.com
volumeBindingMode: WaitForFirstConsumer
"""
CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
spec: {accessModes: [ReadWriteOnce], storageClassName: late, resources: {requests: {storage: 1Gi}}}
"""
VOLUME = """
apiVersion: v1
kind: PersistentVolume
spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, csi: {driver: csi.example.com}}
"""
FREE_VOLUME = VOLUME.replace("spec: {", "metadata: {name: free}\nspec: {storageClassName: late, ")


def _with_volumes(folder: Path, *, bound: bool, free: bool = False) -> BenchRun:
    templates = {"class.yaml": CLASS, "claim.yaml": CLAIM, "volume.yaml": VOLUME, "free.yaml": FREE_VOLUME}
    pods = {**MEASURED, "count": 2, "namespace": "shop", "persistentVolumeClaimTemplatePath": "claim.yaml"}
    if bound:
        pods["persistentVolumeTemplatePath"] = "volume.yaml"
    operations = [NODES, {"opcode": "createAny", "templatePath": "class.yaml"}, pods]
    if free:
        operations.insert(1, {"opcode": "createAny", "templatePath": "free.yaml"})
    return run_of(folder, operations, templates)


def test_claims_with_a_volume_are_bound_from_the_beginning(tmp_path: Path) -> None:
    run = _with_volumes(tmp_path, bound=True)
    objects = run.world.loop.cluster.objects
    assert {claim.spec.volume_name for claim in objects.persistent_volume_claims.values()} == {
        "shop-vol-0",
        "shop-vol-1",
    }
    assert all(placements(run).values())


def test_volumes_are_made_for_claims_once_a_node_is_chosen(tmp_path: Path) -> None:
    run = _with_volumes(tmp_path, bound=False)
    objects = run.world.loop.cluster.objects
    assert len(objects.persistent_volumes) == 2
    for claim in objects.persistent_volume_claims.values():
        assert claim.status.phase == "Bound"
        assert (claim.metadata.annotations or {})["volume.kubernetes.io/selected-node"] in ("node-0", "node-1")
    assert all(placements(run).values())


def test_a_free_volume_is_bound_before_one_is_made(tmp_path: Path) -> None:
    objects = _with_volumes(tmp_path, bound=False, free=True).world.loop.cluster.objects
    free = objects.persistent_volumes["free"]
    assert free.spec.claim_ref is not None
    claim = objects.persistent_volume_claims[f"shop/{free.spec.claim_ref.name}"]
    assert claim.spec.volume_name == "free"
    assert len(objects.persistent_volumes) == 2


# -- devices -----------------------------------------------------------------------------------------------------------

DEVICE_CLASS = "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}, spec: {}}"
REQUEST = "{devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}"
CLAIM_TEMPLATE = f"""
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: one}}
spec: {{spec: {REQUEST}}}
"""
DEVICE_CLAIM = f"""
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: 'c-{{{{ .Index }}}}'}}
spec: {REQUEST}
"""
DEVICE_POD = """
apiVersion: v1
kind: Pod
metadata: {generateName: gpu-}
spec:
  resourceClaims: [{name: r, resourceClaimTemplateName: one}]
  containers: [{name: a, resources: {claims: [{name: r}]}}]
"""
DEVICE_TEMPLATES = {
    "class.yaml": DEVICE_CLASS,
    "template.yaml": CLAIM_TEMPLATE,
    "claim.yaml": DEVICE_CLAIM,
    "gpu.yaml": DEVICE_POD,
}
DEVICES = [
    NODES,
    {"opcode": "createResourceDriver", "driverName": "gpu.example.com", "nodes": "node-*", "maxClaimsPerNode": 2},
    {"opcode": "createAny", "templatePath": "class.yaml"},
    {"opcode": "createAny", "templatePath": "template.yaml", "namespace": "shop"},
]
DEVICE_PODS = {**MEASURED, "namespace": "shop", "podTemplatePath": "gpu.yaml"}


def test_a_claim_is_made_for_each_pod_from_its_template(tmp_path: Path) -> None:
    run = run_of(tmp_path, [*DEVICES, {**DEVICE_PODS, "count": 4}], DEVICE_TEMPLATES)
    claims = run.world.loop.cluster.objects.resource_claims
    assert Counter(placements(run).values()) == {"node-0": 2, "node-1": 2}
    assert len(claims) == 4
    assert all(claim.status.allocation and claim.status.reserved_for for claim in claims.values())


def test_devices_are_free_again_when_their_pods_are_gone(tmp_path: Path) -> None:
    steady = {**DEVICE_PODS, "count": 4, "steadyState": True, "duration": "100ms"}
    run = run_of(tmp_path, [*DEVICES, steady], DEVICE_TEMPLATES)
    assert run.measurement.n_scheduled == 25
    assert len(run.world.loop.cluster.objects.resource_claims) == len(run.world.pods) == 4


def test_claims_can_be_allocated_without_pods(tmp_path: Path) -> None:
    operations = [
        *DEVICES,
        {"opcode": "createAny", "templatePath": "claim.yaml", "namespace": "init", "count": 3},
        {"opcode": "allocResourceClaims", "namespace": "init"},
        DEVICE_PODS,
    ]
    run = run_of(tmp_path, operations, DEVICE_TEMPLATES)
    claims = run.world.loop.cluster.objects.resource_claims
    init = [claim for claim in claims.values() if claim.namespace == "init"]
    assert len(init) == 3
    assert all(claim.status.allocation and not claim.status.reserved_for for claim in init)
    assert list(run.world.pods) == ["shop/gpu-0"]
