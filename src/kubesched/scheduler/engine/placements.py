"""Topology: the sets of nodes that a pod group could go to, and the choice among those it fits in.

A plugin proposes the placements: one for each rack, say. Within each the group is tried as if there were no other
nodes. Of several that it fits in, the one with the highest score is taken; if there are several of these, one of them
by the tie-break.

A group that fits in many is not tried in all of them. Before any of its pods is placed, it is known how many find a
node in each placement at least and at most (`group_bounds`): mostly that is the same number, and then only the
placement that is taken is tried. Where it is not, those that could have the highest score are tried, until no other
can.

How many pods of a group fit on each node is counted without placing them one by one (`FitCounts`) where all pods of the
group are alike and every filter looks at nothing but the node's object and its amounts: then it does not matter which
node is chosen for which pod, and as many of them fit into a set of nodes as fit on each of its nodes together. What
becomes of the group, and how good a placement is, follow from how many fit: only the placement that is taken is tried.
What was counted is kept (`FitBook`): for later pods like these, only rows that changed since are counted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kubesched.framework.caching import Scope
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.groups import (
    CountedPlacements,
    CountedPlacementScore,
    GroupCycle,
    NormalizePlacementScores,
    Placement,
    PlacementAssignments,
    PlacementScore,
    PlacementsResult,
)
from kubesched.framework.nodes import IntArray, RowArray, RowSets
from kubesched.framework.pod_info import PodInfo, PodSignature
from kubesched.framework.results import MAX_NODE_SCORE, MIN_NODE_SCORE
from kubesched.framework.status import PluginFault, Status
from kubesched.framework.verdicts import BoolArray
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.view import NodeRow
from kubesched.scheduler.engine.class_cache.pod_class import PodClass
from kubesched.scheduler.engine.cycle import ProfileScheduler
from kubesched.scheduler.engine.filter import ask
from kubesched.scheduler.engine.group_bounds import group_room
from kubesched.scheduler.engine.group_trial import GROUP_UNSCHEDULABLE, GroupOutcome, GroupTrial, MemberOutcome
from kubesched.scheduler.engine.observations import PlacementTried
from kubesched.scheduler.engine.plugin_call import PluginError
from kubesched.scheduler.engine.prefilter import run_pre_filter
from kubesched.scheduler.engine.profile import FilterStep, Profile
from kubesched.scheduler.engine.row_check import ImaginedNode, check_node, nominated_pods_on

NO_PLACEMENT = "no feasible placements found"
_MOST_KEPT = 32
_MOST_AMOUNTS = 65_536


@dataclass(frozen=True, slots=True)
class _Fitting:
    placement: Placement
    outcome: GroupOutcome


class PlacementError(Exception):
    """Placements could not be found or scored."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def generate(
    cluster: Cluster, profile: Profile, group: GroupCycle, parent: Placement | None = None
) -> PlacementsResult:
    """What the profile's plugin proposes as parts of the parent, or of all nodes; without one, the whole."""
    everything = parent or Placement("", cluster.rows_in_order)
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
    book: FitBook | None = None,
    parent: Placement | None = None,
) -> GroupOutcome:
    """The group tried in each placement. An error ends it; without any that fits, the first one's pods tell why. With
    `keeps` its pods stay in the one that is taken. Where pods can be counted, only that one is tried."""
    found = generate(cluster, scheduler.profile, group, parent)
    if not found.status.is_success:
        return GroupOutcome(found.status)
    tried = _Tried(cluster, scheduler, trial, group, post_filter, reasons or post_filter)
    n = len(found.placements)
    if n > _FEW and group.pods and trial.can_count:
        counted = _counted(scheduler, trial, group, found.placements, book or FitBook(cluster), tried, keeps)
        if counted is not None:
            counted.n_placements = n
            return counted
    fitting = []
    for placement in found.placements:
        outcome = tried.outcome_in(placement)
        if outcome.is_feasible:
            fitting.append(_Fitting(placement, outcome))
        elif not outcome.status.is_rejected:
            return outcome
    if not fitting:
        return none_fits(tried.outcome_in(found.placements[0]), n)
    try:
        chosen = fitting[0] if len(fitting) == 1 else _best(scheduler, group, fitting, cluster)
    except PlacementError as problem:
        return GroupOutcome(Status.error(problem.message))
    chosen.outcome.placement, chosen.outcome.n_placements = chosen.placement.name, n
    if keeps and chosen.outcome.status.is_success:
        trial.place_again(chosen.outcome)
    return chosen.outcome


