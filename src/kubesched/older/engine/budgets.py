"""Disruption budgets and the victims of preemption, by the rule of a version."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.policy import PodDisruptionBudget
from kubesched.k8s.model.selectors import SelectorError, from_label_selector
from kubesched.older.config.generations import BudgetRule


class OlderBudgets:
    def __init__(self, budgets: Iterable[PodDisruptionBudget], rule: BudgetRule) -> None:
        self._budgets = tuple(budgets)
        self._rule = rule

    def split(self, pods: Sequence[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Those whose eviction would break a budget, and the others; both in the given order."""
        left = [budget.status.disruptions_allowed for budget in self._budgets]
        breaking: list[PodInfo] = []
        harmless: list[PodInfo] = []
        for pod in pods:
            (breaking if self._breaks_one(pod, left) else harmless).append(pod)
        return breaking, harmless

    def _breaks_one(self, pod: PodInfo, left: list[int]) -> bool:
        breaks = False
        for index, budget in enumerate(self._budgets):
            if not _covers(budget, pod):
                continue
            if self._rule is BudgetRule.COUNT_DOWN_ALL:
                if pod.name in (budget.status.disrupted_pods or {}):
                    continue
                left[index] -= 1
                breaks = breaks or left[index] < 0
            elif left[index] <= 0:
                return True
            elif self._rule is BudgetRule.COUNT_DOWN:
                left[index] -= 1
        return breaks


def _covers(budget: PodDisruptionBudget, pod: PodInfo) -> bool:
    """An empty selector covers nothing here, nor is a pod without labels ever covered."""
    if budget.namespace != pod.namespace or not pod.labels:
        return False
    try:
        selector = from_label_selector(budget.spec.selector)
    except SelectorError:
        return False
    return bool(selector.requirements) and selector.matches(pod.labels)
