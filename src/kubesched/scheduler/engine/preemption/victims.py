"""The dry run on a node: who would have to go, and whose disruption budget would that break?

All pods of lower priority are taken away. If the pod fits then, they are brought back one by one, most important first
and those first whose eviction would break a budget; whoever cannot stay is a victim. Where every filter looks at one
node at a time the trial is worked out on an imagined node; else table and plugin state are changed, and restored.

`DryRun` is one preemptor's, node after node; `Budgets` says which victims would break one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Status
from kubesched.k8s.model.core import PodDisruptionBudget
from kubesched.k8s.model.selectors import Selector, SelectorError, from_label_selector
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.view import NodeRow
from kubesched.scheduler.engine.filter import change_state
from kubesched.scheduler.engine.plugin_call import PluginError, blamed
from kubesched.scheduler.engine.preemption.candidates import Candidate, PreemptionPlans, importance, who_stays
from kubesched.scheduler.engine.profile import FilterStep, Profile
from kubesched.scheduler.engine.row_check import (
    ImaginedNode,
    check_node,
    check_row_with_nominated,
    node_steps,
    nominated_pods_on,
)

_MOST_ALIKE = 4096

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
    """Worked out on the side, for filters that look at one node at a time (`steps_within_node`)."""

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


class DryRun:
    """Dry runs of one preemptor."""

    def __init__(self, cluster: Cluster, profile: Profile, cycle: CycleState, pod: PodInfo, budgets: Budgets) -> None:
        self._cluster = cluster
        self._profile = profile
        self._cycle = cycle
        self._pod = pod
        self._budgets = budgets
        steps = node_steps(profile, cycle, pod)
        self._steps = steps.steps
        self._about_nodes = steps.about_nodes
        self._only_amounts_count = steps.steps is not None and steps.by_amounts and not budgets

    def __call__(self, row: int) -> Candidate | Status:
        return self._run(self._trial_on(row), row)

    def with_plans(self, row: int, plans: PreemptionPlans) -> Candidate | Status:
        """The same, without a trial where the plans know what it comes to: from a node that is alike, or because those
        who stay are in the way."""
        table, pod, priority = self._cluster.table, self._pod, self._pod.priority
        pods = table.pods.on(row)
        lower = [other for other in pods if other.signature.priority < priority]
        if not lower:
            return NO_VICTIMS
        nominations = self._cluster.nominations
        nominated_pods = nominated_pods_on(self._cluster, pod, table.names[row]) if nominations.node_by_uid else []
        if not self._only_amounts_count:
            return self._unless_in_vain(row, pods, nominated_pods, plans)
        if len(lower) > 1:
            lower.sort(key=importance)
        suits = plans.nodes_suit.get(row)
        if suits is None:
            suits = check_node(self._about_nodes, self._cycle, pod, NodeRow(table, row)) is OK
            plans.nodes_suit[row] = suits
        if not suits:
            return self(row)
        likeness = (
            table.amount_codes.code(row),
            tuple([other.signature for other in lower]),
            tuple([nominated_pod.signature for nominated_pod in nominated_pods]),
        )
        known = plans.of_alike.get(likeness)
        if isinstance(known, tuple):
            return Candidate(table.names[row], tuple([lower[place] for place in known]), 0)
        if known is not None:
            return known
        found = self._unless_in_vain(row, pods, nominated_pods, plans)
        if len(plans.of_alike) >= _MOST_ALIKE:
            plans.of_alike.clear()
        plans.of_alike[likeness] = found if isinstance(found, Status) else tuple(map(lower.index, found.victims))
        return found

    def _unless_in_vain(
        self, row: int, pods: Sequence[PodInfo], nominated_pods: Sequence[PodInfo], plans: PreemptionPlans
    ) -> Candidate | Status:
        staying = who_stays(pods, nominated_pods, self._pod.priority)
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
        return trial_on(self._cluster, self._profile, self._cycle, self._pod, row, self._steps)

    def _run(self, trial: Trial, row: int) -> Candidate | Status:
        found = select_victims(self._cluster, trial, row, self._budgets)
        if isinstance(found, Candidate) and not found.victims:
            raise PluginError("", f'expected at least one victim pod on node "{found.node_name}"')
        return found


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
