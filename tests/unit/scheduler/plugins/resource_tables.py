"""Clusters, and handles to them, for the plugins that look at resources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from kubesched.framework import CycleState, Handle, PodInfo, Status, Verdicts
from kubesched.framework.verdicts import ACCEPT_ALL
from kubesched.k8s.model import manifests
from kubesched.k8s.model.core import Node, Pod
from kubesched.scheduler.cluster.cluster import Cluster
from kubesched.scheduler.cluster.view import TableView
from kubesched.testing import make
from kubesched.testing.make import Manifest

GPU = "example.com/gpu"


class ResourceTable:
    """A cluster, the pod to place, and the handle that plugins get."""

    def __init__(self, pod: Manifest, *objects: Manifest) -> None:
        found = manifests.from_dicts([pod, *objects]).objects
        self.cluster = Cluster.from_objects(found[1:])
        assert isinstance(found[0], Pod)
        self.pod = self.info(found[0])
        self.cycle = CycleState()

    @property
    def objects(self) -> object:
        return self.cluster.objects

    @property
    def nodes(self) -> TableView:
        return self.cluster.nodes

    @property
    def handle(self) -> Handle:
        return cast(Handle, self)

    def info(self, pod: Pod) -> PodInfo:
        return self.cluster.signatures.info(pod)

    def statuses(self, verdicts: Verdicts) -> dict[str, Status]:
        """By node, of those that are rejected."""
        if verdicts is ACCEPT_ALL:
            return {}
        found = {name: verdicts.status(position) for position, name in enumerate(self.nodes.names)}
        return {name: status for name, status in found.items() if not status.is_success}

    def by_node(self, scores: Sequence[int]) -> dict[str, int]:
        return {name: int(score) for name, score in zip(self.nodes.names, scores, strict=True)}


def as_pod(manifest: Manifest) -> Pod:
    (found,) = manifests.from_dicts([manifest]).objects
    assert isinstance(found, Pod)
    return found


def as_node(manifest: Manifest) -> Node:
    (found,) = manifests.from_dicts([manifest]).objects
    assert isinstance(found, Node)
    return found


def device_class(name: str, *, resource: str | None = None, expression: str | None = None) -> Manifest:
    selectors = None if expression is None else [{"cel": {"expression": expression}}]
    return _resource("DeviceClass", name, {"extendedResourceName": resource, "selectors": selectors})


def resource_slice(name: str, *devices: Manifest | str, **spec: Any) -> Manifest:
    """Of the driver `gpu.example.com`, in a pool named like the slice."""
    full = [{"name": device} if isinstance(device, str) else device for device in devices]
    return _resource(
        "ResourceSlice", name, {"driver": "gpu.example.com", "pool": {"name": name}, "devices": full, **spec}
    )


def claim_on(pool: str, *devices: str, **result: Any) -> Manifest:
    """A claim that holds these devices."""
    results = [{"driver": "gpu.example.com", "pool": pool, "device": device, **result} for device in devices]
    manifest = _resource("ResourceClaim", f"on-{pool}-{'-'.join(devices)}", {})
    manifest["metadata"]["namespace"] = "default"
    return {**manifest, "status": {"allocation": {"devices": {"results": results}}}}


def _resource(kind: str, name: str, spec: Manifest) -> Manifest:
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def filled(
    name: str, *, cpu: str = "4", memory: str = "4Gi", used_cpu: str = "0", used_memory: str = "0"
) -> list[Manifest]:
    """A node, and a pod on it that uses so much of it."""
    return [
        make.node(name, cpu=cpu, memory=memory),
        make.pod(f"on-{name}", on=name, cpu=used_cpu, memory=used_memory),
    ]
