"""Disruption budgets of a cluster at rest: which of them a pod counts for, and how many pods may leave at a time.

Whatever leaves finds another place and runs there, so what a budget allows is the same again afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from kubesched.framework.pod_info import PodInfo, PodSignature
from kubesched.k8s.model.core import Pod, PodStatus
from kubesched.k8s.workloads.budgets import BudgetSelectors, disruptions_allowed
from kubesched.k8s.workloads.pod_states import POD_RUNNING
from kubesched.planning.headroom import is_headroom
from kubesched.planning.owners import PodOwners
from kubesched.simulator.trial import LoadedWorld


class RestingBudgets:
    def __init__(self, world: LoadedWorld, owners: PodOwners) -> None:
        budgets = world.cluster.objects.pod_disruption_budgets
        self._selectors = BudgetSelectors()
        self._covering: dict[PodSignature, tuple[str, ...]] = {}
        for budget in budgets.values():
            self._selectors.put(budget)
        covered: dict[str, list[Pod]] = {key: [] for key in budgets}
        for info in world.cluster.placed.values():
            for key in self.covering(info):
                covered[key].append(_as_running(info.pod))
        self.allowed = {
            key: disruptions_allowed(budget, covered[key], owners.scale_of) for key, budget in budgets.items()
        }
        """How many of its pods may leave at a time."""

    def covering(self, info: PodInfo) -> tuple[str, ...]:
        """The budgets that a pod counts for."""
        if is_headroom(info.key):
            return ()
        known = self._covering.get(info.signature)
        if known is None:
            known = self._covering[info.signature] = tuple(self._selectors.covering(info.namespace, info.labels))
        return known

    def waves(self, pods: Sequence[PodInfo]) -> list[list[PodInfo]]:
        """The pods in the order in which they may leave: each wave when the one before it has its place. Pods that may
        not leave at all must have been left out."""
        waves: list[list[PodInfo]] = []
        waiting = list(pods)
        while waiting:
            taken: Counter[str] = Counter()
            wave, later = [], []
            for info in waiting:
                keys = self.covering(info)
                if all(taken[key] < self.allowed[key] for key in keys):
                    taken.update(keys)
                    wave.append(info)
                else:
                    later.append(info)
            assert wave, "a pod that a budget keeps was to leave"
            waves.append(wave)
            waiting = later
        return waves


def _as_running(pod: Pod) -> Pod:
    """A pod that was just placed will run."""
    is_new = pod.status.phase != POD_RUNNING and not pod.status.conditions
    return replace(pod, status=PodStatus(phase=POD_RUNNING)) if is_new else pod
