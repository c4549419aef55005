"""Disruption budgets: which victims would break one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import PodDisruptionBudget
from kubesched.k8s.model.selectors import Selector, SelectorError, from_label_selector


class Budgets:
    """The budgets of the cluster, ready to be asked."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget], *, stops_when_broken: bool = False) -> None:
        """A pod is taken off all budgets that cover it, or, with `stops_when_broken`, up to the first that had nothing
        left."""
        self._stops = stops_when_broken
        self._budgets = [(budget, selector) for budget in budgets if (selector := _selector(budget)) is not None]

    def __bool__(self) -> bool:
        return bool(self._budgets)

    def split(self, pods: Sequence[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Pods whose eviction would break a budget, and the others, if they were evicted in this order."""
        if not self._budgets:
            return [], list(pods)
        allowed = [budget.status.disruptions_allowed for budget, _ in self._budgets]
        breaking: list[PodInfo] = []
        harmless: list[PodInfo] = []
        for info in pods:
            (breaking if self._breaks(info, allowed, stops=self._stops) else harmless).append(info)
        return breaking, harmless

    def counted(self) -> Callable[[PodInfo], bool]:
        """Asked of one pod after another, whether its eviction would break a budget; what was asked before counts. It
        is taken off no further budget once one had nothing left."""
        allowed = [budget.status.disruptions_allowed for budget, _ in self._budgets]
        return lambda info: self._breaks(info, allowed, stops=True)

    def _breaks(self, info: PodInfo, allowed: list[int], *, stops: bool) -> bool:
        """Takes the pod off every budget that covers it; True if one had nothing left."""
        if not info.labels:
            return False
        broken = False
        for index, (budget, selector) in enumerate(self._budgets):
            if budget.namespace != info.namespace or not selector.matches(info.labels):
                continue
            if info.name in (budget.status.disrupted_pods or {}):
                continue  # already counted by the API server
            allowed[index] -= 1
            broken = broken or allowed[index] < 0
            if broken and stops:
                return True
        return broken


def _selector(budget: PodDisruptionBudget) -> Selector | None:
    """None for a budget that covers no pod."""
    try:
        selector = from_label_selector(budget.spec.selector)
    except SelectorError:
        return None
    return None if selector.nothing or selector.is_everything else selector
