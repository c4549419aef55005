"""Topology: the sets of nodes that a pod group could go to, tried one by one, and the choice among those it fits in.

A plugin proposes the placements: one for each rack, say. Within each the group is tried as if there were no other
nodes. Of several that it fits in, the one with the highest score is taken; if there are several of these, one of them
by the tie-break.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubesched.framework.groups import (
    GroupCycle,
    NormalizePlacementScores,
    Placement,
    PlacementAssignments,
    PlacementsResult,
)
from kubesched.framework.results import MAX_NODE_SCORE, MIN_NODE_SCORE
from kubesched.framework.status import Status
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.cycle import ProfileScheduler
from kubesched.scheduler.engine.group_trial import GROUP_UNSCHEDULABLE, GroupOutcome, GroupTrial
from kubesched.scheduler.engine.observations import PlacementTried
from kubesched.scheduler.engine.profile import Profile

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
) -> GroupOutcome:
    """The group tried in each placement. An error ends it; without any that fits, the first one's pods tell why. With
    `keeps` its pods stay in the one that is taken."""
    found = generate(cluster, scheduler.profile, group)
    if not found.status.is_success:
        return GroupOutcome(found.status)
    tell = scheduler.profile.observers.steps
    n_nodes = len(cluster.nodes)
    first: GroupOutcome | None = None
    fitting: list[_Fitting] = []
    for placement in found.placements:
        within = None if len(placement.rows) == n_nodes else placement.rows
        outcome = trial.run(group, group.pods, within=within, post_filter=post_filter)
        if tell is not None:
            tell(PlacementTried(group.key, placement.name, outcome))
        if not outcome.status.is_success and not outcome.status.is_rejected:
            return outcome
        if first is None:
            first = outcome
        if outcome.is_feasible:
            fitting.append(_Fitting(placement, outcome))
    assert first is not None
    n = len(found.placements)
    if not fitting:
        text = f"0/{n} placements are available, first placement status: {GROUP_UNSCHEDULABLE}"
        first.status, first.n_placements = Status.unschedulable(text), n
        return first
    try:
        chosen = fitting[0] if len(fitting) == 1 else _best(scheduler, group, fitting, cluster)
    except PlacementError as problem:
        return GroupOutcome(Status.error(problem.message))
    chosen.outcome.placement, chosen.outcome.n_placements = chosen.placement.name, n
    if keeps and chosen.outcome.status.is_success:
        trial.place_again(chosen.outcome)
    return chosen.outcome


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