def none_fits(first: GroupOutcome, n: int) -> GroupOutcome:
    """What became of the group in the first of `n` placements stands for all."""
    reasons = first.status.reasons
    told = (
        GROUP_UNSCHEDULABLE if GROUP_UNSCHEDULABLE in reasons[:1] else first.status.message
    )  # as Go's errors are told
    text = f"0/{n} placements are available, first placement status: {told}"
    first.status, first.n_placements = Status.unschedulable(text), n
    return first


def _counted(
    scheduler: ProfileScheduler,
    trial: GroupTrial,
    group: GroupCycle,
    placements: Sequence[Placement],
    book: FitBook,
    tried: _Tried,
    keeps: bool,
) -> GroupOutcome | None:
    """Where it is known without trying how many pods of the group fit into each placement, only the one that is taken
    is tried, beside those about which there is a doubt; None if it takes more than that to choose."""
    scoring = scheduler.profile.counted_scores
    if scoring is None:
        return None
    parts = book.parts_of(placements)
    bounds = _bounds(scheduler, trial, group, book, parts)
    if bounds is None:
        return None
    low, high = bounds
    fits = np.zeros(len(group.pods) + 1, dtype=np.bool_)
    for n in {*low.tolist(), *high.tolist()}:
        would_fit = trial.would_fit(group, n)
        if would_fit is None:
            return None
        fits[n] = would_fit
    is_sure = np.equal(low, high) | ~fits.take(high)
    counts = np.where(is_sure, high, len(group.pods))
    is_open = ~is_sure | fits.take(high)
    if not is_sure.all() and not _settle(scoring, group, placements, parts, tried, counts, is_open, is_sure):
        return None
    places = np.flatnonzero(is_open)
    if len(places) == 0:
        first = tried.outcome_in(placements[0])
        return none_fits(first, len(placements)) if first.status.is_rejected and not first.is_feasible else None
    if len(places) > 1:
        totals = _totals(scoring, group, parts, counts, places)
        places = places.compress(totals == totals.max())
    best = [placements[place] for place in places.tolist()]
    names = [placement.name for placement in best]
    chosen = best[names.index(scheduler.tie_break.choose(names))] if len(best) > 1 else best[0]
    was_tried = tried.was_tried(chosen)
    outcome = tried.outcome_in(chosen, keeps=keeps)
    outcome.placement = chosen.name
    if not outcome.status.is_success:
        return None
    if was_tried and keeps:
        trial.place_again(outcome)
    return outcome


def _bounds(
    scheduler: ProfileScheduler, trial: GroupTrial, group: GroupCycle, book: FitBook, parts: RowSets
) -> tuple[IntArray, IntArray] | None:
    """(n_placements,) how many pods of the group fit in each, at least and at most."""
    counts = book.counts(scheduler, group.pods)
    if counts is not None:
        n_pods = counts.within_each(parts)
        return n_pods, n_pods
    room = None if trial.hides_demands else group_room(book.cluster, scheduler, group.pods, parts)
    return None if room is None else room.bounds()


