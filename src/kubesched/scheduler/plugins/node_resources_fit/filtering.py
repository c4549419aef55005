"""Which nodes have enough free of everything a pod asks for.

An extended resource that a device class stands behind is left to DynamicResources wherever the node itself reports
none of it.

The queueing hints of the package ask the same of a single empty node.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from kubesched.framework import OK, NodeInfo, NodeTable, Status, Verdicts
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, is_extended
from kubesched.k8s.model.resource import DeviceClass, device_class_of

TOO_MANY_PODS = "Too many pods"

_BUILT_IN = (CPU, MEMORY, EPHEMERAL_STORAGE)


@dataclass(frozen=True, slots=True)
class ResourceDemand:
    """So much of one resource. `has_devices`: devices can stand for it where a node has none."""

    resource: str
    amount: int
    has_devices: bool = False
    reason: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", f"Insufficient {self.resource}")


@dataclass(frozen=True, slots=True)
class IgnoredResources:
    """Extended resources that are not checked (`ignoredResources`, `ignoredResourceGroups`): by name, or by domain."""

    names: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    def __contains__(self, resource: str) -> bool:
        if not (self.names or self.groups) or not is_extended(resource):
            return False
        return resource in self.names or resource.partition("/")[0] in self.groups


NOTHING_IGNORED = IgnoredResources()


@dataclass(frozen=True, slots=True)
class PodDemands:
    """All that a pod asks for, and the questions to put to nodes about it."""

    demands: tuple[ResourceDemand, ...]

    def verdicts(self, nodes: NodeTable) -> Verdicts:
        return Verdicts.combine(self._findings(nodes))

    def status(self, node: NodeInfo) -> Status:
        """The same of one node."""
        reasons: list[str] = []
        unresolvable = False
        if node.pod_count >= node.allowed_pods:
            reasons.append(TOO_MANY_PODS)
        for demand in self.demands:
            resource, amount = demand.resource, demand.amount
            allocatable = node.allocatable(resource)
            if allocatable - node.requested(resource) < amount and not (demand.has_devices and allocatable <= 0):
                reasons.append(demand.reason)
                unresolvable = unresolvable or allocatable < amount
        if not reasons:
            return OK
        return Status.unresolvable(*reasons) if unresolvable else Status.unschedulable(*reasons)

    def fits_empty_node(self, allocatable: Mapping[str, int]) -> bool:
        """Whether a node with these amounts (the number of pods among them) and no pod would do."""
        if allocatable.get(PODS, 0) < 1:
            return False
        for demand in self.demands:
            capacity = allocatable.get(demand.resource, 0)
            if demand.amount > capacity and not (demand.has_devices and capacity <= 0):
                return False
        return True

    def _findings(self, nodes: NodeTable) -> Iterator[tuple[str, BoolArray, bool | BoolArray]]:
        yield TOO_MANY_PODS, nodes.pod_counts >= nodes.allowed_pods, False
        for demand in self.demands:
            allocatable = nodes.allocatable(demand.resource)
            lacking = np.less(allocatable - nodes.requested(demand.resource), demand.amount)
            if demand.has_devices:
                lacking &= allocatable > 0
            if np.count_nonzero(lacking):
                yield demand.reason, lacking, np.less(allocatable, demand.amount)


def demands_of(
    wanted: Mapping[str, int], classes: Mapping[str, DeviceClass], ignored: IgnoredResources = NOTHING_IGNORED
) -> PodDemands:
    demands = [ResourceDemand(name, amount) for name in _BUILT_IN if (amount := wanted.get(name, 0)) > 0]
    for name, amount in wanted.items():
        if amount > 0 and name not in _BUILT_IN and name not in ignored:
            demands.append(ResourceDemand(name, amount, device_class_of(name, classes) is not None))
    return PodDemands(tuple(demands))
