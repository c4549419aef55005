"""Behind NodePorts: which host ports are taken, and by which pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubesched.explanation.findings.finding import NEAR, CauseKind, Fact, Nearness
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import ContainerPort
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.plugins.node_ports import ALL_ADDRESSES, NodePorts


class TakenPorts:
    """Facts by row: one for each wanted port and the pod that holds it."""

    def __init__(self, cluster: Cluster, pod: PodInfo, nominated_pods: Mapping[int, Sequence[PodInfo]]) -> None:
        self._pods = cluster.table.pods
        self._wanted = pod.host_ports
        self._nominated_pods = nominated_pods

    def of(self, row: int) -> tuple[Fact, ...]:
        holders = [*self._pods.on(row), *self._nominated_pods.get(row, ())]
        return tuple(
            _fact(wanted, holder)
            for wanted in self._wanted
            for holder in holders
            if any(is_same_port(wanted, held) for held in holder.host_ports)
        )


def is_same_port(one: ContainerPort, other: ContainerPort) -> bool:
    """Whether the two cannot be held on one node at the same time."""
    if one.host_port != other.host_port or one.protocol != other.protocol:
        return False
    addresses = {one.host_ip or ALL_ADDRESSES, other.host_ip or ALL_ADDRESSES}
    return len(addresses) == 1 or ALL_ADDRESSES in addresses


def port_text(port: ContainerPort) -> str:
    address = f"{port.host_ip}:" if port.host_ip and port.host_ip != ALL_ADDRESSES else ""
    return f"{address}{port.host_port}/{port.protocol}"


def _fact(port: ContainerPort, holder: PodInfo) -> Fact:
    fields = {"hostPort": port.host_port, "protocol": port.protocol, "hostIP": port.host_ip, "pod": holder.key}
    taken = f"host port {port_text(port)} is taken"
    return Fact(
        NodePorts.name, f"{taken} by {holder.key}", fields, NEAR, "", CauseKind.HOST_PORT, Nearness.LACKS, taken
    )
