"""The cycle of a group of groups in v1.37: its children are tried one after another, each as if it stood alone.

A group of groups fits if enough of its children do. With a topology constraint that is tried in each placement, a part
of its parent's; the best is taken, and stays as it is for the groups that come after it. What belongs to a group that
does not fit is taken back. In the end PodGroups are bound or sent back, and have conditions; groups of groups do not.

    tree trial   ─▶ outcome of each group ─▶ those that do not fit decide for the groups below ─▶ preemption, for the
                    topmost group, if that does not fit ─▶ each PodGroup is submitted

Next: `kubesched.scheduler.cluster.group_forest`, which knows who belongs where.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.groups import GroupCycle, Placement
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Code, Status
from kubesched.k8s.model.scheduling import CompositePodGroup, group_key_of, is_composite
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.group_forest import GroupForest
from kubesched.scheduler.engine.group_cycle import GroupAttempt
from kubesched.scheduler.engine.group_trial import GROUP_UNSCHEDULABLE, GroupOutcome, GroupTrial, MemberOutcome
from kubesched.scheduler.engine.placements import PlacementError, best_placement, choose_placement, generate, none_fits
from kubesched.scheduler.engine.preemption.group_victims import GroupPreemption
from kubesched.scheduler.newer.groups import Assignments, NewerGroupCycles, feasible, told_of_placements
from kubesched.scheduler.queue import QueuedPodInfo

Outcomes = dict[str, GroupOutcome]
"""By group, of either kind. Groups that were not tried are missing."""

_OF_A_CHILD = "composite pod group evaluation failed due to child error"


class TreeTrial:
    """The trial of a topmost group and all below it. What fits stays placed until the trial of pods takes it back."""

    def __init__(self, cluster: Cluster, attempt: GroupAttempt, *, reasons: bool) -> None:
        assert cluster.forest is not None
        self._cluster = cluster
        self._forest: GroupForest = cluster.forest
        self._scheduler = attempt.scheduler
        self._trial: GroupTrial = attempt.trial
        self._reasons = reasons
        self._pods: dict[str, list[PodInfo]] = {}
        for info in attempt.group.pods:
            self._pods.setdefault(group_key_of(info.pod), []).append(info)

    def run(self, root: str) -> Outcomes:
        found: Outcomes = {}
        outcome = self._try(root, Placement("", self._cluster.rows_in_order), found)
        if outcome.status.is_success and not self._trial.n_placed:
            outcome.status = Status.unschedulable(GROUP_UNSCHEDULABLE)
        return found

    def _try(self, key: str, parent: Placement, found: Outcomes) -> GroupOutcome:
        group = self._forest.get(key)
        if isinstance(group, CompositePodGroup):
            outcome = self._try_in_placements(group, parent, found)
        else:
            cycle = GroupCycle(key, self._pods.get(key, []))
            outcome = choose_placement(
                self._cluster,
                self._scheduler,
                self._trial,
                cycle,
                post_filter=False,
                reasons=self._reasons,
                keeps=True,
                parent=parent,
            )
            told_of_placements(outcome)
        found[key] = outcome
        return outcome

    def _try_in_placements(self, group: CompositePodGroup, parent: Placement, found: Outcomes) -> GroupOutcome:
        key, start = group.group_key, self._trial.n_placed
        cycle = GroupCycle(key, ())
        generated = generate(self._cluster, self._scheduler.profile, cycle, parent)
        if not generated.status.is_success:
            return GroupOutcome(generated.status)
        first: Outcomes | None = None
        fitting: list[tuple[Placement, Outcomes]] = []
        for placement in generated.placements:
            below: Outcomes = {}
            outcome = self._try_children(group, placement, below)
            if outcome.status.is_success and len(generated.placements) == 1:
                found.update(below)
                return outcome
            self._trial.take_back(start)
            if not outcome.status.is_success and not outcome.status.is_rejected:
                return outcome
            first = below if first is None else first
            if outcome.status.is_success:
                fitting.append((placement, below))
        if not fitting:
            assert first is not None
            found.update(first)
            return told_of_placements(none_fits(first[key], len(generated.placements)))
        try:
            chosen = self._best(cycle, fitting)
        except PlacementError as problem:
            return GroupOutcome(Status.error(problem.message))
        for leaf in self._fitting_below(key, chosen):
            self._trial.place_again(chosen[leaf])
        found.update(chosen)
        return chosen[key]

    def _try_children(self, group: CompositePodGroup, placement: Placement, below: Outcomes) -> GroupOutcome:
        children, start = self._forest.children(group.group_key), self._trial.n_placed
        needed, n_fitting = group.min_count or 1, 0
        status = feasible(needed, 0, len(children))
        for n_tried, child in enumerate(children if status.code is not Code.UNSCHEDULABLE else (), start=1):
            outcome = self._try(child.group_key, placement, below)
            if not outcome.status.is_success and not outcome.status.is_rejected:
                status = Status.error(f"{_OF_A_CHILD}: {outcome.status.message}")
                break
            n_fitting += outcome.status.is_success
            status = feasible(needed, n_fitting, len(children) - n_tried)
            if status.code is Code.UNSCHEDULABLE:
                break
        if not status.is_success:
            self._trial.take_back(start)
        below[group.group_key] = outcome = GroupOutcome(status, placement=placement.name)
        return outcome

    def _best(self, cycle: GroupCycle, fitting: Sequence[tuple[Placement, Outcomes]]) -> Outcomes:
        if len(fitting) == 1:
            return fitting[0][1]
        members = [(placement, self._members_below(cycle.key, below)) for placement, below in fitting]
        chosen = best_placement(self._cluster, self._scheduler, cycle, members)
        return next(below for placement, below in fitting if placement is chosen)

    def _members_below(self, key: str, outcomes: Outcomes) -> list[MemberOutcome]:
        return [member for leaf in self._fitting_below(key, outcomes) for member in outcomes[leaf].members]

    def _fitting_below(self, key: str, outcomes: Outcomes) -> Iterator[str]:
        """The PodGroups that fit, and all of whose parents do."""
        outcome = outcomes.get(key)
        if outcome is None or not outcome.status.is_success:
            return
        if not is_composite(key):
            yield key
        else:
            for child in self._forest.children(key):
                yield from self._fitting_below(child.group_key, outcomes)


class CompositeCycles(NewerGroupCycles):
    """Of groups of either kind."""

    def _attempt(self, attempt: GroupAttempt) -> None:
        root = attempt.group.key
        if not is_composite(root):
            super()._attempt(attempt)
            return
        outcomes = TreeTrial(self._cluster, attempt, reasons=True).run(root)
        self._decide_for_those_below(root, outcomes, OK)
        self._metrics.group_decided(attempt.started_s)
        evicting = None
        if self._features.preemption and outcomes[root].status.code is Code.UNSCHEDULABLE:
            evicting = self._preempt_for_tree(attempt, outcomes)
        self._submit_tree(attempt, outcomes)
        if evicting is not None:
            self._preemptions.start_for_group(attempt.group.pods[0], evicting)
            self._bindings.call_off_preempted(attempt.now_s)

    def _decide_for_those_below(self, key: str, outcomes: Outcomes, above: Status) -> None:
        """What fits does not if its parent does not, and what was not tried fares as its parent does."""
        outcome = outcomes.get(key)
        if outcome is None or (outcome.status.is_success and not above.is_success):
            outcome = outcomes[key] = GroupOutcome(above)
        assert self._cluster.forest is not None
        for child in self._cluster.forest.children(key) if is_composite(key) else ():
            self._decide_for_those_below(child.group_key, outcomes, outcome.status)

    def _refuse(self, key: str, queued: Sequence[QueuedPodInfo], problem: str, now_s: float) -> None:
        super()._refuse(key, queued, problem, now_s)
        assert self._cluster.forest is not None
        for leaf in self._cluster.forest.leaves(key) if is_composite(key) else ():
            self._conditions.report(leaf, Status.error(problem), now_s)

    # -- preemption ----------------------------------------------------------------------------------------------------

    def _preempt_for_tree(self, attempt: GroupAttempt, outcomes: Outcomes) -> GroupPreemption | None:
        """Changes all outcomes to what follows from it. Gives whom to evict."""
        cycle, assignments = CycleState(), Assignments()
        status = self._find_room(attempt, cycle, assignments)
        is_error = not status.is_success and not status.is_rejected
        nominations = {pod.key: node_name for pod, node_name in assignments} if status.is_success else {}
        shared = Counter(id(outcome.status) for outcome in outcomes.values())
        for outcome in outcomes.values():
            known = outcome.before_preemption = outcome.status
            # v1.37 adds to one status as often as groups share it
            more = (status.message,) * shared[id(known)]
            outcome.status = status if is_error else Status(known.code, (*known.reasons, *more))
            outcome.waits_for_preemption, outcome.nominations = status.is_success, nominations
        return cycle.find(GroupPreemption) if status.is_success else None

    def _where_it_fits(self, attempt: GroupAttempt) -> tuple[Status, Assignments]:
        """Pods of groups that do not fit count as well, where they found a node."""
        root = attempt.group.key
        if not is_composite(root):
            return super()._where_it_fits(attempt)
        outcomes = TreeTrial(self._cluster, attempt, reasons=False).run(root)
        attempt.trial.take_back()
        members = [member for outcome in outcomes.values() for member in outcome.members]
        return outcomes[root].status, [(one.decision.pod, one.node_name) for one in members if one.node_name]

    # -- submit --------------------------------------------------------------------------------------------------------

    def _submit_tree(self, attempt: GroupAttempt, outcomes: Outcomes) -> None:
        assert self._cluster.forest is not None
        kept = attempt.trial.take_kept()
        queued: dict[str, list[QueuedPodInfo]] = {}
        for member in attempt.queued:
            queued.setdefault(group_key_of(member.info.pod), []).append(member)
        for leaf in self._cluster.forest.leaves(attempt.group.key):
            own = queued.get(leaf, [])
            cycle = GroupCycle(leaf, [member.info for member in own])
            part = GroupAttempt(cycle, own, attempt.scheduler, attempt.started_s, attempt.now_s, attempt.trial)
            self._submit_pods(part, outcomes[leaf], kept)
        self._submitted(attempt, outcomes[attempt.group.key])
