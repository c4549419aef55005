"""Taints with the effect NoExecute drive pods out: at once, or when the time is over that they tolerate it for."""

from __future__ import annotations

from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.workloads.taint_tolerance import driving_taints, tolerated_for_s
from kubesched.simulator.virtual.clock import VirtualClock
from kubesched.simulator.virtual.deletion import Deletions
from kubesched.simulator.virtual.store import ClusterStore


class TaintEvictions:
    def __init__(self, clock: VirtualClock, store: ClusterStore, deletions: Deletions) -> None:
        self._clock = clock
        self._store = store
        self._deletions = deletions
        self._deadlines_s: dict[str, float] = {}
        """By the pod's uid. A deadline that was replaced or taken back is not here any more."""
        store.listen(self._on_change)

    def _on_change(self, before: KubeObject | None, after: KubeObject | None) -> None:
        if isinstance(after, Node):
            old = before if isinstance(before, Node) else None
            if driving_taints(after) != (() if old is None else driving_taints(old)):
                for pod in self._store.pods_on(after.name):
                    self._consider(pod, after)
        elif isinstance(after, Pod) and after.spec.node_name and not after.is_terminal:
            was_there = isinstance(before, Pod) and bool(before.spec.node_name)
            node = None if was_there else self._store.find(Node, after.spec.node_name)
            if node is not None and driving_taints(node):
                self._consider(after, node)
        elif isinstance(before, Pod) and after is None:
            self._deadlines_s.pop(before.metadata.uid, None)

    def _consider(self, pod: Pod, node: Node) -> None:
        uid = pod.metadata.uid
        for_s = tolerated_for_s(pod.spec.tolerations or (), driving_taints(node))
        if for_s is None:
            self._deadlines_s.pop(uid, None)
            return
        deadline_s = self._clock.now_s + for_s
        if self._deadlines_s.get(uid, deadline_s + 1) <= deadline_s:
            return  # another taint drives it out sooner
        self._deadlines_s[uid] = deadline_s
        taints = ", ".join(dict.fromkeys(taint.key for taint in driving_taints(node)))

        def drive_out() -> None:
            if self._deadlines_s.get(uid) == deadline_s:
                del self._deadlines_s[uid]
                self._deletions.delete(pod, f"driven out of {node.name} by taint {taints}")

        self._clock.at(deadline_s, drive_out)
