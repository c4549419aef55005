"""Extended resources that a device class stands behind: a pod asks for `example.com/gpu: 2` and gets two devices.

The scheduler makes one special claim for all of a pod's extended resources. What it asks for depends on the node: a
resource that the node offers by itself (a device plugin) is NodeResourcesFit's business.

Next: `extended_requests` for what the special claim asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from kubesched.framework.nodes import IntArray, NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.extended_resources import device_class_of
from kubesched.k8s.model.meta import ObjectMeta, OwnerReference
from kubesched.k8s.model.requests import is_extended
from kubesched.k8s.model.resource import (
    DEVICE_CLASS_RESOURCE_PREFIX,
    EXTENDED_RESOURCE_CLAIM_ANNOTATION,
    DeviceClaim,
    DeviceClass,
    ResourceClaim,
    ResourceClaimSpec,
)
from kubesched.scheduler.plugins.dynamic_resources.extended_requests import ExtendedRequests, requests_for

SPECIAL_CLAIM_NAME = "<extended-resources>"
"""The special claim is called so until it exists. No real claim can have this name."""


def is_class_backed_name(resource: str) -> bool:
    """Whether a device class may stand behind this resource."""
    return is_extended(resource) or resource.startswith(DEVICE_CLASS_RESOURCE_PREFIX)


@dataclass(eq=False)
class ExtendedDemand:
    """What a pod asks for by extended resources, some of it backed by device classes."""

    pod: Pod
    claim: ResourceClaim
    """The special claim: new, or left over from an earlier attempt."""
    resources: tuple[str, ...]
    classes: Mapping[str, DeviceClass]
    """By those of the resources that have one."""
    _by_kind: dict[tuple[str, ...], ExtendedRequests] = field(default_factory=dict)

    @property
    def is_left_over(self) -> bool:
        return bool(self.claim.spec.devices.requests)

    def unfit(self, nodes: NodeTable) -> BoolArray:
        """(n_nodes,) nodes that know nothing of a resource that no class stands behind."""
        unfit = np.zeros(len(nodes), dtype=np.bool_)
        for resource in self.resources:
            if resource in self.classes:
                continue
            for position in np.flatnonzero(nodes.allocatable(resource) == 0):
                unfit[position] |= resource not in (nodes.at(int(position)).node.status.allocatable or {})
        return unfit

    def kinds(self, nodes: NodeTable) -> tuple[list[tuple[str, ...]], IntArray]:
        """Which resources nodes must provide as devices: the cases, and (n_nodes,) the number of each node's own."""
        names = [resource for resource in self.resources if resource in self.classes]
        lacking = np.zeros(len(nodes), dtype=np.int64)
        for bit, resource in enumerate(names):
            lacking |= np.equal(nodes.allocatable(resource), 0).astype(np.int64) << bit
        cases, own = np.unique(lacking, return_inverse=True)
        kinds = [tuple(name for bit, name in enumerate(names) if case >> bit & 1) for case in cases.tolist()]
        return kinds, own.reshape(-1).astype(np.int64)

    def requests(self, kind: tuple[str, ...]) -> ExtendedRequests:
        if kind not in self._by_kind:
            self._by_kind[kind] = requests_for(self.pod, kind, self.classes)
        return self._by_kind[kind]

    def claim_for(self, kind: tuple[str, ...]) -> ResourceClaim:
        """The special claim as it is on nodes of this kind."""
        spec = ResourceClaimSpec(devices=DeviceClaim(requests=self.requests(kind).requests or None))
        return ResourceClaim(metadata=self.claim.metadata, spec=spec)


def find_demand(pod: PodInfo, classes: Mapping[str, DeviceClass]) -> tuple[tuple[str, ...], dict[str, DeviceClass]]:
    """The extended resources that a pod asks for, and the classes behind them; nothing if there is no class."""
    resources = tuple(
        sorted(name for name, units in pod.resources.requests.items() if units and is_class_backed_name(name))
    )
    if not resources or not classes:
        return (), {}
    found = {name: device_class_of(name, classes) for name in resources}
    backed = {name: device_class for name, device_class in found.items() if device_class is not None}
    return (resources, backed) if backed else ((), {})


def special_claim(pod: PodInfo) -> ResourceClaim:
    """The claim for a pod's extended resources, as long as it exists only here."""
    return ResourceClaim(
        metadata=ObjectMeta(
            name=SPECIAL_CLAIM_NAME,
            namespace=pod.namespace,
            uid=f"{pod.uid}/extended-resources",
            annotations={EXTENDED_RESOURCE_CLAIM_ANNOTATION: "true"},
            owner_references=(
                OwnerReference(kind="Pod", name=pod.name, uid=pod.pod.metadata.uid, api_version="v1", controller=True),
            ),
        )
    )


def generate_name(pod_name: str) -> str:
    """What the API server makes the special claim's real name from."""
    return f"{pod_name}-extended-resources-"