def _settle(
    scoring: CountedScores,
    group: GroupCycle,
    placements: Sequence[Placement],
    parts: RowSets,
    tried: _Tried,
    counts: IntArray,
    is_open: BoolArray,
    is_sure: BoolArray,
) -> bool:
    """Tries the group in those placements about which there is a doubt and that may be the best: first in the one that
    would have the highest score if all pods fitted, until no other would have as high a score as the best that is
    known. What is found out goes into the arrays. False if it takes all of them to choose."""
    n = len(group.pods)
    if not all(getattr(plugin, "prefers_more_pods", False) for plugin, _ in scoring):
        return False
    while len(doubtful := np.flatnonzero(is_open & ~is_sure)):
        places = np.flatnonzero(is_open)
        totals = np.zeros(len(counts), dtype=np.int64)
        totals[places] = _totals(scoring, group, parts, counts, places)
        best_known = -1
        if (is_open & is_sure & (counts == n)).any():  # else scores may be relative to less than all pods
            best_known = int(totals[is_open & is_sure].max())
        place = int(doubtful[totals[doubtful].argmax()])
        if totals[place] < best_known:
            is_open[doubtful] = False
            return True
        does_fit = tried.fits_whole(placements[place])
        if does_fit is None:
            return False
        is_open[place], is_sure[place] = does_fit, True
    return True


def _totals(scoring: CountedScores, group: GroupCycle, parts: RowSets, counts: IntArray, places: RowArray) -> IntArray:
    """Of these placements."""
    if len(places) == len(counts):
        return score_counted(scoring, group, CountedPlacements(group.pods, counts, parts, None))
    return score_counted(scoring, group, CountedPlacements(group.pods, counts.take(places), parts, places))


CountedScores = Sequence[tuple[CountedPlacementScore, int]]
"""Plugins with their weights."""

_FEW = 2
"""So many placements are tried without counting first."""


class _Tried:
    """What became of the group in each placement, tried when it is first asked for."""

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
        self._outcomes: dict[str, GroupOutcome] = {}

    def was_tried(self, placement: Placement) -> bool:
        return placement.name in self._outcomes

    def fits_whole(self, placement: Placement) -> bool | None:
        """Whether all pods of the group find a node; None if only some do, and that is enough."""
        outcome = self._trial.run(
            self._group,
            self._group.pods,
            within=self._within(placement),
            post_filter=False,
            reasons=False,
            stops_early=True,
        )
        if not outcome.status.is_success:
            return False if outcome.status.is_rejected else None
        if any(member.has_failed for member in outcome.members):
            return None
        self._keep(placement, outcome)
        return True

    def outcome_in(self, placement: Placement, *, keeps: bool = False) -> GroupOutcome:
        known = self._outcomes.get(placement.name)
        if known is not None:
            return known
        outcome = self._trial.run(
            self._group,
            self._group.pods,
            within=self._within(placement),
            post_filter=self._post_filter,
            reasons=self._reasons,
            keeps=keeps,
        )
        self._keep(placement, outcome)
        return outcome

    def _within(self, placement: Placement) -> RowArray | None:
        return None if len(placement.rows) == self._n_nodes else placement.rows

    def _keep(self, placement: Placement, outcome: GroupOutcome) -> None:
        self._outcomes[placement.name] = outcome
        if self._tell is not None:
            self._tell(PlacementTried(self._group.key, placement.name, outcome))


def _best(scheduler: ProfileScheduler, group: GroupCycle, fitting: Sequence[_Fitting], cluster: Cluster) -> _Fitting:
    chosen = best_placement(cluster, scheduler, group, [(one.placement, one.outcome.members) for one in fitting])
    return next(one for one in fitting if one.placement is chosen)


def best_placement(
    cluster: Cluster,
    scheduler: ProfileScheduler,
    group: GroupCycle,
    fitting: Sequence[tuple[Placement, Sequence[MemberOutcome]]],
) -> Placement:
    """Of those that the group fits in, each with what became of the pods. Raises `PlacementError`."""
    rows = cluster.table.rows
    proposed = [
        PlacementAssignments(
            placement, [(member.decision.pod, rows[member.node_name]) for member in members if member.node_name]
        )
        for placement, members in fitting
    ]
    totals = score_placements(scheduler.profile, group, proposed)
    highest = max(totals)
    best = {placement.name: placement for (placement, _), n in zip(fitting, totals, strict=True) if n == highest}
    return best[scheduler.tie_break.choose(list(best))] if len(best) > 1 else next(iter(best.values()))


