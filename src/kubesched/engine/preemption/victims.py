"""The dry run on one node: who would have to go?

All pods of lower priority are taken away. If the pod fits then, they are brought back one by one, most important first
and those first whose eviction would break a budget; whoever cannot stay is a victim. Table and plugin state are changed
for the trial and restored after it.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubesched.cluster import Cluster
from kubesched.engine.filter import change_state
from kubesched.engine.preemption.budgets import Budgets
from kubesched.engine.preemption.candidates import Candidate, importance
from kubesched.engine.profile import Profile
from kubesched.engine.row_check import check_row_with_nominated
from kubesched.framework.cycle import Cycle
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Status

NO_VICTIMS = Status.unresolvable("No preemption victims found for incoming pod")


@dataclass(slots=True)
class Trial:
    """One node with some of its pods taken away."""

    cluster: Cluster
    profile: Profile
    cycle: Cycle
    pod: PodInfo
    row: int

    def take_away(self, other: PodInfo) -> None:
        self.cluster.table.remove_pod(other)
        change_state(self.profile, self.cycle, self.pod, other, self.cluster, self.row, adding=False)

    def bring_back(self, other: PodInfo) -> None:
        self.cluster.table.add_pod(other, self.row)
        change_state(self.profile, self.cycle, self.pod, other, self.cluster, self.row, adding=True)

    def status(self) -> Status:
        """Whether the pod fits now, beside those nominated to this node."""
        return check_row_with_nominated(self.cluster, self.profile, self.cycle, self.pod, self.row)


def select_victims(trial: Trial, budgets: Budgets) -> Candidate | Status:
    """The node as a candidate, or the status that says why evictions do not help there."""
    pods = trial.cluster.table.pods
    order = list(pods.on(trial.row))
    lower = [other for other in order if other.priority < trial.pod.priority]
    if not lower:
        return NO_VICTIMS
    gone: list[PodInfo] = []
    with trial.cluster.table.journal.paused():
        try:
            for other in lower:
                trial.take_away(other)
                gone.append(other)
            status = trial.status()
            if not status.is_success:
                return status
            return _reprieve(trial, sorted(lower, key=importance), budgets, gone)
        finally:
            for other in gone:
                trial.bring_back(other)
            pods.restore_order(trial.row, order)


def _reprieve(trial: Trial, lower: list[PodInfo], budgets: Budgets, gone: list[PodInfo]) -> Candidate:
    """Brings back whoever can stay; `gone` is left with the victims."""
    breaking, harmless = budgets.split(lower)
    victims: list[PodInfo] = []
    n_violations = 0
    for other in [*breaking, *harmless]:
        trial.bring_back(other)
        gone.remove(other)
        if trial.status().is_success:
            continue
        trial.take_away(other)
        gone.append(other)
        victims.append(other)
        n_violations += other in breaking
    if breaking and harmless:
        victims.sort(key=importance)
    name = trial.cluster.table.names[trial.row]
    return Candidate(name, tuple(victims), n_violations)
