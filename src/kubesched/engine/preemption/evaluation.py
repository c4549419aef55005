"""One attempt to make room: eligibility, candidates, choice."""

from __future__ import annotations

from kubesched.cluster import Cluster
from kubesched.engine.plugin_call import PluginError
from kubesched.engine.preemption.budgets import Budgets
from kubesched.engine.preemption.candidates import Candidate, Preemption
from kubesched.engine.preemption.choice import least_harmful
from kubesched.engine.preemption.victims import Trial, select_victims
from kubesched.engine.profile import Profile
from kubesched.engine.select import TieBreak
from kubesched.framework.cycle import Cycle
from kubesched.framework.handle import PreemptionLimits
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import NodeStatuses, NominatingMode, PostFilterResult
from kubesched.framework.status import OK, Code, Status

_NEVER = "not eligible due to preemptionPolicy=Never."
_TERMINATING = "not eligible due to a terminating pod on the nominated node."
_NOT_HELPFUL = "Preemption is not helpful for scheduling"


def preempt(
    cluster: Cluster,
    profile: Profile,
    tie_break: TieBreak,
    cycle: Cycle,
    pod: PodInfo,
    statuses: NodeStatuses,
    limits: PreemptionLimits,
) -> PostFilterResult:
    """Decides who would be evicted where; carrying it out is the loop's business. Where a node was
    found, the cycle keeps the `Preemption`."""
    reason = _ineligible(cluster, pod, statuses)
    if reason:
        return PostFilterResult(Status.unschedulable(reason))
    candidates, failures, errors = _dry_run(cluster, profile, tie_break, cycle, pod, statuses, limits)
    if not candidates:
        if errors:
            return PostFilterResult(Status.error(*errors))
        reason = _nowhere(len(cluster.nodes), failures)
        return PostFilterResult(Status.unschedulable(reason), NominatingMode.OVERRIDE)
    best = least_harmful(candidates)
    name = tie_break.choose([candidate.node_name for candidate in best])
    chosen = next(candidate for candidate in best if candidate.node_name == name)
    cycle.put(Preemption(name, chosen.victims, tuple(candidates), best))
    return PostFilterResult(OK, NominatingMode.OVERRIDE, name)


def _ineligible(cluster: Cluster, pod: PodInfo, statuses: NodeStatuses) -> str:
    """Why the pod may not preempt, or nothing."""
    if pod.spec.preemption_policy == "Never":
        return _NEVER
    nominated = pod.pod.status.nominated_node_name
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


def _dry_run(
    cluster: Cluster,
    profile: Profile,
    tie_break: TieBreak,
    cycle: Cycle,
    pod: PodInfo,
    statuses: NodeStatuses,
    limits: PreemptionLimits,
) -> tuple[list[Candidate], dict[str, Status], list[str]]:
    """Candidates until there are enough; the statuses of nodes where evictions do not help; what broke."""
    rows = statuses.resolvable_rows()
    enough = _candidates_to_find(limits, len(rows))
    offset = tie_break.offset(len(rows))
    budgets = Budgets(cluster.objects.pod_disruption_budgets.values())
    candidates: list[Candidate] = []
    failures: dict[str, Status] = {}
    errors: list[str] = []
    harmless_found = False
    for row in rows[offset:] + rows[:offset]:
        try:
            found = select_victims(Trial(cluster, profile, cycle, pod, row), budgets)
        except PluginError as bug:
            errors.append(bug.message)
            continue
        if isinstance(found, Status):
            failures[cluster.table.names[row]] = found
            continue
        if not found.victims:
            errors.append(f'expected at least one victim pod on node "{found.node_name}"')
            continue
        candidates.append(found)
        harmless_found = harmless_found or not found.n_budget_violations
        if harmless_found and len(candidates) >= enough:
            break
    return candidates, failures, errors


def _candidates_to_find(limits: PreemptionLimits, n_nodes: int) -> int:
    wanted = n_nodes * limits.min_candidate_nodes_percentage // 100
    return min(max(wanted, limits.min_candidate_nodes_absolute), n_nodes)


def _nowhere(n_nodes: int, failures: dict[str, Status]) -> str:
    counts: dict[str, int] = {}
    for status in failures.values():
        for reason in status.reasons:
            counts[reason] = counts.get(reason, 0) + 1
    if len(failures) < n_nodes:
        counts[_NOT_HELPFUL] = counts.get(_NOT_HELPFUL, 0) + n_nodes - len(failures)
    lines = sorted(f"{count} {reason}" for reason, count in counts.items())
    return f"0/{n_nodes} nodes are available: {', '.join(lines)}."