def score_placements(profile: Profile, group: GroupCycle, proposed: Sequence[PlacementAssignments]) -> list[int]:
    """The weighted sum over the plugins, of each placement. Raises `PlacementError`."""
    totals = [0] * len(proposed)
    for plugin, weight in profile.placement_score:
        scores: Sequence[int] = _asked_to_score(plugin, group, proposed)
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


def score_counted(plugins: CountedScores, group: GroupCycle, counted: CountedPlacements) -> IntArray:
    """The same by plugins that need to know only how many pods find a node in each."""
    totals: IntArray = np.zeros(len(counted.counts), dtype=np.int64)
    for plugin, weight in plugins:
        totals += plugin.score_counted(group, counted) * weight
    return totals


def _asked_to_score(plugin: PlacementScore, group: GroupCycle, proposed: Sequence[PlacementAssignments]) -> list[int]:
    try:
        return [plugin.score_placement(group, one) for one in proposed]
    except Exception as bug:
        doing = "running PlacementScore plugins"
        raise PlacementError(f'{doing}: plugin "{plugin.name}" failed with: {_said(bug)}') from bug


def _said(bug: Exception) -> str:
    return str(bug) or type(bug).__name__


# -- counting ----------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Rows:
    """How many pods of one kind fit on each row, those nominated there left aside; up to date as of `place`."""

    pod_class: PodClass | None
    """What they were counted by; None: for one group alone."""
    steps: Sequence[FilterStep]
    most: int
    """Nobody asks for more."""
    is_open: BoolArray
    nodes_end: int
    place: int
    by_code: dict[int, int]
    counts: IntArray


