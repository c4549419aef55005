"""A preemptor's dry runs, node after node. Next: `victims`, for a single one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Status
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.plugin_call import PluginError
from kubesched.scheduler.engine.preemption.budgets import Budgets
from kubesched.scheduler.engine.preemption.candidates import Candidate
from kubesched.scheduler.engine.preemption.plans import PreemptionPlans
from kubesched.scheduler.engine.preemption.staying import who_stays
from kubesched.scheduler.engine.preemption.victims import NO_VICTIMS, ImaginedTrial, Trial, select_victims, trial_on
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.engine.row_check import nominated_pods_on
from kubesched.scheduler.engine.steps import FilterStep


@dataclass(slots=True)
class DryRun:
    cluster: Cluster
    profile: Profile
    cycle: CycleState
    pod: PodInfo
    budgets: Budgets
    steps: Sequence[FilterStep] | None

    def __call__(self, row: int) -> Candidate | Status:
        return self._run(self._trial_on(row), row)

    def unless_in_vain(self, row: int, plans: PreemptionPlans) -> Candidate | Status:
        """The same, without a trial where the plans know that those who stay are in the way."""
        table = self.cluster.table
        nominated_pods = nominated_pods_on(self.cluster, self.pod, table.names[row])
        staying = who_stays(table.pods.on(row), nominated_pods, self.pod.priority)
        if staying is None:
            return NO_VICTIMS
        known = plans.in_vain(row, staying)
        if known is not None:
            return known
        trial = self._trial_on(row)
        found = self._run(trial, row)
        # Where it is not all of them together who are in the way, it matters which of them are nominated pods.
        are_in_the_way = isinstance(trial, ImaginedTrial) and (trial.is_crowded_out or not nominated_pods)
        if are_in_the_way and isinstance(found, Status) and found.is_rejected:
            plans.keep_in_vain(row, staying, found)
        return found

    def _trial_on(self, row: int) -> Trial:
        return trial_on(self.cluster, self.profile, self.cycle, self.pod, row, self.steps)

    def _run(self, trial: Trial, row: int) -> Candidate | Status:
        found = select_victims(self.cluster, trial, row, self.budgets)
        if isinstance(found, Candidate) and not found.victims:
            raise PluginError("", f'expected at least one victim pod on node "{found.node_name}"')
        return found
