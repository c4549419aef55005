"""Disruption budgets: how many of its pods may go now.

Healthy pods beyond the number that must stay. Shares are of what the pods' controllers want, not of what runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from kubesched.expansion.actions import Plan
from kubesched.expansion.percentages import share_of
from kubesched.expansion.pod_states import is_healthy
from kubesched.model import selectors
from kubesched.model.core import Pod
from kubesched.model.meta import OwnerReference, controller_of
from kubesched.model.policy import PodDisruptionBudget

ScaleOf = Callable[[OwnerReference], tuple[str, int] | None]
"""The uid of who decides how many pods there should be, and how many; None if that cannot be said."""


def sync_budget(budget: PodDisruptionBudget, pods: Sequence[Pod], scale_of: ScaleOf) -> Plan:
    """`pods` are all pods of the budget's namespace."""
    plan = Plan()
    allowed = disruptions_allowed(budget, pods, scale_of)
    if allowed != budget.status.disruptions_allowed:
        plan.update(replace(budget, status=replace(budget.status, disruptions_allowed=allowed)))
    return plan


def disruptions_allowed(budget: PodDisruptionBudget, pods: Sequence[Pod], scale_of: ScaleOf) -> int:
    return budget_numbers(budget, pods, scale_of).n_allowed


@dataclass(frozen=True, slots=True)
class BudgetNumbers:
    """A budget in numbers; where it cannot be said how many must stay, nobody may go."""

    n_expected: int
    n_healthy: int
    n_needed: int
    n_allowed: int


def budget_numbers(budget: PodDisruptionBudget, pods: Sequence[Pod], scale_of: ScaleOf) -> BudgetNumbers:
    selector = selectors.from_label_selector(budget.spec.selector)
    covered = [pod for pod in pods if not pod.is_terminal and selector.matches(pod.labels)]
    n_healthy = sum(map(is_healthy, covered))
    needed = _n_needed(budget, covered, scale_of)
    expected = len(covered) if isinstance(budget.spec.min_available, int) else _n_expected(covered, scale_of)
    allowed = 0 if needed is None else max(0, n_healthy - needed)
    return BudgetNumbers(expected or 0, n_healthy, needed or 0, allowed)


def _n_needed(budget: PodDisruptionBudget, pods: Sequence[Pod], scale_of: ScaleOf) -> int | None:
    """How many pods must stay healthy; None if nobody may go, because it cannot be said."""
    least, most_missing = budget.spec.min_available, budget.spec.max_unavailable
    if isinstance(least, int):
        return least if pods else None
    n_expected = _n_expected(pods, scale_of)
    if not n_expected:
        return None
    if least is not None:
        return share_of(least, n_expected, rounding_up=True)
    if most_missing is None:
        return None
    return max(0, n_expected - share_of(most_missing, n_expected, rounding_up=True))


def _n_expected(pods: Sequence[Pod], scale_of: ScaleOf) -> int | None:
    scales: dict[str, int] = {}
    for pod in pods:
        owner = controller_of(pod.metadata)
        if owner is None:
            return None
        scale = scale_of(owner)
        if scale is None:
            return None
        scales[scale[0]] = scale[1]
    return sum(scales.values())
