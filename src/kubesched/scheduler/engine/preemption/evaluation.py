"""One attempt to preempt: eligibility, candidates, choice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import PreemptionLimits
from kubesched.framework.nodes import RowArray
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import NodeStatuses, NominatingMode, PostFilterResult
from kubesched.framework.status import OK, Code, Status
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.observations import PreemptionConsidered
from kubesched.scheduler.engine.plugin_call import PluginError
from kubesched.scheduler.engine.preemption.candidates import (
    Candidate,
    CandidateReview,
    MakePlan,
    Preemption,
    PreemptionPlans,
    least_harmful,
)
from kubesched.scheduler.engine.preemption.victims import NO_VICTIMS, Budgets, DryRun
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.engine.score import TieBreak

_NEVER = "not eligible due to preemptionPolicy=Never."
_TERMINATING = "not eligible due to a terminating pod on the nominated node."
_NOT_HELPFUL = "Preemption is not helpful for scheduling"
_NO_CANDIDATE = Status.unschedulable("no candidate node for preemption")


def preempt(
    cluster: Cluster,
    profile: Profile,
    tie_break: TieBreak,
    cycle: CycleState,
    pod: PodInfo,
    statuses: NodeStatuses,
    limits: PreemptionLimits,
) -> PostFilterResult:
    """Decides who would be evicted where; carrying it out is the loop's business. Where a node was
    found, the cycle keeps the `Preemption`."""
    tell = profile.observers.steps
    reason = _ineligible(cluster, pod, statuses)
    if reason:
        if tell is not None:
            tell(PreemptionConsidered(pod, ineligible=reason))
        return PostFilterResult(Status.unschedulable(reason), lasts=reason is _NEVER)
    review = cycle.find(CandidateReview)
    if review is not None and review.answer is not None:
        return _take_reviewed(tie_break, cycle, review.answer)
    rows = statuses.resolvable_rows()
    start = tie_break.offset(len(rows))
    plans = None if review is not None else cycle.find(PreemptionPlans)
    if plans is not None:
        plans.draw = partial(tie_break.offset, len(rows))
        if plans.nowhere is not None and tell is None:
            return plans.nowhere
    enough = _candidates_to_find(limits, len(rows))
    if pod.priority <= cluster.table.pods.lowest_priority:
        result = _nobody_to_evict(len(cluster.nodes), len(rows), lasts=plans is not None)
        if plans is not None:
            plans.nowhere = result
    else:
        budgets = Budgets(
            cluster.objects.pod_disruption_budgets.values(), stops_when_broken=limits.stops_at_broken_budget
        )
        dry_run = DryRun(cluster, profile, cycle, pod, budgets)
        result = _find(cluster, tie_break, cycle, dry_run, review, plans, rows, start, enough)
    if tell is not None:
        numbers = len(rows), len(cluster.objects.pod_disruption_budgets), start, enough
        tell(PreemptionConsidered(pod, "", *numbers, result.node_name))
    return result


def _find(
    cluster: Cluster,
    tie_break: TieBreak,
    cycle: CycleState,
    dry_run: DryRun,
    review: CandidateReview | None,
    plans: PreemptionPlans | None,
    rows: RowArray,
    start: int,
    enough: int,
) -> PostFilterResult:
    planned = None if plans is None else _planned(plans, dry_run, rows, start, enough)
    if plans is not None and planned is not None:
        if len(planned):
            row = tie_break.choose_row(plans.least_harmful(planned), cluster.table.names)
            return _take_planned(plans.candidate(row), cycle)
        plans.nowhere = _nowhere(len(cluster.nodes), *plans.failure_counts(), lasts=True)
        return plans.nowhere
    candidates, failures, errors = _search(np.roll(rows, -start), enough, dry_run)
    if not candidates:
        if errors:
            return PostFilterResult(Status.error(*errors))
        counts = Counter(reason for status in failures for reason in status.reasons)
        return _nowhere(len(cluster.nodes), counts, len(failures))
    if review is not None:
        review.candidates = tuple(candidates)
        return PostFilterResult(OK)  # what the review leaves of them is taken later
    return _take(tie_break, cycle, candidates)


def _planned(plans: PreemptionPlans, dry_run: DryRun, rows: RowArray, start: int, enough: int) -> RowArray | None:
    """None if a plugin breaks over a node: then it matters on which of the others candidates are found."""
    try:
        return plans.search(rows, start, enough, lambda row: dry_run.with_plans(row, plans))
    except PluginError:
        return None


def _take_reviewed(tie_break: TieBreak, cycle: CycleState, answer: tuple[Candidate, ...] | Status) -> PostFilterResult:
    if isinstance(answer, Status):
        return PostFilterResult(answer)
    return _take(tie_break, cycle, answer) if answer else PostFilterResult(_NO_CANDIDATE)


def _take(tie_break: TieBreak, cycle: CycleState, candidates: Sequence[Candidate]) -> PostFilterResult:
    best = least_harmful(candidates)
    name = tie_break.choose([candidate.node_name for candidate in best])
    chosen = next(candidate for candidate in best if candidate.node_name == name)
    cycle.put(Preemption(name, chosen.victims, tuple(candidates), best))
    return PostFilterResult(OK, NominatingMode.OVERRIDE, name)


def _take_planned(chosen: Candidate, cycle: CycleState) -> PostFilterResult:
    """Of the candidates that were planned before, only the chosen one is told."""
    cycle.put(Preemption(chosen.node_name, chosen.victims, (chosen,), (chosen,)))
    return PostFilterResult(OK, NominatingMode.OVERRIDE, chosen.node_name)


def _ineligible(cluster: Cluster, pod: PodInfo, statuses: NodeStatuses) -> str:
    """Why the pod may not preempt, or nothing."""
    if pod.spec.preemption_policy == "Never":
        return _NEVER
    nominated = cluster.nominations.node_for(pod)
    row = cluster.table.rows.get(nominated)
    if row is None or statuses.status_of(nominated).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return ""
    leaving = any(o.priority < pod.priority and _is_leaving_for_us(o) for o in cluster.table.pods.on(row))
    return _TERMINATING if leaving else ""


def _is_leaving_for_us(info: PodInfo) -> bool:
    """Whether the pod is being deleted because the scheduler evicted it."""
    if not info.pod.is_terminating:
        return False
    for condition in info.pod.status.conditions or ():
        if condition.type == "DisruptionTarget":
            return condition.status == "True" and condition.reason == "PreemptionByScheduler"
    return False


def _search(rows: RowArray, enough: int, dry_run: MakePlan) -> tuple[list[Candidate], list[Status], list[str]]:
    """Candidates until there are enough; why evictions do not help on other nodes; what broke."""
    candidates: list[Candidate] = []
    failures: list[Status] = []
    errors: list[str] = []
    harmless_found = False
    for row in rows.tolist():
        try:
            found = dry_run(row)
        except PluginError as bug:
            errors.append(bug.message)
            continue
        if isinstance(found, Status):
            failures.append(found)
            continue
        candidates.append(found)
        harmless_found = harmless_found or not found.n_budget_violations
        if harmless_found and len(candidates) >= enough:
            break
    return candidates, failures, errors


def _candidates_to_find(limits: PreemptionLimits, n_nodes: int) -> int:
    wanted = n_nodes * limits.min_candidate_nodes_percentage // 100
    return min(max(wanted, limits.min_candidate_nodes_absolute), n_nodes)


@lru_cache(maxsize=64)  # most pods that wait find nobody, on as many nodes as before
def _nobody_to_evict(n_nodes: int, n_rows: int, *, lasts: bool) -> PostFilterResult:
    """What dry runs on these rows would come to, if no pod anywhere has a lower priority."""
    return _nowhere(n_nodes, dict.fromkeys(NO_VICTIMS.reasons, n_rows) if n_rows else {}, n_rows, lasts=lasts)


def _nowhere(n_nodes: int, counts: dict[str, int], n_failures: int, *, lasts: bool = False) -> PostFilterResult:
    """`counts` has the reasons why evictions do not help on so many nodes; on the others nobody tried."""
    if n_failures < n_nodes:
        counts[_NOT_HELPFUL] = counts.get(_NOT_HELPFUL, 0) + n_nodes - n_failures
    lines = sorted(f"{count} {reason}" for reason, count in counts.items())
    reason = f"0/{n_nodes} nodes are available: {', '.join(lines)}."
    return PostFilterResult(Status.unschedulable(reason), NominatingMode.OVERRIDE, lasts=lasts)
