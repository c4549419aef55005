"""Topology: the sets of nodes that a pod group could go to, tried one by one, and the choice among those it fits in.

A plugin proposes the placements: one for each rack, say. Within each the group is tried as if there were no other
nodes. Of several that it fits in, the one with the highest score is taken; if there are several of these, one of them
by the tie-break.

How many pods of a group fit on each node is counted without placing them one by one (`FitCounts`) where all pods of the
group are alike and every filter looks at nothing but the node's object and its amounts: then it does not matter which
node is chosen for which pod, and as many of them fit into a set of nodes as fit on each of its nodes together. What
becomes of the group follows from how many fit: of many racks, or of many pods that may stay or have to leave, only one
of each number needs to be tried. The counts are kept up to date as pods are taken off nodes and brought back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kubesched.framework.caching import Scope
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.groups import (
    GroupCycle,
    NormalizePlacementScores,
    Placement,
    PlacementAssignments,
    PlacementsResult,
)
from kubesched.framework.nodes import IntArray, RowArray
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import MAX_NODE_SCORE, MIN_NODE_SCORE
from kubesched.framework.status import PluginFault, Status
from kubesched.framework.verdicts import BoolArray
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.view import NodeRow
from kubesched.scheduler.engine.cycle import ProfileScheduler
from kubesched.scheduler.engine.filter import ask
from kubesched.scheduler.engine.group_trial import GROUP_UNSCHEDULABLE, GroupOutcome, GroupTrial
from kubesched.scheduler.engine.observations import PlacementTried
from kubesched.scheduler.engine.plugin_call import PluginError
from kubesched.scheduler.engine.prefilter import run_pre_filter
from kubesched.scheduler.engine.profile import FilterStep, Profile
from kubesched.scheduler.engine.row_check import ImaginedNode, check_node, nominated_pods_on

NO_PLACEMENT = "no feasible placements found"


@dataclass(frozen=True, slots=True)
class _Fitting:
    placement: Placement
    outcome: GroupOutcome


class PlacementError(Exception):
    """Placements could not be found or scored."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def generate(cluster: Cluster, profile: Profile, group: GroupCycle) -> PlacementsResult:
    """What the profile's plugin proposes; without one, all nodes."""
    everything = Placement("", cluster.rows_in_order)
    if not profile.placement_generate:
        return PlacementsResult(placements=[everything])
    (plugin,) = profile.placement_generate
    try:
        found = plugin.generate_placements(group, everything)
    except Exception as bug:  # noqa: BLE001  whatever a plugin raises is its error
        return PlacementsResult(Status.error(str(bug) or type(bug).__name__))
    if found.status.is_success and not found.placements:
        return PlacementsResult(Status.unschedulable(NO_PLACEMENT).by(plugin.name))
    return found


def choose_placement(
    cluster: Cluster,
    scheduler: ProfileScheduler,
    trial: GroupTrial,
    group: GroupCycle,
    *,
    post_filter: bool,
    keeps: bool,
    reasons: bool = False,
) -> GroupOutcome:
    """The group tried in each placement. An error ends it; without any that fits, the first one's pods tell why. With
    `keeps` its pods stay in the one that is taken."""
    found = generate(cluster, scheduler.profile, group)
    if not found.status.is_success:
        return GroupOutcome(found.status)
    tried = _Tried(cluster, scheduler, trial, group, post_filter, reasons or post_filter)
    if len(found.placements) > _FEW and trial.can_count:
        tried.counts = fit_counts(cluster, scheduler, group.pods)
    for placement in found.placements:
        outcome = tried.outcome_of(placement)
        if not outcome.status.is_success and not outcome.status.is_rejected:
            return outcome
    n = len(found.placements)
    fitting = [_Fitting(one, tried.outcome_of(one)) for one in found.placements if tried.outcome_of(one).is_feasible]
    if not fitting:
        first = tried.outcome_of(found.placements[0])
        text = f"0/{n} placements are available, first placement status: {GROUP_UNSCHEDULABLE}"
        first.status, first.n_placements = Status.unschedulable(text), n
        return first
    try:
        chosen = fitting[0] if len(fitting) == 1 else _best(scheduler, group, fitting, cluster)
    except PlacementError as problem:
        return GroupOutcome(Status.error(problem.message))
    outcome = tried.in_placement(chosen.placement)
    outcome.placement, outcome.n_placements = chosen.placement.name, n
    if keeps and outcome.status.is_success:
        trial.place_again(outcome)
    return outcome


