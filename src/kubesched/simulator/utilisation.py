"""How much of each node was asked for, at the end, at most, and on average over its time in the cluster."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.requests import PODS, node_units, pod_resources
from kubesched.simulator.virtual.clock import VirtualClock
from kubesched.simulator.virtual.store import ClusterStore

Amounts = dict[str, int]


@dataclass(slots=True)
class NodeUsage:
    """A node's account. Areas are amounts times seconds."""

    name: str
    joined_s: float
    since_s: float
    allocatable: Amounts
    left_s: float | None = None
    requested: Amounts = field(default_factory=dict)
    peak: Amounts = field(default_factory=dict)
    requested_area: dict[str, float] = field(default_factory=dict)
    allocatable_area: dict[str, float] = field(default_factory=dict)

    def advance(self, now_s: float) -> None:
        """Counts what was there up to now."""
        for_s = now_s - self.since_s
        self.since_s = now_s
        if for_s <= 0:
            return
        for name, amount in self.requested.items():
            self.requested_area[name] = self.requested_area.get(name, 0.0) + amount * for_s
        for name, amount in self.allocatable.items():
            self.allocatable_area[name] = self.allocatable_area.get(name, 0.0) + amount * for_s

    def change(self, amounts: Amounts, sign: int) -> None:
        for name, amount in amounts.items():
            self.requested[name] = total = self.requested.get(name, 0) + sign * amount
            self.peak[name] = max(self.peak.get(name, 0), total)


class UtilisationMeter:
    """Keeps the account of every node that ever was."""

    def __init__(self, clock: VirtualClock, store: ClusterStore) -> None:
        self._clock = clock
        self.nodes: list[NodeUsage] = []
        self._present: dict[str, NodeUsage] = {}
        self._counted: dict[str, tuple[str, Amounts]] = {}
        """By the pod's uid: the node it counts on, and what it counts for."""
        self._waiting: dict[str, dict[str, Amounts]] = {}
        """Pods on nodes that are not there, by node and uid."""
        store.listen(self._on_change)

    def close(self, at_s: float) -> None:
        """The run is over."""
        for usage in self._present.values():
            usage.advance(at_s)

    def _on_change(self, before: KubeObject | None, after: KubeObject | None) -> None:
        item = before if after is None else after
        if isinstance(item, Pod):
            self._pod_changed(item, is_gone=after is None)
        elif isinstance(after, Node):
            self._node_changed(after)
        elif isinstance(before, Node):
            self._node_left(before.name)

    def _pod_changed(self, pod: Pod, *, is_gone: bool) -> None:
        uid = pod.metadata.uid
        counts = bool(pod.spec.node_name) and not pod.is_terminal and not is_gone
        if counts and uid not in self._counted:
            amounts = {**pod_resources(pod).requests, PODS: 1}
            self._counted[uid] = (pod.spec.node_name, amounts)
            self._change(pod.spec.node_name, uid, amounts, 1)
        elif not counts and uid in self._counted:
            node_name, amounts = self._counted.pop(uid)
            self._change(node_name, uid, amounts, -1)

    def _change(self, node_name: str, uid: str, amounts: Amounts, sign: int) -> None:
        usage = self._present.get(node_name)
        if usage is not None:
            usage.advance(self._clock.now_s)
            usage.change(amounts, sign)
        elif sign > 0:
            self._waiting.setdefault(node_name, {})[uid] = amounts
        else:
            self._waiting.get(node_name, {}).pop(uid, None)

    def _node_changed(self, node: Node) -> None:
        now_s = self._clock.now_s
        allocatable = node_units(node.status.allocatable, "status.allocatable")
        usage = self._present.get(node.name)
        if usage is not None:
            usage.advance(now_s)
            usage.allocatable = allocatable
            return
        usage = NodeUsage(node.name, now_s, now_s, allocatable)
        self._present[node.name] = usage
        self.nodes.append(usage)
        for amounts in self._waiting.pop(node.name, {}).values():
            usage.change(amounts, 1)

    def _node_left(self, node_name: str) -> None:
        usage = self._present.pop(node_name)
        usage.advance(self._clock.now_s)
        usage.left_s = self._clock.now_s
        left = {uid: amounts for uid, (name, amounts) in self._counted.items() if name == node_name}
        self._waiting[node_name] = left
