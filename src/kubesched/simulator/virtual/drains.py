"""Draining a node: nobody new, and everybody out as far as disruption budgets allow.

Daemons stay, as with `kubectl drain --ignore-daemonsets --force --delete-emptydir-data`. A pod that a budget protects
is asked again whenever a budget changes.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubesched.k8s.model import selectors
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject, controller_of
from kubesched.k8s.model.policy import PodDisruptionBudget
from kubesched.k8s.model.taints import UNSCHEDULABLE_TAINT
from kubesched.k8s.workloads.pod_states import POD_PENDING
from kubesched.simulator.virtual.clock import VirtualClock
from kubesched.simulator.virtual.deletion import Deletions
from kubesched.simulator.virtual.store import ClusterStore

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"


class Drains:
    def __init__(self, clock: VirtualClock, store: ClusterStore, deletions: Deletions) -> None:
        self._clock = clock
        self._store = store
        self._deletions = deletions
        self._under_way: dict[str, None] = {}
        self._is_planned = False
        store.listen(self._on_change)

    def start(self, node_name: str) -> None:
        self.cordon(node_name)
        self._under_way[node_name] = None
        self._go_on()

    def cordon(self, node_name: str, *, closed: bool = True) -> None:
        node = self._store.find(Node, node_name)
        if node is None:
            return
        if not closed:
            self._under_way.pop(node_name, None)
        others = tuple(taint for taint in node.spec.taints or () if taint != UNSCHEDULABLE_TAINT)
        taints = (*others, UNSCHEDULABLE_TAINT) if closed else others
        self._store.update(replace(node, spec=replace(node.spec, unschedulable=closed, taints=taints or None)))

    def blocked(self) -> dict[str, list[Pod]]:
        """Nodes whose draining waits for a budget, and the pods that it waits for."""
        found = {name: [pod for pod in self._to_leave(name) if not pod.is_terminating] for name in self._under_way}
        return {name: pods for name, pods in found.items() if pods}

    def _on_change(self, before: KubeObject | None, after: KubeObject | None) -> None:
        is_budget = isinstance(before, PodDisruptionBudget) or isinstance(after, PodDisruptionBudget)
        if is_budget and self._under_way and not self._is_planned:
            self._is_planned = True
            self._clock.after(0.0, self._go_on)

    def _go_on(self) -> None:
        self._is_planned = False
        for node_name in list(self._under_way):
            leaving = self._to_leave(node_name)
            for pod in leaving:
                if not pod.is_terminating and self._may_go(pod):
                    self._deletions.delete(pod, f"drained from {node_name}")
            if not leaving:
                del self._under_way[node_name]

    def _to_leave(self, node_name: str) -> list[Pod]:
        return [pod for pod in self._store.pods_on(node_name) if not _stays(pod)]

    def _may_go(self, pod: Pod) -> bool:
        """Whether no budget speaks against it; if one covers the pod, it is charged."""
        budgets = [budget for budget in self._store.of(PodDisruptionBudget).values() if _covers(budget, pod)]
        if pod.status.phase == POD_PENDING or not budgets:
            return True
        budget = budgets[0]
        if len(budgets) > 1 or budget.status.disruptions_allowed <= 0:
            return False  # the eviction API refuses a pod that several budgets cover
        status = replace(budget.status, disruptions_allowed=budget.status.disruptions_allowed - 1)
        self._store.update(replace(budget, status=status))
        return True


def _covers(budget: PodDisruptionBudget, pod: Pod) -> bool:
    if budget.namespace != pod.namespace:
        return False
    return selectors.from_label_selector(budget.spec.selector).matches(pod.labels)


def _stays(pod: Pod) -> bool:
    owner = controller_of(pod.metadata)
    is_daemon = owner is not None and owner.kind == "DaemonSet"
    return is_daemon or MIRROR_ANNOTATION in (pod.metadata.annotations or {})
