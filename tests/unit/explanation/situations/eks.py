"""Clusters as EKS makes them: node groups with AWS names, instance types, zones, labels and taints, and pods on them.

    cluster = EksCluster(seed=7)
    cluster.group("general", "m5.2xlarge", 12)
    gpus = cluster.group("gpu", "p3.8xlarge", 4, taints=[make.taint("nvidia.com/gpu", "true")])
    cluster.fill(gpus, requests={"nvidia.com/gpu": 3})
    cluster.objects

The same seed gives the same cluster.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kubesched.testing import make
from kubesched.testing.make import Manifest

REGION = "eu-west-1"
ZONES = ("eu-west-1a", "eu-west-1b", "eu-west-1c")
EBS = "ebs.csi.aws.com"
GPU = "nvidia.com/gpu"

INSTANCE_TYPES: dict[str, tuple[str, int, int, int, int]] = {
    # architecture, milli-cpus, MiB of memory and pods that are allocatable, gpus
    "t3.medium": ("amd64", 1930, 3370, 17, 0),
    "m5.large": ("amd64", 1930, 7090, 29, 0),
    "m5.2xlarge": ("amd64", 7910, 30300, 58, 0),
    "m5.4xlarge": ("amd64", 15890, 60200, 234, 0),
    "m5.24xlarge": ("amd64", 95690, 378300, 737, 0),
    "r5.2xlarge": ("amd64", 7910, 62200, 58, 0),
    "c6g.xlarge": ("arm64", 3920, 6800, 58, 0),
    "m6g.2xlarge": ("arm64", 7910, 30300, 58, 0),
    "p3.8xlarge": ("amd64", 31850, 237000, 234, 4),
    "g5.2xlarge": ("amd64", 7910, 30300, 58, 1),
    "p4d.24xlarge": ("amd64", 95690, 1120000, 737, 8),
}


class EksCluster:
    """Collects manifests. Nodes and pods are made in the order in which they are asked for."""

    def __init__(self, seed: int = 0) -> None:
        self.objects: list[Manifest] = [
            *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in ("default", "shop")),
            storage_class("gp3"),
            storage_class("gp2", mode="Immediate"),
            *(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": name},
                    "value": value,
                }
                for name, value in (("system-node-critical", 2000001000), ("system-cluster-critical", 2000000000))
            ),
        ]
        self._random = random.Random(seed)
        self._taken: set[str] = set()
        self._number = 0

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def group(
        self,
        name: str,
        instance_type: str,
        n: int,
        *,
        zones: Sequence[str] = ZONES,
        labels: Mapping[str, str] | None = None,
        taints: Sequence[Manifest] = (),
        allocatable: Mapping[str, str | int] | None = None,
        karpenter: bool = False,
        **spec: Any,
    ) -> list[str]:
        """Nodes of a node group (or a karpenter node pool), in its zones by turns; returns their names."""
        names = []
        for number in range(n):
            zone = zones[number % len(zones)]
            node = self._node(name, instance_type, zone, {**(labels or {})}, taints, allocatable, karpenter)
            node["spec"].update(spec)
            self.objects.append(node)
            names.append(node["metadata"]["name"])
        return names

    def _node(
        self,
        group: str,
        instance_type: str,
        zone: str,
        labels: dict[str, str],
        taints: Sequence[Manifest],
        allocatable: Mapping[str, str | int] | None,
        karpenter: bool,
    ) -> Manifest:
        architecture, cpu, memory, pods, gpus = INSTANCE_TYPES[instance_type]
        name = self._node_name()
        pool = (
            {"karpenter.sh/nodepool": group, "karpenter.sh/capacity-type": "spot"}
            if karpenter
            else {"eks.amazonaws.com/nodegroup": group, "eks.amazonaws.com/capacityType": "ON_DEMAND"}
        )
        amounts: dict[str, str | int] = {"ephemeral-storage": "95Gi", "hugepages-1Gi": 0, "hugepages-2Mi": 0}
        if gpus:
            amounts[GPU] = gpus
        node = make.node(
            name,
            cpu=f"{cpu}m",
            memory=f"{memory}Mi",
            pods=pods,
            labels={
                "kubernetes.io/arch": architecture,
                "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": instance_type,
                "topology.kubernetes.io/region": REGION,
                "topology.kubernetes.io/zone": zone,
                "topology.ebs.csi.aws.com/zone": zone,
                **pool,
                **labels,
            },
            taints=taints,
            allocatable={**amounts, **(allocatable or {})},
        )
        node["metadata"]["uid"] = f"uid-{name}"
        node["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        return node

    def _node_name(self) -> str:
        while True:
            a, b = self._random.randrange(256), self._random.randrange(4, 255)
            name = f"ip-10-0-{a}-{b}.{REGION}.compute.internal"
            if name not in self._taken:
                self._taken.add(name)
                return name

    def node(self, name: str) -> Manifest:
        return next(o for o in self.objects if o["kind"] == "Node" and o["metadata"]["name"] == name)

    def cordon(self, names: Iterable[str]) -> None:
        for name in names:
            spec = self.node(name)["spec"]
            spec["unschedulable"] = True
            spec.setdefault("taints", []).append(make.taint("node.kubernetes.io/unschedulable"))

    def taint(self, names: Iterable[str], key: str, value: str = "", effect: str = "NoSchedule") -> None:
        for name in names:
            self.node(name)["spec"].setdefault("taints", []).append(make.taint(key, value, effect))

    def not_ready(self, names: Iterable[str]) -> None:
        """As the node controller marks nodes whose kubelet has fallen silent."""
        for name in names:
            self.taint([name], "node.kubernetes.io/unreachable")
            self.taint([name], "node.kubernetes.io/unreachable", effect="NoExecute")
            self.node(name)["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]

    # -- pods ----------------------------------------------------------------------------------------------------------

    def run(self, node: str, name: str = "", **how: Any) -> str:
        """A running pod of a Deployment; returns its name."""
        self._number += 1
        name = name or f"app-{self._random.getrandbits(36):09x}-{self._number:05d}"
        how.setdefault("namespace", "shop")
        owner = how.pop("owner", ("ReplicaSet", name.rpartition("-")[0]))
        reference = {"apiVersion": "apps/v1", "kind": owner[0], "name": owner[1], "uid": f"uid-{owner[1]}"}
        metadata = {"ownerReferences": [{**reference, "controller": True}]}
        self.objects.append(make.pod(name, on=node, metadata=metadata, **how))
        return name

    def fill(self, names: Iterable[str], *, pods: int = 1, **how: Any) -> None:
        for name in names:
            for _ in range(pods):
                self.run(name, **how)

    def pending(self, name: str, **how: Any) -> str:
        how.setdefault("namespace", "shop")
        self.objects.append(make.pod(name, **how))
        return f"{how['namespace']}/{name}"

    def add(self, *objects: Manifest) -> None:
        self.objects.extend(objects)


def background(seed: int, n: int, *, busy: float = 0.7) -> tuple[EksCluster, list[str]]:
    """A cluster of this many general nodes, each used to about this share of its cpu and memory."""
    cluster = EksCluster(seed)
    names = cluster.group("general", "m5.2xlarge", n)
    for name in names:
        for _ in range(4):
            cluster.run(name, cpu=f"{int(7910 * busy / 4)}m", memory=f"{int(30300 * busy / 4)}Mi")
    return cluster, names


# -- storage and devices -----------------------------------------------------------------------------------------------


def storage_class(
    name: str, *, mode: str = "WaitForFirstConsumer", zones: Sequence[str] = (), **fields: Any
) -> Manifest:
    topologies = [{"matchLabelExpressions": [{"key": "topology.ebs.csi.aws.com/zone", "values": list(zones)}]}]
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": EBS,
        "volumeBindingMode": mode,
        **({"allowedTopologies": topologies} if zones else {}),
        **fields,
    }


def claim(
    name: str, storage_class: str | None, *, volume: str = "", namespace: str = "shop", **fields: Any
) -> Manifest:
    spec: Manifest = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}, **fields}
    if storage_class is not None:
        spec["storageClassName"] = storage_class
    if volume:
        spec["volumeName"] = volume
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}", "annotations": annotations},
        "spec": spec,
        "status": {"phase": "Bound" if volume else "Pending"},
    }


def volume(name: str, zone: str, *, claim: str = "", driver: str = EBS, storage_class: str = "gp3") -> Manifest:
    term = {"key": "topology.ebs.csi.aws.com/zone", "operator": "In", "values": [zone]}
    ref = {"claimRef": {"kind": "PersistentVolumeClaim", "namespace": "shop", "name": claim, "uid": f"uid-{claim}"}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "20Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "csi": {"driver": driver, "volumeHandle": f"vol-{name}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
            **(ref if claim else {}),
        },
        "status": {"phase": "Bound" if claim else "Available"},
    }


def bound(name: str, zone: str) -> list[Manifest]:
    """A claim and its volume, in a zone."""
    return [claim(name, "gp3", volume=f"pvc-{name}"), volume(f"pvc-{name}", zone, claim=name)]


def mounts(*claims: str) -> Manifest:
    """The part of a pod's spec that uses claims."""
    return {"volumes": [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": c}} for i, c in enumerate(claims)]}


def csi_node(node: str, limit: int, driver: str = EBS) -> Manifest:
    drivers = [
        {
            "name": driver,
            "nodeID": node,
            "topologyKeys": ["topology.ebs.csi.aws.com/zone"],
            "allocatable": {"count": limit},
        }
    ]
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": node},
        "spec": {"drivers": drivers},
    }


def device_class(name: str, driver: str = "gpu.nvidia.com") -> Manifest:
    selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [selector]},
    }


