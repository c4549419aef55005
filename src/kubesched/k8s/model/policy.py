"""Disruption budgets and priority classes."""

from __future__ import annotations

from kubesched.k8s.model.meta import KubeObject, KubeStruct, LabelSelector
from kubesched.k8s.model.numbers import Int32


class PodDisruptionBudgetSpec(KubeStruct, frozen=True):
    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class PodDisruptionBudgetStatus(KubeStruct, frozen=True):
    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, str] | None = None


class PodDisruptionBudget(KubeObject, frozen=True):
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class PriorityClass(KubeObject, frozen=True):
    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str | None = None
