"""Nodes that fail, come back, or are taken away.

A failed node is noticed after a while: then it is tainted as unreachable, and its pods are no longer ready; the taint
drives them out in their own time (`taint_evictions`), but nobody is there to end them. Pods of a node that does not
exist any more are cleaned up after a while.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.k8s.model.core import Node, NodeCondition, PodCondition, Taint
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.taints import NO_EXECUTE, NO_SCHEDULE
from kubesched.k8s.workloads.admission import UNREACHABLE_TAINT
from kubesched.k8s.workloads.pod_states import POD_RUNNING, READY, with_condition
from kubesched.simulator.virtual.clock import VirtualClock
from kubesched.simulator.virtual.deletion import Deletions
from kubesched.simulator.virtual.kubelets import Kubelets
from kubesched.simulator.virtual.store import ClusterStore

NOTICED_AFTER_S = 50.0
"""The controller manager's node-monitor-grace-period."""

CLEANED_UP_AFTER_S = 40.0
"""How long the pod garbage collector waits for a node that is gone to come back."""

_UNREACHABLE = (Taint(UNREACHABLE_TAINT, NO_SCHEDULE), Taint(UNREACHABLE_TAINT, NO_EXECUTE))


class NodeFaults:
    def __init__(self, clock: VirtualClock, store: ClusterStore, kubelets: Kubelets, deletions: Deletions) -> None:
        self._clock = clock
        self._store = store
        self._kubelets = kubelets
        self._deletions = deletions
        store.listen(self._on_change)

    def fail(self, node_name: str) -> None:
        self._kubelets.failed_nodes.add(node_name)
        self._clock.after(NOTICED_AFTER_S, lambda: self._notice(node_name))

    def recover(self, node_name: str) -> None:
        if node_name not in self._kubelets.failed_nodes:
            return
        node = self._store.find(Node, node_name)
        if node is not None:
            taints = tuple(taint for taint in node.spec.taints or () if taint not in _UNREACHABLE)
            self._store.update(_with_readiness(replace(node, spec=replace(node.spec, taints=taints or None)), "True"))
            self._set_pods_ready(node_name, "True")
        self._kubelets.recover(node_name)

    def _notice(self, node_name: str) -> None:
        node = self._store.find(Node, node_name)
        if node is None or node_name not in self._kubelets.failed_nodes:
            return
        taints = (*(taint for taint in node.spec.taints or () if taint not in _UNREACHABLE), *_UNREACHABLE)
        self._store.update(_with_readiness(replace(node, spec=replace(node.spec, taints=taints)), "Unknown"))
        self._set_pods_ready(node_name, "False")

    def _set_pods_ready(self, node_name: str, status: str) -> None:
        for pod in self._store.pods_on(node_name):
            if pod.status.phase == POD_RUNNING:
                self._store.update(with_condition(pod, PodCondition(READY, status)))

    def _on_change(self, before: KubeObject | None, after: KubeObject | None) -> None:
        if isinstance(before, Node) and after is None:
            name = before.name
            self._kubelets.failed_nodes.add(name)
            self._clock.after(CLEANED_UP_AFTER_S, lambda: self._clean_up(name))
        elif isinstance(after, Node) and before is None:
            self._kubelets.recover(after.name)

    def _clean_up(self, node_name: str) -> None:
        if self._store.find(Node, node_name) is None:
            for pod in self._store.pods_on(node_name):
                self._deletions.lose(pod, f"node {node_name} is gone")


def _with_readiness(node: Node, status: str) -> Node:
    others = (known for known in node.status.conditions or () if known.type != READY)
    return replace(node, status=replace(node.status, conditions=(*others, NodeCondition(READY, status))))