def slice_of(
    node: str, n: int, *, model: str = "a100", memory: str = "40Gi", driver: str = "gpu.nvidia.com"
) -> Manifest:
    devices = [
        {
            "name": f"gpu-{i}",
            "attributes": {"model": {"string": model}, "index": {"int": i}},
            "capacity": {"memory": {"value": memory}},
        }
        for i in range(n)
    ]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{driver}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def device_claim(
    name: str,
    device_class: str,
    *,
    count: int = 1,
    selector: str = "",
    allocated: tuple[str, Sequence[str]] | None = None,
    driver: str = "gpu.nvidia.com",
) -> Manifest:
    """`allocated` is a node (whose pool has its name) and its devices."""
    exactly: Manifest = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count}
    if selector:
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    found: Manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
    }
    if allocated is not None:
        node, devices = allocated
        term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
        results = [{"request": "gpu", "driver": driver, "pool": node, "device": device} for device in devices]
        found["status"] = {
            "allocation": {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [term]}},
            "reservedFor": [{"resource": "pods", "name": f"user-of-{name}", "uid": f"uid-user-of-{name}"}],
        }
    return found


def with_device_claim(name: str) -> Manifest:
    """The part of a pod's spec that uses a device claim."""
    return {"resourceClaims": [{"name": "gpu", "resourceClaimName": name}]}


def required_node_affinity(key: str, operator: str, *values: str) -> Manifest:
    expression: Manifest = {"key": key, "operator": operator}
    if values:
        expression["values"] = list(values)
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


def anti_affinity(labels: Mapping[str, str], key: str = make.HOSTNAME) -> Manifest:
    terms = [make.affinity_term(key, labels)]
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
