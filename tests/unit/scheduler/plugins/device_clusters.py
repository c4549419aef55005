"""Clusters with devices, and one pod's way through DynamicResources on them."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from kubesched.framework import CycleState, Handle, PodInfo, Status, Verdicts
from kubesched.framework.verdicts import ACCEPT_ALL
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.resource import ResourceClaim
from kubesched.scheduler.cluster.cluster import Cluster
from kubesched.scheduler.cluster.view import TableView
from kubesched.scheduler.plugins.dynamic_resources import DynamicResources
from kubesched.scheduler.plugins.dynamic_resources.state import DynamicResourcesState
from kubesched.testing import make
from kubesched.testing.make import Manifest
from kubesched.testing.world import QuietHandle

DRIVER = "gpu.example.com"
OF_DRIVER = f'device.driver == "{DRIVER}"'
GPU_CLASS = "gpu"


class DeviceCluster(QuietHandle):
    """Pods in it are pending; `objects` can be put and taken away at any time."""

    def __init__(self, *objects: Manifest, args: object = None) -> None:
        self.cluster = Cluster.from_objects(read(*objects))
        self.plugin = DynamicResources(args, cast(Handle, self))

    @property
    def objects(self) -> object:
        return self.cluster.objects

    @property
    def nodes(self) -> TableView:
        return self.cluster.nodes

    def put(self, *objects: Manifest) -> None:
        for item in read(*objects):
            self.cluster.put(item)

    def pod(self, name: str = "p") -> PodInfo:
        return next(info for info in self.cluster.pending.values() if info.name == name)

    def claim(self, name: str) -> ResourceClaim:
        return self.cluster.objects.resource_claims[f"default/{name}"]

    def attempt(self, name: str = "p") -> Attempt:
        return Attempt(self, self.pod(name))


class Attempt:
    """PreFilter and Filter of one pod."""

    def __init__(self, cluster: DeviceCluster, pod: PodInfo) -> None:
        self.cluster = cluster
        self.pod = pod
        self.cycle = CycleState()
        self.prefilter = cluster.plugin.pre_filter(self.cycle, pod, cluster.nodes).status
        self.verdicts: Verdicts = ACCEPT_ALL
        if self.prefilter.is_success:
            self.verdicts = cluster.plugin.filter(self.cycle, pod, cluster.nodes)

    @property
    def state(self) -> DynamicResourcesState:
        return self.cycle.get(DynamicResourcesState)

    def status(self, node: str) -> Status:
        if self.verdicts is ACCEPT_ALL:
            return self.prefilter
        return self.verdicts.status(list(self.cluster.nodes.names).index(node))

    def rejections(self) -> dict[str, str]:
        """Why nodes are rejected, by name."""
        found = {name: self.status(name) for name in self.cluster.nodes.names}
        return {name: status.message for name, status in found.items() if not status.is_success}

    def fits(self) -> list[str]:
        return sorted(set(self.cluster.nodes.names) - self.rejections().keys())

    def reserve(self, node: str) -> Status:
        return self.cluster.plugin.reserve(self.cycle, self.pod, node)

    def allocation(self, node: str) -> list[list[str]]:
        """`pool/device` of each claim that is reserved on the node, and set free again."""
        status = self.reserve(node)
        assert status.is_success, status
        found = [
            [f"{result.pool}/{result.device}" for result in entry.allocation.devices.results or ()]
            for entry in self.state.claims
            if entry.allocation is not None
        ]
        self.cluster.plugin.unreserve(self.cycle, self.pod, node)
        return found

    def scores(self) -> dict[str, int]:
        fits = np.array([self.status(name).is_success for name in self.cluster.nodes.names])
        part = self.cluster.nodes.take(fits)
        raw = self.cluster.plugin.score(self.cycle, self.pod, part)
        return dict(zip(part.names, raw.tolist(), strict=True))


def read(*objects: Manifest) -> list[KubeObject]:
    return list(manifests.from_dicts(objects).objects)


def read_pod(manifest: Manifest) -> Pod:
    (found,) = read(manifest)
    assert isinstance(found, Pod)
    return found


def read_claim(manifest: Manifest) -> ResourceClaim:
    (found,) = read(manifest)
    assert isinstance(found, ResourceClaim)
    return found


def node(name: str, **fields: Any) -> Manifest:
    return make.node(name, **fields)


def pod(*claims: str, name: str = "p", **fields: Any) -> Manifest:
    """A pod that names these claims."""
    entries = [{"name": f"c{index}", "resourceClaimName": claim} for index, claim in enumerate(claims)]
    spec = {**({"resourceClaims": entries} if entries else {}), **fields.pop("spec", {})}
    return make.pod(name, spec=spec, **fields)


def device_class(name: str = GPU_CLASS, *expressions: str, **spec: Any) -> Manifest:
    """Without an expression, a class of all devices."""
    selectors = [{"cel": {"expression": expression}} for expression in expressions]
    return _object("DeviceClass", name, spec={"selectors": selectors, **spec})


def slice_on(node_name: str, *devices: Manifest | str, name: str = "", pool: str = "", **spec: Any) -> Manifest:
    """A slice for one node, by default a complete pool with the node's name."""
    return slice_of(name or f"slice-{node_name}", pool or node_name, *devices, nodeName=node_name, **spec)


