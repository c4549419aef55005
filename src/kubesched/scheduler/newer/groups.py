"""The cycle of a pod group in v1.37: tried as long as it can still become complete, and preempting as a whole.

Whether it is complete is asked before the first pod and after each one (PlacementFeasible), so that a gang that cannot
fit any more is given up at once. No pod preempts by itself. Victims are brought back one by one as long as each pod of
the group still fits on the node that was found for it without them; the group is nominated to these nodes.

Next: `kubesched.scheduler.engine.group_cycle`, which this changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.groups import GroupCycle
from kubesched.framework.nodes import RowArray
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Code, Status
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.scheduling import POD_GROUP_INITIALLY_SCHEDULED, AnyGroup, PodGroup
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.cycle import MemberTrial
from kubesched.scheduler.engine.group_cycle import KEPT, OVER, GroupAttempt, GroupCycles, nominated_to
from kubesched.scheduler.engine.group_trial import (
    GROUP_UNSCHEDULABLE,
    GroupOutcome,
    GroupTrial,
    MemberOutcome,
    PlacedMember,
)
from kubesched.scheduler.engine.plugin_call import PluginError
from kubesched.scheduler.engine.preemption.group_victims import GroupPreemption
from kubesched.scheduler.newer.queued_group import QueuedGroup
from kubesched.scheduler.queue import QueuedPodInfo

_PREEMPTION = "pod group preemption: "
_CLAIMS_FREED = "deallocation and deletion of ResourceClaims completed"
"""Of DynamicResources, which is asked first and says so whether there were any claims or not."""
_ONGOING = Status(Code.SUCCESS, (f"{_PREEMPTION}ongoing preemption on nominated nodes",))
_DEFAULT_POLICY = "PreemptLowerPriority"
_OF_THE_GROUP = " as the pod group's preemption policy"
Assignments = list[tuple[PodInfo, str]]
"""Pods, and the node of each."""


class NewerTrial(GroupTrial):
    def run(
        self,
        group: GroupCycle,
        pods: Sequence[PodInfo],
        *,
        within: RowArray | None = None,
        post_filter: bool = True,
        reasons: bool = True,
        keeps: bool = False,
        stops_early: bool = False,
    ) -> GroupOutcome:
        trial, start = MemberTrial(group, within, False, reasons), self.n_placed
        needed, n_scheduled = _needed(self._cluster, group.key), self._n_scheduled(group)
        outcome = GroupOutcome(feasible(needed, n_scheduled, len(pods)))
        if outcome.status.code is Code.UNSCHEDULABLE:
            return GroupOutcome(Status.unschedulable(GROUP_UNSCHEDULABLE, *outcome.status.reasons))
        try:
            for n_tried, pod in enumerate(pods, start=1):
                member = self._try(pod, trial)
                outcome.members.append(member)
                if member.has_failed and not member.status.is_rejected:
                    text = f"failed to schedule other pod from a pod group: {member.status.message}"
                    outcome.status = Status.error(text)
                    break
                n_scheduled += member.status.is_success
                outcome.status = feasible(needed, n_scheduled, len(pods) - n_tried)
                if outcome.status.code is Code.UNSCHEDULABLE:
                    break
            if outcome.status.code is Code.WAIT:
                outcome.status = Status.unschedulable(GROUP_UNSCHEDULABLE, *outcome.status.reasons)
        finally:
            if not (keeps and outcome.status.is_success):
                self.take_back(start)
        return outcome

    def would_fit(self, group: GroupCycle, n_pods: int) -> bool:
        return feasible(_needed(self._cluster, group.key), self._n_scheduled(group) + n_pods, 0).is_success

    def still_fit(self, group: GroupCycle, assignments: Assignments) -> bool:
        """Whether each pod, one after another, fits on the node that it has."""
        rows = self._cluster.table.rows
        try:
            for pod, node_name in assignments:
                there = np.array([rows[node_name]])
                if not self._try(pod, MemberTrial(group, there, False, False)).status.is_success:
                    return False
        finally:
            self.take_back()
        return True

    def _permit(self, placed: PlacedMember, member: MemberOutcome) -> Status:
        """Asked only of pods that are bound."""
        return OK


def feasible(needed: int, n_scheduled: int, n_remaining: int) -> Status:
    """What GangScheduling says to PlacementFeasible."""
    counts = f"{n_scheduled} scheduled, {n_remaining} remaining"
    if n_scheduled + n_remaining < needed:
        return Status.unschedulable(f"minCount ({needed}) cannot be satisfied: {counts}")
    if n_scheduled < needed:
        return Status(Code.WAIT, (f"minCount ({needed}) is not yet satisfied: {counts}",))
    return OK


def _needed(cluster: Cluster, key: str) -> int:
    """A group that takes what it gets needs one pod."""
    group = cluster.objects.pod_groups.get(key)
    return 1 if group is None else group.min_count or 1


class NewerGroupCycles(GroupCycles):
    gives_way: ClassVar[bool] = False
    condition_type: ClassVar[str] = POD_GROUP_INITIALLY_SCHEDULED
    trial_type: ClassVar[type[GroupTrial]] = NewerTrial

    def _key_of(self, popped: QueuedPodInfo) -> str:
        assert isinstance(popped, QueuedGroup)
        return popped.group

    def _collect(self, popped: QueuedPodInfo, now_s: float) -> list[QueuedPodInfo]:
        """The queue gives the whole group at once."""
        assert isinstance(popped, QueuedGroup)
        return sorted(popped.members.values(), key=self._order)

    def _order(self, one: QueuedPodInfo) -> tuple[float | str, ...]:
        return -one.info.priority, -one.attempts, one.queued_at_s, one.key

    def _problem(self, key: str, queued: Sequence[QueuedPodInfo]) -> str:
        """Pods that have a node already are asked, too."""
        if problem := super()._problem(key, queued):
            return problem
        group, members = self._group(key), self._cluster.group_members(key)
        placed = [] if members is None else [info.pod for info in members.scheduled_pods()]
        pods = [*(member.info.pod for member in queued), *placed]
        wanted = 0 if group is None else group.priority
        policy, whose = _policy(pods[0].spec.preemption_policy), ""
        if self._features.own_preemption_policy:
            policy, whose = _policy(None if group is None else group.spec.preemption_policy), _OF_THE_GROUP
        for pod in pods:
            if pod.priority != wanted:
                text = "all pods in a single pod group should have the same priority as the pod group's priority"
                return f"{text}, got {pod.priority} and {wanted}"
            if (own := _policy(pod.spec.preemption_policy)) != policy:
                text = "all pods in a single pod group should have the same preemption policy"
                return f"{text}{whose}, got {own} and {policy}"
        return ""

    def _group(self, key: str) -> AnyGroup | None:
        forest = self._cluster.forest
        return None if forest is None else forest.get(key)

    def _refuse(self, key: str, queued: Sequence[QueuedPodInfo], problem: str, now_s: float) -> None:
        super()._refuse(key, queued, problem, now_s)
        self._conditions.report(key, Status.error(problem), now_s)

    def _try(
        self, attempt: GroupAttempt, *, post_filter: bool = True, reasons: bool = False, keeps: bool = False
    ) -> GroupOutcome:
        outcome = super()._try(attempt, post_filter=post_filter, reasons=reasons, keeps=keeps)
        if outcome.status.is_success and not any(member.node_name for member in outcome.members):
            outcome.status = Status.unschedulable(GROUP_UNSCHEDULABLE)
        return told_of_placements(outcome)

    def _preempt(self, attempt: GroupAttempt, outcome: GroupOutcome) -> GroupPreemption | None:
        """Changes the outcome to what follows from it. Gives whom to evict."""
        outcome.before_preemption = outcome.status
        cycle, assignments = CycleState(), Assignments()
        status = self._find_room(attempt, cycle, assignments)
        if not status.is_success and not status.is_rejected:
            outcome.status = status
            return None
        outcome.status = Status(outcome.status.code, (*outcome.status.reasons, status.message))
        if not status.is_success:
            return None
        outcome.waits_for_preemption = True
        outcome.nominations = {pod.key: node_name for pod, node_name in assignments}
        return cycle.find(GroupPreemption)

    def _find_room(self, attempt: GroupAttempt, cycle: CycleState, assignments: Assignments) -> Status:
        """Groups with a topology preempt as all others do. `assignments` is filled."""
        plugins = attempt.scheduler.profile.pod_group_post_filter
        group = self._group(attempt.group.key)
        if not plugins or group is None:
            return Status.unschedulable("")
        if self._is_going_on(attempt.group, group):
            nominated = ((pod, self._cluster.nominations.node_of(pod)) for pod in attempt.group.pods)
            assignments.extend((pod, node_name) for pod, node_name in nominated if node_name)
            return _ONGOING
        trial = attempt.trial
        assert isinstance(trial, NewerTrial)

        def fits() -> Status:
            if assignments:
                return OK if trial.still_fit(attempt.group, assignments) else Status.unschedulable()
            status, found = self._where_it_fits(attempt)
            if status.is_success:
                assignments.extend(found)
            return status

        try:
            status = plugins[0].pod_group_post_filter(cycle, attempt.group, group, fits)
        except PluginError as bug:
            return Status.error(bug.message)
        if status.is_success:
            evicting = cycle.find(GroupPreemption)
            n_victims = 0 if evicting is None else len(evicting.victims)
            text = f"{_PREEMPTION}found a placement for podgroup, preempting {n_victims} victims"
            return Status(Code.SUCCESS, (text,))
        if not status.is_rejected:
            return status
        told = f"{_PREEMPTION}{status.message}"
        is_plain = isinstance(group, PodGroup) and group.spec.scheduling_constraints is None
        hears_claims = status.code is Code.UNSCHEDULABLE and is_plain
        return Status(status.code, (_CLAIMS_FREED, told) if hears_claims else (told,))

    def _where_it_fits(self, attempt: GroupAttempt) -> tuple[Status, Assignments]:
        """As the table is now."""
        outcome = self._try(attempt, post_filter=False)
        return outcome.status, [(one.decision.pod, one.node_name) for one in outcome.members if one.node_name]

    def _is_going_on(self, group: GroupCycle, pod_group: AnyGroup) -> bool:
        """Pods that the scheduler evicted are still leaving a node that one of the group is nominated to."""
        rows = self._cluster.table.rows
        for pod in group.pods:
            row = rows.get(self._cluster.nominations.node_of(pod))
            leaving = () if row is None else self._cluster.table.pods.on(row)
            if any(other.priority < pod_group.priority and _was_preempted(other.pod) for other in leaving):
                return True
        return False

    def _send_back(
        self, attempt: GroupAttempt, outcome: GroupOutcome, queued: QueuedPodInfo, member: MemberOutcome | None
    ) -> None:
        room = outcome.nominations.get(queued.key)
        nominated = nominated_to(room) if room else KEPT
        started_s, now_s = attempt.started_s, attempt.now_s
        if not outcome.status.is_rejected or (member is not None and not member.status.is_success):
            super()._send_back(attempt, outcome, queued, member)
        elif member is None:
            self._fail(queued, outcome.before_preemption or outcome.status, nominated, started_s, now_s)
        elif outcome.waits_for_preemption:
            self._fail(queued, outcome.status, nominated, started_s, now_s)
        else:
            rejected = Status.unschedulable(GROUP_UNSCHEDULABLE, outcome.status.message)
            self._fail(queued, rejected, OVER, started_s, now_s)


def told_of_placements(outcome: GroupOutcome) -> GroupOutcome:
    """Where placements were tried in vain, the words for that come first."""
    if outcome.status.is_rejected and outcome.n_placements:
        outcome.status = Status.unschedulable(GROUP_UNSCHEDULABLE, *outcome.status.reasons)
    return outcome


def _policy(given: str | None) -> str:
    return given or _DEFAULT_POLICY


def _was_preempted(pod: Pod) -> bool:
    reasons = {one.reason for one in pod.status.conditions or () if one.type == "DisruptionTarget"}
    return pod.is_terminating and "PreemptionByScheduler" in reasons
