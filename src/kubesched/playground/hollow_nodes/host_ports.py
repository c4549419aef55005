"""Ports of nodes that pods ask for: a kubelet turns away a pod whose port another pod on its node has.

The scheduler never lets that happen; whoever names a node for a pod does not ask the scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubesched.playground.hollow_nodes.hollow_pods import HollowPod

_ANY = ("", "0.0.0.0")

REASON = "NodePorts"
MESSAGE = "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"

Port = tuple[int, str, str]
"""(number, protocol, address)"""


class HostPorts:
    """Who has which ports, by node."""

    def __init__(self) -> None:
        self._taken: dict[str, dict[str, list[Port]]] = {}

    def take(self, pod: HollowPod) -> bool:
        """Whether they are free; then they are this pod's."""
        ports = list(_ports(pod))
        if not ports:
            return True
        on_node = self._taken.setdefault(pod.spec.node_name, {})
        uid = pod.metadata.uid
        others = [port for owner, taken in on_node.items() if owner != uid for port in taken]
        if any(_clash(port, other) for port in ports for other in others):
            return False
        on_node[uid] = ports
        return True

    def free(self, pod: HollowPod) -> None:
        on_node = self._taken.get(pod.spec.node_name)
        if on_node is not None:
            on_node.pop(pod.metadata.uid, None)
            if not on_node:
                del self._taken[pod.spec.node_name]


def _ports(pod: HollowPod) -> Iterator[Port]:
    for container in pod.spec.containers:
        for port in container.ports or ():
            if port.host_port:
                yield port.host_port, port.protocol or "TCP", port.host_ip or ""


def _clash(one: Port, other: Port) -> bool:
    is_same_address = one[2] == other[2] or one[2] in _ANY or other[2] in _ANY
    return one[:2] == other[:2] and is_same_address