def slice_of(
    name: str,
    pool: str,
    *devices: Manifest | str,
    total: int = 1,
    generation: int = 1,
    driver: str = DRIVER,
    **spec: Any,
) -> Manifest:
    full = [device(entry) if isinstance(entry, str) else entry for entry in devices]
    pool_manifest = {"name": pool, "generation": generation, "resourceSliceCount": total}
    return _object("ResourceSlice", name, spec={"driver": driver, "pool": pool_manifest, "devices": full, **spec})


def device(name: str, *, memory: str | None = None, **fields: Any) -> Manifest:
    """`attributes` may be plain values; `memory` is a capacity."""
    kinds = {str: "string", bool: "bool", int: "int"}
    attributes = {
        key: value if isinstance(value, dict) else {kinds[type(value)]: value}
        for key, value in fields.pop("attributes", {}).items()
    }
    capacity = fields.pop("capacity", {})
    if memory is not None:
        capacity = {"memory": {"value": memory}, **capacity}
    return {"name": name, "attributes": attributes, "capacity": capacity, **fields}


def request(
    name: str = "r", count: int = 1, *expressions: str, device_class: str = GPU_CLASS, **fields: Any
) -> Manifest:
    return {"name": name, "exactly": alternative("", count, *expressions, device_class=device_class, **fields)}


def alternative(name: str, count: int = 1, *expressions: str, device_class: str = GPU_CLASS, **fields: Any) -> Manifest:
    """One of several subrequests."""
    return {
        **({"name": name} if name else {}),
        "deviceClassName": device_class,
        "allocationMode": "ExactCount",
        "count": count,
        "selectors": [{"cel": {"expression": expression}} for expression in expressions],
        **fields,
    }


def every(name: str = "r", *expressions: str, **fields: Any) -> Manifest:
    """A request for all devices."""
    return request(name, 0, *expressions, allocationMode="All", **fields)


def first_of(name: str, *alternatives: Manifest) -> Manifest:
    return {"name": name, "firstAvailable": list(alternatives)}


def claim(name: str, *requests: Manifest, constraints: list[Manifest] | None = None, **fields: Any) -> Manifest:
    spec = {"devices": {"requests": list(requests), "constraints": constraints or []}}
    metadata = {"uid": f"uid-{name}", "namespace": "default", "resourceVersion": "1", **fields.pop("metadata", {})}
    return _object("ResourceClaim", name, metadata, spec=spec, **fields)


def held(
    name: str,
    *devices: str,
    nodes: str | None = None,
    by: tuple[str, ...] = (),
    requests: list[Manifest] | None = None,
    **result: Any,
) -> Manifest:
    """A claim that has these devices (`pool/device`), usable on the node of that name or everywhere."""
    allocation: Manifest = {
        "devices": {
            "results": [
                {"request": "r", "driver": DRIVER, "pool": pool, "device": device_name, **result}
                for pool, _, device_name in (entry.partition("/") for entry in devices)
            ]
        }
    }
    if nodes is not None:
        here = {"key": "metadata.name", "operator": "In", "values": [nodes]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [here]}]}
    consumers = [{"resource": "pods", "name": user, "uid": f"uid-default-{user}"} for user in by]
    return claim(name, *(requests or [request()]), status={"allocation": allocation, "reservedFor": consumers})


def _object(kind: str, name: str, metadata: Manifest | None = None, **fields: Any) -> Manifest:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name, **(metadata or {})},
        **fields,
    }
