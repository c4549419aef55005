"""Preemption of old: every node where it may help is tried, and the least harm is chosen by the rules of a version.

For cycles in which extenders take part it is a plugin of the profile. Victims went before a cycle was over, then. Here
they are asked to go, and the pod waits for that, as today.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.events import RegisteredEvent
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import NodeStatuses, NominatingMode, PostFilterResult
from kubesched.framework.status import OK, Code, Status
from kubesched.k8s.model.core import PodDisruptionBudget
from kubesched.k8s.model.selectors import SelectorError, from_label_selector
from kubesched.older.config import Generation
from kubesched.older.config.generations import BudgetRule
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.config import DefaultPreemptionArgs
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.engine.plugin_call import PluginError
from kubesched.scheduler.engine.preemption.candidates import (
    RULES,
    RULES_BUT_START,
    Candidate,
    CandidateReview,
    Preemption,
    importance,
    least_harmful,
)
from kubesched.scheduler.engine.preemption.victims import TableTrial
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.engine.score import TieBreak
from kubesched.scheduler.plugins.default_preemption import DefaultPreemption

Attempt = Callable[[CycleState, PodInfo, NodeStatuses], PostFilterResult]


class PreemptionOfThen:
    name: ClassVar[str] = DefaultPreemption.name

    def __init__(self, attempt: Attempt, handle: EngineHandle) -> None:
        self._attempt = attempt
        self._today = DefaultPreemption(DefaultPreemptionArgs(), handle)

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return self._today.pre_enqueue(pod)

    def post_filter(self, cycle: CycleState, pod: PodInfo, statuses: NodeStatuses) -> PostFilterResult:
        return self._attempt(cycle, pod, statuses)

    def events_to_register(self) -> Sequence[RegisteredEvent]:
        return self._today.events_to_register()


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


NOT_ELIGIBLE = PostFilterResult(Status.unschedulable("not eligible"))
NO_HELP_ANYWHERE = PostFilterResult(Status.unschedulable("no candidates"), NominatingMode.OVERRIDE)
NO_CANDIDATES = PostFilterResult(Status.unschedulable("no candidates"))


@dataclass(frozen=True, slots=True)
class OlderPreemption:
    """One attempt to preempt."""

    cluster: Cluster
    profile: Profile
    tie_break: TieBreak
    generation: Generation

    def attempt(self, cycle: CycleState, pod: PodInfo, statuses: NodeStatuses) -> PostFilterResult:
        """Decides who would be evicted where. Where a node was found, the cycle keeps the `Preemption`."""
        if not self._may_preempt(pod, statuses):
            return NOT_ELIGIBLE
        review = cycle.find(CandidateReview)
        if review is not None and review.answer is not None:
            return self._take_reviewed(cycle, review.answer)
        rows = statuses.resolvable_rows().tolist()
        if not rows:
            return NO_HELP_ANYWHERE
        budgets = OlderBudgets(self.cluster.objects.pod_disruption_budgets.values(), self.generation.budgets)
        tried = [self._try(cycle, pod, row, budgets) for row in rows]
        candidates = tuple(candidate for candidate in tried if candidate is not None)
        if not candidates:
            return NO_CANDIDATES
        if review is not None:
            review.candidates = candidates
            return PostFilterResult(OK)  # what the review leaves of them is taken later
        return self._take(cycle, candidates)

    def _take(self, cycle: CycleState, candidates: tuple[Candidate, ...]) -> PostFilterResult:
        best = least_harmful_of_old(candidates, by_start_time=self.generation.victims_by_start_time)
        name = self.tie_break.choose([candidate.node_name for candidate in best])
        chosen = next(candidate for candidate in best if candidate.node_name == name)
        cycle.put(Preemption(name, chosen.victims, candidates, best))
        return PostFilterResult(OK, NominatingMode.OVERRIDE, name)

    def _take_reviewed(self, cycle: CycleState, answer: tuple[Candidate, ...] | Status) -> PostFilterResult:
        if isinstance(answer, Status):
            return PostFilterResult(answer)
        return self._take(cycle, answer) if answer else NO_CANDIDATES

    def _may_preempt(self, pod: PodInfo, statuses: NodeStatuses) -> bool:
        """Not while pods of lower priority are leaving the node that it was nominated to."""
        honours_policy = self.generation.honours_preemption_policy
        if honours_policy and pod.spec.preemption_policy == "Never":
            return False
        nominated = pod.pod.status.nominated_node_name
        row = self.cluster.table.rows.get(nominated)
        if row is None:
            return True
        if honours_policy and statuses.status_of(nominated).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return True
        return not any(o.pod.is_terminating and o.priority < pod.priority for o in self.cluster.table.pods.on(row))

    def _try(self, cycle: CycleState, pod: PodInfo, row: int, budgets: OlderBudgets) -> Candidate | None:
        """The node with its victims, if evicting them helps. Table and state are as before afterwards."""
        table = self.cluster.table
        order = list(table.pods.on(row))
        lower = [other for other in order if other.priority < pod.priority]
        if not lower and self.generation.needs_victims:
            return None
        trial = TableTrial(self.cluster, self.profile, cycle.fork(), pod, row)
        gone: list[PodInfo] = []
        with table.journal.paused():
            try:
                return self._find_victims(trial, lower, budgets, gone)
            finally:
                for other in gone:
                    table.add_pod(other, row)
                table.pods.restore_order(row, order)

    def _find_victims(
        self, trial: TableTrial, lower: list[PodInfo], budgets: OlderBudgets, gone: list[PodInfo]
    ) -> Candidate | None:
        """Takes all of lower priority away, then brings back whoever can stay; those of broken budgets first."""
        for other in lower:
            trial.take_away(other)
            gone.append(other)
        if not _fits(trial):
            return None
        key: Callable[[PodInfo], object] = importance if self.generation.victims_by_start_time else _by_priority
        breaking, harmless = budgets.split(sorted(lower, key=key))  # type: ignore[arg-type]
        victims: list[PodInfo] = []
        n_violations = 0
        for other in [*breaking, *harmless]:
            trial.bring_back(other)
            gone.remove(other)
            if _fits(trial):
                continue
            trial.take_away(other)
            gone.append(other)
            victims.append(other)
            n_violations += other in breaking
        return Candidate(trial.node_name, tuple(victims), n_violations)


def least_harmful_of_old(candidates: Sequence[Candidate], *, by_start_time: bool) -> tuple[Candidate, ...]:
    """As today's choice, but that a node without victims goes before all, and when victims started may not count. The
    first victim counts as the most important, even if one of a violated budget comes before it."""
    free = [candidate for candidate in candidates if not candidate.victims]
    if free:
        return least_harmful(free, ())
    return least_harmful(candidates, RULES if by_start_time else RULES_BUT_START)


def _by_priority(pod: PodInfo) -> int:
    return -pod.priority


def _fits(trial: TableTrial) -> bool:
    """A filter that breaks counts as one that rejects."""
    try:
        return trial.status().is_success
    except PluginError:
        return False