_FEW = 2
"""So many placements are tried without counting first."""


class _Tried:
    """What became of the group in each placement. Where pods can be counted, one of those in which the same number
    fits is tried for all of them."""

    def __init__(
        self,
        cluster: Cluster,
        scheduler: ProfileScheduler,
        trial: GroupTrial,
        group: GroupCycle,
        post_filter: bool,
        reasons: bool,
    ) -> None:
        self._n_nodes = len(cluster.nodes)
        self._tell = scheduler.profile.observers.steps
        self._trial = trial
        self._group = group
        self._post_filter = post_filter
        self._reasons = reasons
        self.counts: FitCounts | None = None
        self._by_count: dict[int, str] = {}
        self._alike: dict[str, str] = {}
        """By name of a placement, the one that was tried in its place, or itself."""
        self._outcomes: dict[str, GroupOutcome] = {}

    def outcome_of(self, placement: Placement) -> GroupOutcome:
        """In this placement, or in one that is as good."""
        name = placement.name
        alike = self._alike.get(name)
        if alike is None and self.counts is not None:
            alike = self._by_count.setdefault(self.counts.within(placement.rows), name)
            self._alike[name] = alike
        return self._outcomes[alike] if alike in self._outcomes else self.in_placement(placement)

    def in_placement(self, placement: Placement) -> GroupOutcome:
        """In this placement itself."""
        known = self._outcomes.get(placement.name)
        if known is not None:
            return known
        within = None if len(placement.rows) == self._n_nodes else placement.rows
        outcome = self._trial.run(
            self._group, self._group.pods, within=within, post_filter=self._post_filter, reasons=self._reasons
        )
        self._outcomes[placement.name] = outcome
        self._alike.setdefault(placement.name, placement.name)
        if self._tell is not None:
            self._tell(PlacementTried(self._group.key, placement.name, outcome))
        return outcome


def _best(scheduler: ProfileScheduler, group: GroupCycle, fitting: Sequence[_Fitting], cluster: Cluster) -> _Fitting:
    rows = cluster.table.rows
    proposed = [
        PlacementAssignments(
            one.placement,
            [(member.decision.pod, rows[member.node_name]) for member in one.outcome.members if member.node_name],
        )
        for one in fitting
    ]
    totals = score_placements(scheduler.profile, group, proposed)
    highest = max(totals)
    best = {one.placement.name: one for one, total in zip(fitting, totals, strict=True) if total == highest}
    return best[scheduler.tie_break.choose(list(best))] if len(best) > 1 else next(iter(best.values()))


def score_placements(profile: Profile, group: GroupCycle, proposed: Sequence[PlacementAssignments]) -> list[int]:
    """The weighted sum over the plugins, of each placement. Raises `PlacementError`."""
    totals = [0] * len(proposed)
    for plugin, weight in profile.placement_score:
        scores: Sequence[int] = _asked(profile, plugin.name, group, proposed)
        if isinstance(plugin, NormalizePlacementScores):
            try:
                scores = plugin.normalize_placement_scores(group, scores)
            except Exception as bug:
                doing = "running NormalizePlacementScore on PlacementScore plugins"
                raise PlacementError(f'{doing}: plugin "{plugin.name}" failed with: {_said(bug)}') from bug
        for place, score in enumerate(scores):
            if not MIN_NODE_SCORE <= score <= MAX_NODE_SCORE:
                raise PlacementError(
                    f'applying score defaultWeights on PlacementScore plugins: plugin "{plugin.name}" returns an '
                    f"invalid score {score}, it should in the range of [{MIN_NODE_SCORE}, {MAX_NODE_SCORE}] after "
                    "normalizing"
                )
            totals[place] += score * weight
    return totals


def _asked(profile: Profile, name: str, group: GroupCycle, proposed: Sequence[PlacementAssignments]) -> list[int]:
    plugin = next(plugin for plugin, _ in profile.placement_score if plugin.name == name)
    try:
        return [plugin.score_placement(group, one) for one in proposed]
    except Exception as bug:
        doing = "running PlacementScore plugins"
        raise PlacementError(f'{doing}: plugin "{name}" failed with: {_said(bug)}') from bug


