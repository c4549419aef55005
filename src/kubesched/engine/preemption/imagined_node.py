"""A node as it would be without some of its pods, or with others: worked out, not tried out on the table.

Implements `framework.NodeInfo`. Enough for filters that look at one node at a time through it.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.cluster.view import NodeRow, do_ports_conflict
from kubesched.framework.pod_info import PodInfo
from kubesched.model.core import ContainerPort, Node


class ImaginedNode:
    __slots__ = ("_amounts", "_node", "_nonzero_cpu_milli", "_nonzero_memory_bytes", "_pods", "row")

    def __init__(self, node: NodeRow) -> None:
        self._node = node
        self.row = node.row
        self._pods: dict[str, PodInfo] = {info.uid: info for info in node.pods}
        self._amounts: dict[str, int] = {}
        self._nonzero_cpu_milli = node.nonzero_cpu_milli
        self._nonzero_memory_bytes = node.nonzero_memory_bytes

    def take_away(self, info: PodInfo) -> None:
        del self._pods[info.uid]
        self._change(info, -1)

    def bring(self, info: PodInfo) -> None:
        self._pods[info.uid] = info
        self._change(info, 1)

    def _change(self, info: PodInfo, sign: int) -> None:
        resources = info.shape.resources
        amounts = self._amounts
        for name, units in resources.requests.items():
            amounts[name] = amounts.get(name, 0) + sign * units
        self._nonzero_cpu_milli += sign * resources.nonzero_cpu_milli
        self._nonzero_memory_bytes += sign * resources.nonzero_memory_bytes

    @property
    def name(self) -> str:
        return self._node.name

    @property
    def node(self) -> Node:
        return self._node.node

    @property
    def pods(self) -> Sequence[PodInfo]:
        return list(self._pods.values())

    def allocatable(self, resource: str) -> int:
        return self._node.allocatable(resource)

    def requested(self, resource: str) -> int:
        return self._node.requested(resource) + self._amounts.get(resource, 0)

    @property
    def nonzero_cpu_milli(self) -> int:
        return self._nonzero_cpu_milli

    @property
    def nonzero_memory_bytes(self) -> int:
        return self._nonzero_memory_bytes

    @property
    def allowed_pods(self) -> int:
        return self._node.allowed_pods

    @property
    def pod_count(self) -> int:
        return len(self._pods)

    def image_size(self, image: str) -> int:
        return self._node.image_size(image)

    def has_conflicting_ports(self, ports: Sequence[ContainerPort]) -> bool:
        return any(
            do_ports_conflict(port, used) for info in self._pods.values() for used in info.host_ports for port in ports
        )
