"""What a pod would make of nodes' resources: what there is, what is taken, what would be taken with it.

`ResourceUses` reads it as columns, for the whole table, or as plain numbers, for a single node.

Next: `devices`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kubesched.framework import Handle, NodeTable
from kubesched.framework.nodes import IntArray, NodeInfo
from kubesched.k8s.model.extended_resources import device_class_of
from kubesched.k8s.model.requests import CPU, EPHEMERAL_STORAGE, MEMORY, is_scalar
from kubesched.scheduler.config.plugin_args import ResourceSpec
from kubesched.scheduler.plugins.resource_allocation.devices import DeviceCounts

_ALWAYS_COUNTED = (CPU, MEMORY, EPHEMERAL_STORAGE)

_LARGE = 2**55
"""From here on a hundred times an amount may not fit in 64 bits."""

NodeUse = tuple[int, int, int, int]
"""(weight, allocatable, allocated, requested) of one resource on one node; as in `ResourceUse`."""


class ScoredResource(NamedTuple):
    """A resource that counts for a pod, and how much the pod asks for."""

    name: str
    weight: int
    asked: int


def scored_resources(resources: Iterable[ResourceSpec], requests: Mapping[str, int]) -> tuple[ScoredResource, ...]:
    """Scalar resources that the pod does not ask for are left out: a node is no better for having what nobody wants."""
    found = []
    for spec in resources:
        asked = requests.get(spec.name, 0)
        if spec.name in _ALWAYS_COUNTED or (asked and is_scalar(spec.name)):
            found.append(ScoredResource(spec.name, spec.weight, asked))
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class ResourceUse:
    """One resource as columns of shape (n_nodes,). A node with an allocatable of 0 does not have it."""

    weight: int
    allocatable: IntArray
    allocated: IntArray
    requested: IntArray
    """Allocated, with what the pod asks for on top."""
    is_plain: bool = False
    """Whether all nodes are known to have some of the resource, and not so much that arithmetic could overflow."""


class ResourceUses:
    """Reads amounts, and counts devices where these stand for a resource. With `nonzero`, pods on nodes count with
    defaults for cpu and memory."""

    def __init__(self, handle: Handle, *, nonzero: bool) -> None:
        self._handle = handle
        self._nonzero = nonzero
        self._device_counts = DeviceCounts()

    def of(self, resources: Iterable[ScoredResource], nodes: NodeTable) -> list[ResourceUse]:
        uses = []
        for resource in resources:
            is_plain = False
            if resource.name in _ALWAYS_COUNTED:
                allocatable, allocated = nodes.allocatable(resource.name), self._allocated(resource.name, nodes)
                is_plain = nodes.is_plain(resource.name)
            else:
                allocatable, allocated = self._scalar_columns(resource.name, nodes)
            uses.append(ResourceUse(resource.weight, allocatable, allocated, allocated + resource.asked, is_plain))
        return uses

    def on_node(self, resources: Sequence[ScoredResource], node: NodeInfo) -> list[NodeUse] | None:
        """The resources that the node has; None where only columns tell: devices have to be counted, or amounts are
        such that arithmetic on 64 bits may come out differently."""
        uses: list[NodeUse] = []
        nonzero = self._nonzero
        for name, weight, asked in resources:
            allocatable = node.allocatable(name)
            if allocatable == 0:
                if name not in _ALWAYS_COUNTED and self._has_devices(name):
                    return None
                continue
            if nonzero and name == CPU:
                allocated = node.nonzero_cpu_milli
            elif nonzero and name == MEMORY:
                allocated = node.nonzero_memory_bytes
            else:
                allocated = node.requested(name)
            requested = allocated + asked
            if not (0 < allocatable < _LARGE and 0 <= allocated <= requested < _LARGE):
                return None
            uses.append((weight, allocatable, allocated, requested))
        return uses

    def _has_devices(self, resource: str) -> bool:
        return device_class_of(resource, self._handle.objects.device_classes) is not None

    def _scalar_columns(self, resource: str, nodes: NodeTable) -> tuple[IntArray, IntArray]:
        """A node that reports none of the resource may have devices that stand for it."""
        allocatable, allocated = nodes.allocatable(resource), nodes.requested(resource)
        objects = self._handle.objects
        device_class = device_class_of(resource, objects.device_classes)
        if device_class is None or allocatable.all():
            return allocatable, allocated
        capacity, taken = self._device_counts.of(device_class, nodes, objects)
        by_devices = np.equal(allocatable, 0) & np.greater(capacity, 0)
        return np.where(by_devices, capacity, allocatable), np.where(by_devices, taken, allocated)

    def _allocated(self, resource: str, nodes: NodeTable) -> IntArray:
        if self._nonzero and resource == CPU:
            return nodes.nonzero_cpu_milli
        if self._nonzero and resource == MEMORY:
            return nodes.nonzero_memory_bytes
        return nodes.requested(resource)
