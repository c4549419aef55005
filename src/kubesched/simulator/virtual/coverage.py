"""Which pods each disruption budget covers, kept up to date: a change of a pod costs its own budgets, not all."""

from __future__ import annotations

from kubesched.k8s.model.core import Pod, PodDisruptionBudget
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.workloads.budgets import BudgetSelectors
from kubesched.simulator.virtual.store import ClusterStore


class BudgetCoverage:
    def __init__(self, store: ClusterStore) -> None:
        self._store = store
        self._selectors = BudgetSelectors()
        self._pods: dict[str, dict[str, Pod]] = {}
        """By the budget's key: those of its pods that have not finished."""
        store.listen(self._on_pod, Pod)
        store.listen(self._on_budget, PodDisruptionBudget)

    def budgets_of(self, pod: Pod) -> list[str]:
        """Their keys."""
        return self._selectors.covering(pod.namespace, pod.labels)

    def pods_of(self, budget: PodDisruptionBudget) -> list[Pod]:
        return list(self._pods.get(budget.key, {}).values())

    def _on_pod(self, before: KubeObject | None, after: KubeObject | None) -> None:
        if not self._pods:
            return
        if isinstance(before, Pod):
            for key in self.budgets_of(before):
                self._pods[key].pop(before.key, None)
        if isinstance(after, Pod) and not after.is_terminal:
            for key in self.budgets_of(after):
                self._pods[key][after.key] = after

    def _on_budget(self, before: KubeObject | None, after: KubeObject | None) -> None:
        if isinstance(before, PodDisruptionBudget):
            if isinstance(after, PodDisruptionBudget) and before.spec == after.spec:
                return
            self._selectors.remove(before)
            self._pods.pop(before.key, None)
        if isinstance(after, PodDisruptionBudget):
            self._selectors.put(after)
            there = self._store.pods_in(after.namespace)
            self._pods[after.key] = {pod.key: pod for pod in there if after.key in self.budgets_of(pod)}
