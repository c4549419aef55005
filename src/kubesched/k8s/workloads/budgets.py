"""Disruption budgets: how many of its pods may go now.

Healthy pods beyond the number that must stay. Shares are of what the pods' controllers want, not of what runs.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_numbers

from msgspec.structs import replace

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model import selectors
from kubesched.k8s.model.core import Pod, PodDisruptionBudget
from kubesched.k8s.model.meta import OwnerReference, controller_of
from kubesched.k8s.workloads.actions import Plan
from kubesched.k8s.workloads.pod_states import is_healthy
from kubesched.k8s.workloads.replicas import ShareError, share_of

ScaleOf = Callable[[OwnerReference], tuple[str, int] | None]
"""The uid of who decides how many pods there should be, and how many; None if that cannot be said."""


class BudgetSelectors:
    """Budgets by the labels that they select, so that those of a pod are found without asking all."""

    def __init__(self) -> None:
        self._selectors: dict[str, selectors.Selector] = {}
        self._by_label: dict[tuple[str, str, str], list[str]] = {}
        """By namespace and one of the labels, key and value, that a budget asks for."""
        self._by_namespace: dict[str, list[str]] = {}
        """Those that no single label could find."""

    def put(self, budget: PodDisruptionBudget) -> None:
        self._selectors[budget.key] = selectors.from_label_selector(budget.spec.selector)
        self._bucket(budget).append(budget.key)

    def remove(self, budget: PodDisruptionBudget) -> None:
        """One that was put, as it was then."""
        del self._selectors[budget.key]
        self._bucket(budget).remove(budget.key)

    def covering(self, namespace: str, labels: Mapping[str, str]) -> list[str]:
        """The keys of the budgets that cover a pod with these labels."""
        if not self._selectors:
            return []
        found = list(self._by_namespace.get(namespace, ()))
        for name, value in labels.items():
            found += self._by_label.get((namespace, name, value), ())
        return sorted(key for key in found if self._selectors[key].matches(labels))

    def _bucket(self, budget: PodDisruptionBudget) -> list[str]:
        labels = None if budget.spec.selector is None else budget.spec.selector.match_labels
        if not labels:
            return self._by_namespace.setdefault(budget.namespace, [])
        name, value = min(labels.items())
        return self._by_label.setdefault((budget.namespace, name, value), [])


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
    """A budget in numbers; where it is not known how many must stay, no pod may go, and ``problem`` says why."""

    n_expected: int
    n_healthy: int
    n_needed: int
    n_allowed: int
    unmanaged: tuple[str, ...] = ()
    """Pods without a controller, which count for nothing where a share is asked for."""
    problem: str = ""


def budget_numbers(
    budget: PodDisruptionBudget, pods: Sequence[Pod], scale_of: ScaleOf, leaving: Container[str] = ()
) -> BudgetNumbers:
    """`pods` are all pods of the budget's namespace; those named in `leaving` are about to be evicted."""
    selector = selectors.from_label_selector(budget.spec.selector)
    covered = [pod for pod in pods if selector.matches(pod.labels)]
    n_healthy = sum(is_healthy(pod) and pod.name not in leaving for pod in covered)
    least, most_missing = budget.spec.min_available, budget.spec.max_unavailable
    if most_missing is None and isinstance(least, int):
        return _numbers(len(covered), n_healthy, least)
    if most_missing is None and least is None:
        return _numbers(0, n_healthy, 0)
    unmanaged = tuple(pod.name for pod in covered if controller_of(pod.metadata) is None)
    try:
        n_expected = _n_expected(covered, scale_of)
        if most_missing is not None:
            n_needed = max(0, n_expected - share_of(most_missing, n_expected, rounding_up=True))
        else:
            n_needed = share_of(least or 0, n_expected, rounding_up=True)
    except (UnknownScaleError, ShareError) as error:
        return BudgetNumbers(0, n_healthy, 0, 0, unmanaged, str(error))
    return replace_numbers(_numbers(n_expected, n_healthy, n_needed), unmanaged=unmanaged)


def _numbers(n_expected: int, n_healthy: int, n_needed: int) -> BudgetNumbers:
    n_allowed = max(0, n_healthy - n_needed) if n_expected > 0 else 0
    return BudgetNumbers(n_expected, n_healthy, n_needed, n_allowed)


class UnknownScaleError(KubeschedError, ValueError):
    """A pod's controller is of a kind that says nowhere how many pods it wants."""


def _n_expected(pods: Sequence[Pod], scale_of: ScaleOf) -> int:
    scales: dict[str, int] = {}
    for pod in pods:
        owner = controller_of(pod.metadata)
        if owner is None:
            continue
        scale = scale_of(owner)
        if scale is None:
            raise UnknownScaleError(f'found no controllers for pod "{pod.name}"')
        scales[scale[0]] = scale[1]
    return sum(scales.values())
