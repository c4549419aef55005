"""A pod group's cycle: its pods are taken out of the queue together, tried together, and bound or sent back together.

    1. collect    the pod that was popped, and all others of its group that wait anywhere in the queue; if they fit all
                  the same, pods that come in that moment go first (`giving_way`)
    2. try        `group_trial` places them in turn and takes that back; with topology, `placements` does so for each
                  set of nodes, and chooses one
    3. preempt    where the group does not fit: whole groups may be evicted for it
    4. submit     every pod that found a node is bound, if the group fits; else each goes back with its reason
    5. report     the condition of the PodGroup, where it changes; once it is True it stays so: pods that come later and
                  do not fit say so themselves

A gang that fits only after evictions goes back, too, nominated to where it would go. Evictions for single pods of it
are set going only if the whole group fits with them.

Next: `binding_cycles` for the pods that are bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.effects import PatchPodGroupStatus
from kubesched.framework.groups import GroupCycle, GroupFeatures
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import NominatingMode, PostFilterResult
from kubesched.framework.status import OK, Code, Status
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.scheduling import POD_GROUP_SCHEDULED, GroupCondition, group_key_of
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.binding_cycles import BindingCycles
from kubesched.scheduler.engine.cycle import ProfileScheduler
from kubesched.scheduler.engine.extender import GroupPauses, MissingAdviceError, PausedGroup
from kubesched.scheduler.engine.failure import SCHEDULER_ERROR, UNSCHEDULABLE, FailureHandler, Told
from kubesched.scheduler.engine.giving_way import StandingGroup, is_of_one_profile, nodes_to_spare
from kubesched.scheduler.engine.group_trial import (
    GROUP_UNSCHEDULABLE,
    GroupOutcome,
    GroupTrial,
    MemberOutcome,
    PlacedMember,
)
from kubesched.scheduler.engine.metrics.loop_metrics import LoopMetrics
from kubesched.scheduler.engine.observations import GroupAttemptBegan, GroupDecided, GroupMissing, Observers
from kubesched.scheduler.engine.outbox import Outbox
from kubesched.scheduler.engine.placements import FitBook, choose_placement
from kubesched.scheduler.engine.plugin_call import PluginError
from kubesched.scheduler.engine.preemption.execution import PreemptionExecutor
from kubesched.scheduler.engine.preemption.group_victims import GroupPreemption, victims_away
from kubesched.scheduler.queue import QueuedPodInfo, SchedulingQueue

KEPT = PostFilterResult(Status.unschedulable())
"""The nomination stays as it is."""
OVER: PostFilterResult | None = None
"""The nomination is over."""
_NOT_REGISTERED = "default preemption plugin is not registered, workload aware preemption is disabled"
_HAS_CONSTRAINTS = "workload aware preemption is not supported for pod groups with scheduling constraints"


@dataclass(slots=True)
class GroupAttempt:
    group: GroupCycle
    queued: list[QueuedPodInfo]
    scheduler: ProfileScheduler
    started_s: float
    now_s: float
    trial: GroupTrial


class GroupCycles:
    gives_way: ClassVar[bool] = True
    """Whether a group may let others go first when its turn has come."""
    condition_type: ClassVar[str] = POD_GROUP_SCHEDULED
    trial_type: ClassVar[type[GroupTrial]] = GroupTrial

    def __init__(
        self,
        cluster: Cluster,
        queue: SchedulingQueue,
        schedulers: Mapping[str, ProfileScheduler],
        failures: FailureHandler,
        bindings: BindingCycles,
        preemptions: PreemptionExecutor,
        conditions: GroupConditions,
        features: GroupFeatures,
        metrics: LoopMetrics,
        observers: Observers,
        pauses: GroupPauses | None = None,
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        self._schedulers = schedulers
        self._failures = failures
        self._bindings = bindings
        self._preemptions = preemptions
        self._conditions = conditions
        self._features = features
        self._metrics = metrics
        self._observers = observers
        self._pauses = pauses
        self._book = FitBook(cluster)
        self.standing: StandingGroup | None = None
        """A group that steps aside: it is next, but for pods that may go first."""
        self.others_come = False
        """Whether a pod of no group was tried since a group last asked itself whether to step aside."""
        self._may_give_way = self.gives_way and not features.alpha and pauses is None

    def uids(self) -> set[str]:
        """Of pods that were taken out of the queue, and wait to be tried."""
        return set() if self.standing is None else {member.uid for member in self.standing.queued}

    def schedule(self, popped: QueuedPodInfo, now_s: float) -> None:
        """The cycle of the group that the pod belongs to, or the group stands aside. What it raises cost all of its
        pods a try."""
        queued = self._collect(popped, now_s)
        key = self._key_of(popped)
        if self.others_come and self._may_give_way:
            self.others_come = False
            if (n_spare := self._nodes_to_spare(key, queued)) > 0:
                since_s = max(member.queued_at_s for member in queued)
                self.standing = StandingGroup(key, queued, min(n_spare, len(queued)), since_s)
                return
        self._guarded(key, queued, now_s, partial(self._schedule, key, queued, now_s))

    def _nodes_to_spare(self, key: str, queued: Sequence[QueuedPodInfo]) -> int:
        if not is_of_one_profile(queued):
            return 0
        scheduler = self._schedulers[queued[0].info.spec.scheduler_name]
        group = GroupCycle(key, [member.info for member in queued])
        return nodes_to_spare(self._cluster, scheduler, group, self._book, has_topology=self._features.topology)

    def go_on(self, now_s: float) -> None:
        """The group that stood aside is tried, as everything is now."""
        standing, self.standing = self.standing, None
        assert standing is not None
        queued = [member for member in standing.queued if self._failures.is_still_wanted(member)]
        if queued:
            self._guarded(standing.key, queued, now_s, partial(self._schedule, standing.key, queued, now_s))
        else:
            self._queue.group_attempted(standing.key, OK, now_s)

    def resume(self, now_s: float) -> None:
        """The groups go on whose answers of extenders are there."""
        while self._pauses is not None and (paused := self._pauses.take_ready()) is not None:
            paused.queued = [member for member in paused.queued if self._failures.is_still_wanted(member)]
            if paused.queued:
                self._guarded(paused.key, paused.queued, now_s, partial(self._go_on, paused, now_s))
            else:
                self._queue.group_attempted(paused.key, OK, now_s)

    def _guarded(self, key: str, queued: list[QueuedPodInfo], now_s: float, do: Callable[[], None]) -> None:
        try:
            do()
        except Exception as bug:
            for member in queued:
                self._bindings.attempt_broke(member, bug, now_s)
            self._queue.group_attempted(key, Status.error(str(bug)), now_s)
            raise

    # -- collect -------------------------------------------------------------------------------------------------------

    def _key_of(self, popped: QueuedPodInfo) -> str:
        return group_key_of(popped.info.pod)

    def _collect(self, popped: QueuedPodInfo, now_s: float) -> list[QueuedPodInfo]:
        groups = self._cluster.groups
        state = None if groups is None else groups.get(group_key_of(popped.info.pod))
        queued = [popped]
        for key in list(state.unscheduled) if state is not None else ():
            mate = self._queue.pop_specific(key, now_s) if key != popped.key else None
            if mate is not None:
                queued.append(mate)
        queued.sort(key=self._order)
        return queued

    def _order(self, one: QueuedPodInfo) -> tuple[float | str, ...]:
        """Those of the highest priority first, then those that could be tried first; of equals, by name."""
        return -one.info.priority, one.initial_attempt_at_s or 0.0, one.key

    def _problem(self, key: str, queued: Sequence[QueuedPodInfo]) -> str:
        """Why these pods cannot be tried together; empty if they can."""
        names = [member.info.spec.scheduler_name for member in queued]
        other = next((name for name in names if name != names[0]), None)
        if other is None:
            return ""
        what = "all pods in a single pod group should have the same .spec.schedulerName set"
        return f'{what}, got: "{other}" and "{names[0]}"'

    def _refuse(self, key: str, queued: Sequence[QueuedPodInfo], problem: str, now_s: float) -> None:
        for member in queued:
            self._fail(member, Status.error(problem), OVER, 0.0, now_s)
        self._queue.group_attempted(key, Status.error(problem), now_s)

    def _schedule(self, key: str, queued: list[QueuedPodInfo], now_s: float) -> None:
        if problem := self._problem(key, queued):
            self._refuse(key, queued, problem, now_s)
            return
        wanted = []
        for member in queued:
            if self._failures.is_skipped(member.info):
                self._queue.done(member.uid)
            else:
                wanted.append(member)
        if not wanted:
            self._queue.group_attempted(key, OK, now_s)
            return
        pods = [member.info for member in wanted]
        if self._observers.steps is not None:
            self._observers.steps(GroupAttemptBegan(key, pods))
        scheduler = self._schedulers[wanted[0].info.spec.scheduler_name]
        started_s = self._metrics.cycle_started()
        if self._pauses is not None and (advice := self._pauses.advice_for(scheduler, pods)):
            self._pauses.ask(PausedGroup(key, wanted, scheduler, advice, started_s))
            self.resume(now_s)
            return
        trial = self.trial_type(self._cluster, scheduler, now_s, hides_demands=self._features.alpha)
        self._tried(GroupAttempt(GroupCycle(key, pods), wanted, scheduler, started_s, now_s, trial))

    def _go_on(self, paused: PausedGroup, now_s: float) -> None:
        group = GroupCycle(paused.key, [member.info for member in paused.queued])
        alpha, decide = self._features.alpha, paused.advice.decide
        trial = self.trial_type(self._cluster, paused.scheduler, now_s, hides_demands=alpha, decide=decide)
        try:
            self._tried(GroupAttempt(group, paused.queued, paused.scheduler, paused.started_s, now_s, trial))
        except MissingAdviceError as missing:
            assert self._pauses is not None
            self._pauses.ask(paused, missing.names)

    def _tried(self, attempt: GroupAttempt) -> None:
        try:
            self._attempt(attempt)
        finally:
            attempt.trial.take_back()

    def _attempt(self, attempt: GroupAttempt) -> None:
        outcome = self._try(attempt, keeps=not self._features.alpha)
        if not self._features.alpha and outcome.status.is_rejected and not outcome.waits_for_preemption:
            outcome = self._fitting_without_evictions(attempt, outcome)
        self._metrics.group_decided(attempt.started_s)
        evicting = None
        if self._features.preemption and outcome.status.code is Code.UNSCHEDULABLE:
            evicting = self._preempt(attempt, outcome)
        self._submit(attempt, outcome)
        if evicting is not None:
            self._preemptions.start_for_group(attempt.group.pods[0], evicting)
            self._bindings.call_off_preempted(attempt.now_s)

    # -- try -----------------------------------------------------------------------------------------------------------

    def _try(
        self, attempt: GroupAttempt, *, post_filter: bool = True, reasons: bool = False, keeps: bool = False
    ) -> GroupOutcome:
        """Pods that fit nowhere tell why if PostFilter runs, or if that is asked for."""
        trial, group, reasons = attempt.trial, attempt.group, reasons or post_filter
        if self._features.topology:
            return choose_placement(
                self._cluster,
                attempt.scheduler,
                trial,
                group,
                book=self._book,
                post_filter=post_filter,
                reasons=reasons,
                keeps=keeps,
            )
        return trial.run(group, group.pods, post_filter=post_filter, reasons=reasons, keeps=keeps)

    def _fitting_without_evictions(self, attempt: GroupAttempt, outcome: GroupOutcome) -> GroupOutcome:
        """A pod that fits only if others leave may have taken the room that its mates need, and the group does not fit
        with it: perhaps it does without."""
        if not any(member.requires_preemption for member in outcome.members):
            return outcome
        without = self._try(attempt, post_filter=False, reasons=True, keeps=True)
        return without if without.status.is_success else outcome

    def _preempt(self, attempt: GroupAttempt, outcome: GroupOutcome) -> GroupPreemption | None:
        """Changes the outcome to what follows from it. Gives whom to evict."""
        cycle = CycleState()
        status = self._find_victims(attempt, cycle)
        if status.is_success:
            outcome.waits_for_preemption = True
            evicting = cycle.find(GroupPreemption)
            if evicting is not None and not self._features.alpha:
                with victims_away(self._cluster, evicting.victims):
                    members = self._try(attempt, post_filter=False).members
                outcome.nominations = {one.decision.pod.key: one.node_name for one in members if one.node_name}
            return evicting
        if status.is_rejected:
            outcome.status = Status(outcome.status.code, (*outcome.status.reasons, status.message))
        else:
            outcome.status = status
        return None

    def _find_victims(self, attempt: GroupAttempt, cycle: CycleState) -> Status:
        plugins = attempt.scheduler.profile.pod_group_post_filter
        if not plugins:
            return Status.unschedulable(_NOT_REGISTERED)
        key = attempt.group.key
        pod_group = self._cluster.objects.pod_groups.get(key)
        if pod_group is None:
            name = key.partition("/")[2]
            return Status.error(f'failed to get pod group object: podgroup.scheduling.k8s.io "{name}" not found')
        if pod_group.topology_key:
            return Status.unschedulable(_HAS_CONSTRAINTS)
        counts = None
        if not self._features.topology and attempt.trial.can_count:
            counts = self._book.counts(attempt.scheduler, attempt.group.pods)
        known: dict[int, Status] = {}

        def fits() -> Status:
            n_fitting = -1 if counts is None else counts.within()
            if n_fitting in known:
                return known[n_fitting]
            status = self._try(attempt, post_filter=False).status
            if counts is not None:
                known[n_fitting] = status
            return status

        try:
            return plugins[0].pod_group_post_filter(cycle, attempt.group, pod_group, fits)
        except PluginError as bug:
            return Status.error(bug.message)

    # -- submit --------------------------------------------------------------------------------------------------------

    def _submit(self, attempt: GroupAttempt, outcome: GroupOutcome) -> None:
        self._submit_pods(attempt, outcome, attempt.trial.take_kept())
        self._submitted(attempt, outcome)

    def _submitted(self, attempt: GroupAttempt, outcome: GroupOutcome) -> None:
        """All that is left to do once every pod is on its way."""
        self._failures.send_requests(attempt.scheduler.profile)
        self._bindings.call_off_preempted(attempt.now_s)
        self._metrics.group_attempted(
            attempt.scheduler.profile.scheduler_name, outcome.status, outcome.waits_for_preemption, attempt.started_s
        )
        self._queue.group_attempted(attempt.group.key, outcome.before_preemption or outcome.status, attempt.now_s)

    def _submit_pods(
        self, attempt: GroupAttempt, outcome: GroupOutcome, all_kept: Mapping[PodKey, PlacedMember]
    ) -> None:
        n_bound = 0
        profile = attempt.scheduler.profile
        allows_all = profile.completes_groups is not None and profile.observers.steps is None
        starts_evictions = outcome.waits_for_preemption or self._features.alpha
        for place, queued in enumerate(attempt.queued):
            member = outcome.members[place] if place < len(outcome.members) else None
            if outcome.status.is_success and member is not None and member.status.is_success:
                member.decision.cycle.drop(GroupCycle)
                started_s = self._metrics.cycle_started()
                placed = all_kept.get(queued.key)
                # All of them count already: a plugin that asks how many there are tells each what it told the first.
                is_permitted = placed is not None and n_bound > 0 and allows_all
                self._bindings.begin(
                    queued,
                    attempt.scheduler,
                    member.decision,
                    started_s,
                    attempt.now_s,
                    placed,
                    is_permitted=is_permitted,
                )
                n_bound += 1
                continue
            self._send_back(attempt, outcome, queued, member)
            if starts_evictions and member is not None and member.requires_preemption:
                self._start_evictions(queued.info, member)
        self._report(attempt, outcome, n_bound)

    def _start_evictions(self, pod: PodInfo, member: MemberOutcome) -> None:
        preemption = member.decision.preemption
        if preemption is not None:
            self._preemptions.start(pod, preemption)

    def _send_back(
        self, attempt: GroupAttempt, outcome: GroupOutcome, queued: QueuedPodInfo, member: MemberOutcome | None
    ) -> None:
        started_s, now_s = attempt.started_s, attempt.now_s
        status = outcome.status
        room = outcome.nominations.get(queued.key)
        if not status.is_success and not status.is_rejected:
            is_its_own = member is not None and member.has_failed and not member.status.is_rejected
            own = member.status if is_its_own and member is not None else status
            self._fail(queued, own, OVER, started_s, now_s)
        elif member is None:
            self._fail(queued, status, KEPT, started_s, now_s)
        elif member.status.is_success and outcome.waits_for_preemption:
            self._fail(queued, status, nominated_to(room or member.node_name), started_s, now_s)
        elif member.status.is_success or (member.requires_preemption and not outcome.waits_for_preemption):
            rejected = Status.unschedulable(GROUP_UNSCHEDULABLE, *_message_of(member.permit))
            self._fail(queued, rejected, OVER, started_s, now_s)
        elif member.is_rejected_late:
            self._metrics.failed(queued.info.spec.scheduler_name, is_error=False, started_s=started_s)
            self._failures.attempt_ended(queued, member.status, now_s)
        else:
            self._metrics.failed(queued.info.spec.scheduler_name, is_error=False, started_s=started_s)
            self._failures.no_node(queued, member.decision, now_s, nominated=nominated_to(room) if room else None)

    def _fail(
        self, queued: QueuedPodInfo, status: Status, nominated: PostFilterResult | None, started_s: float, now_s: float
    ) -> None:
        """With the group's words: no plugin rejected the pod itself."""
        is_error = not status.is_rejected
        self._metrics.failed(queued.info.spec.scheduler_name, is_error=is_error, started_s=started_s)
        told = Told(SCHEDULER_ERROR if is_error else UNSCHEDULABLE, status.message, status.message)
        self._failures.handle(
            queued, told=told, is_error=is_error, plugins=frozenset(), post_filter=nominated, now_s=now_s
        )

    def _report(self, attempt: GroupAttempt, outcome: GroupOutcome, n_bound: int) -> None:
        n_left = len(attempt.queued) - n_bound
        observers = self._observers
        is_error = not outcome.status.is_success and not outcome.status.is_rejected
        tell = observers.trouble if is_error else observers.steps
        if tell is not None:
            tell(GroupDecided(attempt.group.key, outcome, n_bound, n_left))
        self._conditions.report(attempt.group.key, outcome.status, attempt.now_s)


