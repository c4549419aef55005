"""NodePorts: two pods cannot hold the same host port of one node.

The same port means same number and protocol on the same address; a port on all addresses (`0.0.0.0`, or none named)
is the same as that port on any address. Which ports are taken is a column of the node table.

Next: `kubesched.framework.pod_info` for which ports of a pod count.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from kubesched.framework import (
    OK,
    ActionType,
    ClusterEvent,
    CycleState,
    EventResource,
    Handle,
    Hint,
    NodeInfo,
    NodeTable,
    PodInfo,
    PodSignature,
    PreFilterResult,
    RegisteredEvent,
    Status,
    Verdicts,
)
from kubesched.framework.caching import Scope
from kubesched.framework.group_room import GroupRoom
from kubesched.framework.status import SKIP
from kubesched.k8s.model.core import ContainerPort, Pod

REASON = "node(s) didn't have free ports for the requested pod ports"
NO_STATE = 'reading "PreFilterNodePorts" from cycleState: not found'

ALL_ADDRESSES = "0.0.0.0"


@dataclass(frozen=True, slots=True)
class WantedPorts:
    ports: tuple[ContainerPort, ...]


class NodePorts:
    name: ClassVar[str] = "NodePorts"
    filter_scope: ClassVar[Scope] = Scope.ROW
    reads_objects: ClassVar[bool] = False

    def __init__(self, _args: object, _handle: Handle) -> None:
        """Has no arguments, and looks at nothing but pod and nodes."""

    def pre_filter(self, cycle: CycleState, pod: PodInfo, _nodes: NodeTable) -> PreFilterResult:
        if not pod.host_ports:
            return PreFilterResult(SKIP)
        cycle.put(WantedPorts(pod.host_ports))
        return PreFilterResult()

    def filter(self, cycle: CycleState, _pod: PodInfo, nodes: NodeTable) -> Verdicts:
        wanted = cycle.find(WantedPorts)
        if wanted is None:
            return Verdicts.from_statuses([Status.error(NO_STATE)] * len(nodes))
        return Verdicts.reject(nodes.conflicting_ports(wanted.ports), REASON)

    def filter_node(self, cycle: CycleState, _pod: PodInfo, node: NodeInfo) -> Status:
        wanted = cycle.find(WantedPorts)
        if wanted is None:
            return Status.error(NO_STATE)
        return Status.unschedulable(REASON) if node.has_conflicting_ports(wanted.ports) else OK

    def bound_group(self, room: GroupRoom) -> bool:
        """Pods that want the same port do not share a node."""
        conflicts = {
            _overlap(one.pod.host_ports, other.pod.host_ports)
            for one, other in room.pairs(lambda pod: tuple(map(_written, pod.host_ports)))
        }
        if True in conflicts:
            room.limit_rows(1, None if False in conflicts else 1)
        return True

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        pod_gone = ClusterEvent(EventResource.POD, ActionType.DELETE)
        node_added = ClusterEvent(EventResource.NODE, ActionType.ADD)
        return (RegisteredEvent(pod_gone, _hint_after_pod_deleted, by_signature=True), RegisteredEvent(node_added))


def _hint_after_pod_deleted(pod: PodInfo, old: object | None, _new: object | None) -> Hint:
    """A pod helps by its going that held, or was about to hold, a port that this one wants."""
    if not isinstance(old, Pod):
        return Hint.QUEUE
    if not old.spec.node_name and not old.status.nominated_node_name:
        return Hint.SKIP
    freed = PodSignature(old, label_class=-1, affinity_class=-1).host_ports
    return Hint.QUEUE if _overlap(pod.host_ports, freed) else Hint.SKIP


def _written(port: ContainerPort) -> tuple[int, str | None, str | None]:
    return port.host_port, port.protocol, port.host_ip


def _overlap(wanted: Iterable[ContainerPort], freed: Sequence[ContainerPort]) -> bool:
    return any(_is_same_port(ours, theirs) for ours in wanted for theirs in freed)


def _is_same_port(one: ContainerPort, other: ContainerPort) -> bool:
    if one.host_port != other.host_port or (one.protocol or "TCP") != (other.protocol or "TCP"):
        return False
    addresses = {one.host_ip or ALL_ADDRESSES, other.host_ip or ALL_ADDRESSES}
    return len(addresses) == 1 or ALL_ADDRESSES in addresses
