"""The dry run on one node: who would have to go?

All pods of lower priority are taken away. If the pod fits then, they are brought back one by one, most important first
and those first whose eviction would break a budget; whoever cannot stay is a victim. Where every filter looks at one
node at a time the trial is worked out on an imagined node; else table and plugin state are changed, and restored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Status
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.view import NodeRow
from kubesched.scheduler.engine.filter import change_state
from kubesched.scheduler.engine.imagined_node import ImaginedNode, node_steps, steps_within_node
from kubesched.scheduler.engine.plugin_call import blamed
from kubesched.scheduler.engine.preemption.budgets import Budgets
from kubesched.scheduler.engine.preemption.candidates import Candidate, importance
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.engine.row_check import check_row_with_nominated, nominated_pods_on
from kubesched.scheduler.engine.steps import FilterStep

NO_VICTIMS = Status.unresolvable("No preemption victims found for incoming pod")


class Trial(Protocol):
    """One node with some of its pods taken away."""

    @property
    def pod(self) -> PodInfo: ...
    @property
    def node_name(self) -> str: ...
    @property
    def pods(self) -> Sequence[PodInfo]: ...
    def take_away(self, other: PodInfo) -> None: ...
    def bring_back(self, other: PodInfo) -> None: ...

    def status(self) -> Status:
        """Whether the pod fits now, beside those nominated to this node."""
        ...


@dataclass(slots=True)
class TableTrial:
    """Tried out on the table itself, and on the state that plugins prepared. Restores both."""

    cluster: Cluster
    profile: Profile
    cycle: CycleState
    pod: PodInfo
    row: int

    @property
    def node_name(self) -> str:
        return self.cluster.table.names[self.row]

    @property
    def pods(self) -> Sequence[PodInfo]:
        return self.cluster.table.pods.on(self.row)

    def take_away(self, other: PodInfo) -> None:
        self.cluster.table.remove_pod(other)
        change_state(self.profile, self.cycle, self.pod, other, self.cluster, self.row, adding=False)

    def bring_back(self, other: PodInfo) -> None:
        self.cluster.table.add_pod(other, self.row)
        change_state(self.profile, self.cycle, self.pod, other, self.cluster, self.row, adding=True)

    def status(self) -> Status:
        return check_row_with_nominated(self.cluster, self.profile, self.cycle, self.pod, self.row)


@dataclass(slots=True)
class ImaginedTrial:
    """Worked out on the side, for filters that look at one node at a time (`steps_to_imagine`)."""

    pod: PodInfo
    cycle: CycleState
    node: ImaginedNode
    steps: Sequence[FilterStep]
    steps_about_pods: Sequence[FilterStep]
    """Those among them to ask again, once all have let the pod in."""
    nominated_pods: Sequence[PodInfo]
    is_crowded_out: bool = False
    """Whether the pod was found not to fit beside all nominated pods."""

    @property
    def node_name(self) -> str:
        return self.node.name

    @property
    def pods(self) -> Sequence[PodInfo]:
        return self.node.pods

    def take_away(self, other: PodInfo) -> None:
        self.node.take_away(other)

    def bring_back(self, other: PodInfo) -> None:
        self.node.bring(other)

    def status(self) -> Status:
        if self.nominated_pods:
            for nominated_pod in self.nominated_pods:
                self.node.bring(nominated_pod)
            status = self._check()
            for nominated_pod in self.nominated_pods:
                self.node.take_away(nominated_pod)
            if not status.is_success:
                self.is_crowded_out = True
                return status
        return self._check()

    def _check(self) -> Status:
        cycle, pod, node = self.cycle, self.pod, self.node
        for step in self.steps:
            assert step.filter_node is not None
            try:
                status = step.filter_node(cycle, pod, node)
            except Exception as bug:
                raise blamed(bug, step.name, 'running "{}" filter plugin') from bug
            if status is not OK and not status.is_success:
                return status.by(step.name)
        self.steps = self.steps_about_pods
        return OK


def steps_to_imagine(profile: Profile, cycle: CycleState, pod: PodInfo) -> Sequence[FilterStep] | None:
    """The filters to ask about an imagined node; None if one of them has to see the table."""
    return steps_within_node(profile, cycle, pod)


def trial_on(
    cluster: Cluster, profile: Profile, cycle: CycleState, pod: PodInfo, row: int, steps: Sequence[FilterStep] | None
) -> Trial:
    if steps is None:
        return TableTrial(cluster, profile, cycle, pod, row)
    node = NodeRow(cluster.table, row)
    about_pods = node_steps(profile, cycle, pod).about_pods
    return ImaginedTrial(pod, cycle, ImaginedNode(node), steps, about_pods, nominated_pods_on(cluster, pod, node.name))


def select_victims(cluster: Cluster, trial: Trial, row: int, budgets: Budgets) -> Candidate | Status:
    """The node as a candidate, or the status that says why evictions do not help there."""
    order = list(trial.pods)
    lower = [other for other in order if other.priority < trial.pod.priority]
    if not lower:
        return NO_VICTIMS
    if isinstance(trial, ImaginedTrial):
        return _find_victims(trial, lower, budgets, [])
    gone: list[PodInfo] = []
    with cluster.table.journal.paused():
        try:
            return _find_victims(trial, lower, budgets, gone)
        finally:
            for other in gone:
                trial.bring_back(other)
            cluster.table.pods.restore_order(row, order)


def _find_victims(trial: Trial, lower: list[PodInfo], budgets: Budgets, gone: list[PodInfo]) -> Candidate | Status:
    """Takes all of lower priority away, then brings back whoever can stay. `gone` are those that are away now."""
    for other in lower:
        trial.take_away(other)
        gone.append(other)
    status = trial.status()
    if not status.is_success:
        return status
    return _reprieve(trial, sorted(lower, key=importance), budgets, gone)


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
    return Candidate(trial.node_name, tuple(victims), n_violations)