class FitBook:
    """Counts for groups of one cluster, one after another."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._kept: dict[PodSignature, _Rows] = {}
        self._parts: tuple[Sequence[Placement], RowSets] | None = None

    def parts_of(self, placements: Sequence[Placement]) -> RowSets:
        """Their nodes; the same as the last time for the same placements."""
        if self._parts is None or self._parts[0] is not placements:
            self._parts = placements, RowSets([placement.rows for placement in placements])
        return self._parts[1]

    def counts(self, scheduler: ProfileScheduler, pods: Sequence[PodInfo]) -> FitCounts | None:
        """None if it takes a trial to find out."""
        cluster, first = self.cluster, pods[0]
        if not scheduler.has_only_in_tree_plugins or len(cluster.nodes) == 0:
            return None
        if len(cluster.nominations) and any(cluster.nominations.node_for(pod) for pod in pods):
            return None
        if first.pin or first.spec.resource_claims or any(pod.signature is not first.signature for pod in pods):
            return None
        try:
            known = scheduler.class_of(first)
            if known is None:
                return _asked(cluster, scheduler, pods)
            layers = known.layers
            if known.looks_at_cluster or known.has_fresh or layers.row.filters:
                return None
            return FitCounts(cluster, known.cycle, pods, self._rows(known, len(pods)))
        except (PluginError, PluginFault):
            return None

    def _rows(self, known: PodClass, n_pods: int) -> _Rows:
        signature, nodes_end = known.pod.signature, known.places.nodes
        kept = self._kept.pop(signature, None)
        if kept is None or kept.pod_class is not known or kept.nodes_end != nodes_end or kept.most < n_pods:
            n = len(self.cluster.nodes)
            most = n_pods if kept is None else max(n_pods, kept.most)
            kept = _uncounted(self.cluster, known, known.layers.amounts.filters, most, known.layers.node.fits[:n])
        self._kept[signature] = kept
        while len(self._kept) > _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return kept


def _asked(cluster: Cluster, scheduler: ProfileScheduler, pods: Sequence[PodInfo]) -> FitCounts | None:
    """Where no class is kept, or none fits: every filter is asked about every node."""
    cycle, first = CycleState(), pods[0]
    prefilter = run_pre_filter(scheduler.profile, cycle, first, cluster.nodes)
    if not prefilter.status.is_success or prefilter.node_names is not None:
        return None
    by_scope: dict[Scope, list[FilterStep]] = {Scope.NODE: [], Scope.AMOUNTS: []}
    for step in scheduler.profile.filter:
        if step.name in cycle.skip_filter:
            continue
        scope = step.scope_for(first)
        if scope not in by_scope or step.filter_node is None:
            return None
        by_scope[scope].append(step)
    is_open = np.ones(len(cluster.nodes), dtype=np.bool_)
    for step in by_scope[Scope.NODE]:
        verdicts = ask(step, cycle, first, cluster.nodes)
        if verdicts.errors:
            return None
        if len(verdicts.rejected):
            is_open &= ~verdicts.rejected
    return FitCounts(cluster, cycle, pods, _uncounted(cluster, None, by_scope[Scope.AMOUNTS], len(pods), is_open))


def _uncounted(
    cluster: Cluster, known: PodClass | None, steps: Sequence[FilterStep], most: int, is_open: BoolArray
) -> _Rows:
    counts: IntArray = np.zeros(len(is_open), dtype=np.int64)
    return _Rows(known, steps, most, is_open, cluster.table.journal.nodes.end, -1, {}, counts)


class FitCounts:
    """For one group, while nodes stay the same; pods may come and go."""

    def __init__(self, cluster: Cluster, cycle: CycleState, pods: Sequence[PodInfo], rows: _Rows) -> None:
        self._cluster = cluster
        self._cycle = cycle
        self._pods = pods
        self._rows = rows
        self._nominated = self._nominated_pods()

    def within(self, rows: RowArray | None = None) -> int:
        """How many pods of the group fit on these rows, or on all; not more than there are."""
        counts = self._by_row()
        return min(int((counts if rows is None else counts[rows]).sum()), len(self._pods))

    def within_each(self, parts: RowSets) -> IntArray:
        """(n_parts,) the same for each of these sets of rows."""
        return np.minimum(parts.sums(self._by_row()), len(self._pods))

    def nodes_to_spare(self) -> int:
        """How many nodes, whichever they are, could be full, and all pods would fit on the others."""
        counts = self._by_row()
        return (int(counts.sum()) - len(self._pods)) // max(int(counts.max()), 1)

    def _by_row(self) -> IntArray:
        self._catch_up()
        counts = self._rows.counts
        if self._nominated:
            counts = counts.copy()
            for row in self._nominated:
                counts[row] = self._fitting(row, len(self._pods)) if self._rows.is_open[row] else 0
        return counts

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
        known, log = self._rows, self._cluster.table.journal.pods
        if known.place == log.end:
            return
        if known.place < 0 or log.since(known.place) is None:
            rows = np.flatnonzero(known.is_open).tolist()
        else:
            rows = [row for row in set(log.rows_since(known.place).tolist()) if known.is_open.item(row)]
        known.place = log.end
        self._count(rows)

    def _count(self, rows: Sequence[int]) -> None:
        codes, by_code, most = self._cluster.table.amount_codes, self._rows.by_code, self._rows.most
        counts = self._rows.counts
        for row in rows:
            code = codes.code(row)
            known = by_code.get(code)
            if known is None:
                if len(by_code) >= _MOST_AMOUNTS:
                    by_code.clear()
                known = by_code[code] = self._fitting(row, most, with_nominated=False)
            counts[row] = known

    def _fitting(self, row: int, most: int, *, with_nominated: bool = True) -> int:
        """On one node, by imagining one after another there; pods of the group are alike."""
        node, pod = ImaginedNode(NodeRow(self._cluster.table, row)), self._pods[0]
        for other in self._nominated.get(row, ()) if with_nominated else ():
            node.bring(other)
        for n in range(most):
            if not check_node(self._rows.steps, self._cycle, pod, node).is_success:
                return n
            node.bring(pod)
        return most