def _said(bug: Exception) -> str:
    return str(bug) or type(bug).__name__


def fit_counts(cluster: Cluster, scheduler: ProfileScheduler, pods: Sequence[PodInfo]) -> FitCounts | None:
    """None if it takes a trial to find out."""
    first = pods[0]
    if not scheduler.has_only_in_tree_plugins or len(cluster.nodes) == 0:
        return None
    if len(cluster.nominations) and any(cluster.nominations.node_for(pod) for pod in pods):
        return None
    if first.pin or first.spec.resource_claims or any(pod.signature is not first.signature for pod in pods):
        return None
    cycle = CycleState()
    try:
        prefilter = run_pre_filter(scheduler.profile, cycle, first, cluster.nodes)
        if not prefilter.status.is_success or prefilter.node_names is not None:
            return None
        steps = [step for step in scheduler.profile.filter if step.name not in cycle.skip_filter]
        by_scope: dict[Scope, list[FilterStep]] = {Scope.NODE: [], Scope.AMOUNTS: []}
        for step in steps:
            scope = step.scope_for(first)
            if scope not in by_scope or step.filter_node is None:
                return None
            by_scope[scope].append(step)
        return FitCounts(cluster, cycle, pods, by_scope[Scope.NODE], by_scope[Scope.AMOUNTS])
    except (PluginError, PluginFault):
        return None


class FitCounts:
    def __init__(
        self,
        cluster: Cluster,
        cycle: CycleState,
        pods: Sequence[PodInfo],
        node_steps: Sequence[FilterStep],
        amount_steps: Sequence[FilterStep],
    ) -> None:
        self._cluster = cluster
        self._cycle = cycle
        self._pods = pods
        self._steps = amount_steps
        self._by_code: dict[int, int] = {}
        self._nominated = self._nominated_pods()
        self._open = self._let_in(node_steps)
        self._place = cluster.table.journal.pods.end
        self._counts: IntArray = np.zeros(len(self._open), dtype=np.int64)
        self._count(np.flatnonzero(self._open))

    def within(self, rows: RowArray | None = None) -> int:
        """How many pods of the group fit on these rows, or on all; not more than there are."""
        self._catch_up()
        counts = self._counts if rows is None else self._counts[rows]
        return min(int(counts.sum()), len(self._pods))

    def _let_in(self, steps: Sequence[FilterStep]) -> BoolArray:
        """(n_nodes,) whose node's object is no obstacle."""
        nodes = self._cluster.nodes
        found = np.ones(len(nodes), dtype=np.bool_)
        for step in steps:
            verdicts = ask(step, self._cycle, self._pods[0], nodes)
            if verdicts.errors:
                raise PluginError(step.name, "a node cannot be judged")
            if len(verdicts.rejected):
                found &= ~verdicts.rejected
        return found

    def _nominated_pods(self) -> dict[int, list[PodInfo]]:
        """By row, the pods of others that are nominated there, and that those of the group must not overtake."""
        cluster = self._cluster
        rows = cluster.table.rows
        found = {
            rows[name]: nominated_pods_on(cluster, self._pods[0], name)
            for name in cluster.nominations.node_names()
            if name in rows
        }
        return {row: pods for row, pods in found.items() if pods}

    def _catch_up(self) -> None:
        log = self._cluster.table.journal.pods
        if self._place == log.end:
            return
        if log.since(self._place) is None:
            rows = np.flatnonzero(self._open)
        else:
            rows = np.unique(log.rows_since(self._place))
            rows = rows[self._open[rows]]
        self._place = log.end
        self._count(rows)

    def _count(self, rows: RowArray) -> None:
        codes = self._cluster.table.amount_codes
        for row in rows.tolist():
            if row in self._nominated:
                self._counts[row] = self._fitting(row)
                continue
            code = codes.code(row)
            known = self._by_code.get(code)
            if known is None:
                known = self._by_code[code] = self._fitting(row)
            self._counts[row] = known

    def _fitting(self, row: int) -> int:
        """On one node, by imagining one after another there."""
        node = ImaginedNode(NodeRow(self._cluster.table, row))
        for other in self._nominated.get(row, ()):
            node.bring(other)
        for n, pod in enumerate(self._pods):
            if not check_node(self._steps, self._cycle, pod, node).is_success:
                return n
            node.bring(pod)
        return len(self._pods)