def nominated_to(node_name: str) -> PostFilterResult:
    return PostFilterResult(Status.unschedulable(), NominatingMode.OVERRIDE, node_name)


def _message_of(permit: Status) -> Sequence[str]:
    """As one reason; nothing where Permit has nothing to say leaves an empty one, as kube-scheduler has it."""
    return (permit.message,)


_SCHEDULED = "Scheduled"
_UNSCHEDULABLE = "Unschedulable"
_SCHEDULER_ERROR = "SchedulerError"
_SHOWN_AFTER_S = 60.0
"""By then a write shows, or has failed."""


def condition_of(status: Status, type_: str = POD_GROUP_SCHEDULED) -> GroupCondition:
    """What an attempt that came to this says of its group."""
    if status.is_success:
        return GroupCondition(type_, "True", reason=_SCHEDULED)
    reason = _UNSCHEDULABLE if status.is_rejected else _SCHEDULER_ERROR
    return GroupCondition(type_, "False", reason=reason, message=status.message)


class GroupConditions:
    def __init__(
        self, cluster: Cluster, outbox: Outbox, observers: Observers, type_: str = POD_GROUP_SCHEDULED
    ) -> None:
        self._type = type_
        self._cluster = cluster
        self._outbox = outbox
        self._observers = observers
        self._scheduled_at_s: dict[str, float] = {}
        """By uid, the groups of which it was written lately: what the API server shows may be older."""

    def report(self, key: str, status: Status, now_s: float) -> None:
        """An attempt of the group came to this."""
        pod_group = self._cluster.objects.pod_groups.get(key)
        if pod_group is None:
            if self._observers.trouble is not None:
                self._observers.trouble(GroupMissing(key))
            return
        wanted = condition_of(status, self._type)
        if wanted.status != "True" and self._was_scheduled(pod_group.metadata.uid or key, now_s):
            return
        known = pod_group.condition(self._type)
        if known is not None:
            if known.status == "True" and wanted.status != "True":
                return
            told = (known.status, known.reason, known.message, known.observed_generation)
            if told == (wanted.status, wanted.reason, wanted.message, pod_group.metadata.generation):
                return
        is_turn = known is None or known.status != wanted.status
        generation = pod_group.metadata.generation
        self._outbox.send(PatchPodGroupStatus(key, pod_group.metadata.uid, wanted, generation, is_turn))
        if wanted.status == "True":
            self._scheduled_at_s[pod_group.metadata.uid or key] = now_s

    def _was_scheduled(self, uid: str, now_s: float) -> bool:
        lately = self._scheduled_at_s
        while lately and next(iter(lately.values())) < now_s - _SHOWN_AFTER_S:
            del lately[next(iter(lately))]
        return uid in lately
