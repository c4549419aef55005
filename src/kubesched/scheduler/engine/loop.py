"""The scheduling loop: facts in, effects out. One thread owns it; nothing here waits.

A pod's way, told as seven steps:

    1. pop        the next pod; one that is being deleted, or already assumed, is skipped
    2. schedule   `decide`: filter, score, select
    3. record     where no node fits: event and condition; and preempt
    4. assume     the pod counts on its node; plugins reserve (volumes first) what it needs
    5. permit     allow, deny, or wait
    6. bind       a binding cycle that overlaps with others: wait for permit, prebind, bind
    7. finish     postbind; or, where anything failed, undo it all in reverse and back to the queue

The first three are `schedule_one` and what it calls, the others `binding_cycles`. Parts know the parts that were built
before them, and none knows the loop.

Pods that belong to a group take another way from the first step to the fourth, all together: `group_cycle`.

Facts come from informers (`put`, `remove`), answers to effects (`answer`), time through `tick`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubesched.framework.effects import Effect
from kubesched.framework.groups import GroupFeatures
from kubesched.k8s.model.meta import KubeObject
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.binding_cycles import BindingCycles
from kubesched.scheduler.engine.cycle import Decision, ProfileScheduler
from kubesched.scheduler.engine.event_handlers import EventHandlers
from kubesched.scheduler.engine.extender import GroupPauses, HTTPExtender, PausedCycles
from kubesched.scheduler.engine.failure import FailureHandler
from kubesched.scheduler.engine.group_cycle import GroupConditions, GroupCycles
from kubesched.scheduler.engine.handle import LoopState
from kubesched.scheduler.engine.metrics.loop_metrics import LoopMetrics
from kubesched.scheduler.engine.observations import (
    AttemptBegan,
    Observe,
    Observers,
    PodDecided,
    SlowDecision,
    tell_of_queue,
)
from kubesched.scheduler.engine.outbox import Outbox
from kubesched.scheduler.engine.permit import WaitingPod
from kubesched.scheduler.engine.preemption.execution import PreemptionExecutor
from kubesched.scheduler.engine.self_check import AnswerLimit, SelfCheck
from kubesched.scheduler.queue import QueuedPodInfo, SchedulingQueue

SLICE_S = 0.005
"""How long pods are scheduled before watches and writes get their turn."""


class Scheduler:
    def __init__(
        self,
        cluster: Cluster,
        state: LoopState,
        schedulers: Mapping[str, ProfileScheduler],
        queue: SchedulingQueue,
        extenders: Sequence[HTTPExtender] = (),
        metrics: LoopMetrics | None = None,
        answer_limit: AnswerLimit | None = None,
        observers: Observers | None = None,
        features: GroupFeatures | None = None,
        group_cycles: type[GroupCycles] = GroupCycles,
    ) -> None:
        """`state` is that of the schedulers' handles. With an `answer_limit`, the loop looks after itself; without,
        whoever drives it answers everything."""
        self.metrics = LoopMetrics() if metrics is None else metrics
        self.observers = Observers() if observers is None else observers
        """The one that the schedulers' profiles have; whoever wants to be told what happens says `listen`."""
        self.cluster = cluster
        self.queue = queue
        self.schedulers = schedulers
        self.extenders = extenders
        self.bindings = state.bindings
        self.evictions = state.evictions
        self.requests = state.requests
        self.outbox = Outbox()
        self.failures = FailureHandler(cluster, queue, self.outbox, self.observers)
        self.preemptions = PreemptionExecutor(
            cluster, queue, self.outbox, state.bindings, state.evictions, self.metrics, self.observers
        )
        self._binding_cycles = BindingCycles(
            cluster,
            queue,
            self.outbox,
            state.bindings,
            self.failures,
            self.preemptions,
            extenders,
            self.metrics,
            self.observers,
        )
        self.features = features = features or GroupFeatures()
        """What is on about pod groups."""
        self._event_handlers = EventHandlers(
            cluster,
            queue,
            schedulers.keys(),
            self._binding_cycles,
            self.preemptions,
            self.observers,
            moves_mates=features.gangs,
            frees_rooms=features.gangs and not features.alpha,
        )
        self.groups: GroupCycles | None = None
        """Schedules pods that belong to a group, if that is on."""
        pauses = GroupPauses(extenders, self.outbox) if extenders and features.groups else None
        if features.groups:
            self.metrics.has_groups = True
            self.failures.groups = features
            self.groups = group_cycles(
                cluster,
                queue,
                schedulers,
                self.failures,
                self._binding_cycles,
                self.preemptions,
                GroupConditions(cluster, self.outbox, self.observers, group_cycles.condition_type),
                features,
                self.metrics,
                self.observers,
                pauses,
            )
        self.paused = PausedCycles(extenders, self.outbox, self.failures) if extenders else None
        """Cycles that wait for an extender's answer."""
        self.check: SelfCheck | None = None
        if answer_limit is not None:
            self.check = SelfCheck(
                answer_limit,
                queue,
                self.outbox,
                state.bindings,
                self._binding_cycles,
                [holder for holder in (self.paused, pauses, self.groups) if holder is not None],
                self.failures,
                self.observers,
            )

    def listen(self, observe: Observe, *, steps: bool = True, decisions: bool = False, scores: bool = False) -> None:
        """From now on `observe` is called with what happens: every step, or decisions and trouble, or trouble alone.
        With `scores` no decision is taken from a class, so that each comes with every plugin's scores."""
        self.observers.add(observe, steps=steps, decisions=decisions, scores=scores)
        tell_of_queue(self.queue, self.observers)

    # -- facts, answers, time ------------------------------------------------------------------------------------------

    def put(self, item: KubeObject, now_s: float) -> None:
        """An informer saw the object added, or changed."""
        if self.metrics.clock is None:
            self._event_handlers.put(item, now_s)
        else:
            started_s = self.metrics.clock()
            self._event_handlers.put(item, now_s)
            self.metrics.event_handled(self._event_handlers.handled, started_s)
        if self._binding_cycles.waits.by_uid:
            self._binding_cycles.object_changed(item, now_s)

    def remove(self, item: KubeObject, now_s: float) -> None:
        """An informer saw the object deleted."""
        started_s = self.metrics.now_s()
        self._event_handlers.remove(item, now_s)
        self.metrics.event_handled(self._event_handlers.handled, started_s)
        if self._binding_cycles.waits.by_uid:
            self._binding_cycles.object_changed(item, now_s)

    def answer(self, effect_id: int, answer: object, now_s: float) -> None:
        self.outbox.answer(effect_id, answer, now_s)
        if self.paused is not None:
            self._take_decisions(self.paused, now_s)
            if self.groups is not None:
                self.groups.resume(now_s)

    def tick(self, now_s: float) -> None:
        """Time has passed: backoffs end, pods are flushed, waits time out."""
        self.queue.flush(now_s)
        self._binding_cycles.tick(now_s)
        to_activate = self.requests.take_to_activate(now_s)
        if to_activate:
            self.queue.activate(to_activate, now_s)
        self._binding_cycles.check_permits(now_s)
        if self.check is not None:
            self.check.look(now_s)

    def next_deadline_s(self) -> float | None:
        """When `tick` has something to do."""
        deadlines = [part.next_deadline_s() for part in (self.queue, self._binding_cycles, self.requests)]
        if self.check is not None:
            deadlines.append(self.check.next_deadline_s())
        return min((at_s for at_s in deadlines if at_s is not None), default=None)

    def take_effects(self) -> list[Effect]:
        return self.outbox.take()

    def waiting_pods(self) -> list[WaitingPod]:
        """Pods that plugins asked to wait; they may be allowed or rejected, then call `tick`."""
        return self.bindings.waiting_pods()

    # -- the cycle -----------------------------------------------------------------------------------------------------

    def schedule_one(self, now_s: float) -> bool:
        """One pod, from the queue to a binding under way or back. False if none is ready. What it raises cost a try."""
        groups = self.groups
        if groups is not None and groups.standing is not None and not groups.standing.first_of_others(self.queue):
            groups.go_on(now_s)
            return True
        queued = self.queue.pop(now_s)
        if queued is None:
            return False
        info = queued.info
        if groups is not None:
            if info.pod.spec.scheduling_group is not None:
                groups.schedule(queued, now_s)
                return True
            groups.others_come = True
        if self.failures.is_skipped(info):
            self.queue.done(info.uid)
            return True
        if self.observers.steps is not None:
            self.observers.steps(AttemptBegan(info))
        scheduler = self.schedulers[info.pod.spec.scheduler_name]
        plain = scheduler.profile
        started_s = 0.0
        try:
            if self.metrics.watch is not None:
                scheduler.profile = self.metrics.sampled(plain) or plain
                started_s = self.metrics.cycle_started()
            if self.paused is not None and self.paused.takes(queued, scheduler, started_s):
                self._take_decisions(self.paused, now_s)
            else:
                self._decided(queued, scheduler, scheduler.decide(info), started_s, now_s)
        except Exception as bug:
            self._binding_cycles.attempt_broke(queued, bug, now_s)
            raise
        finally:
            scheduler.profile = plain
        return True

    @property
    def is_giving_way(self) -> bool:
        """A group stands aside, and what has come by now was not heard yet."""
        return self.groups is not None and self.groups.standing is not None and self.groups.standing.is_new

    def should_send_first(self) -> bool:
        """Whether what was decided should leave before the next attempt: that is a group's, and may take long. And if
        the group stands aside, what has come meanwhile is to be heard."""
        if self.groups is None:
            return False
        if self.is_giving_way:
            return True
        if not self.outbox.to_send:
            return False
        if self.groups.standing is not None:
            return True
        queued = self.queue.peek()
        return queued is not None and queued.info.pod.spec.scheduling_group is not None

    def _take_decisions(self, paused: PausedCycles, now_s: float) -> None:
        for queued, scheduler, decision, started_s in paused.decisions():
            self._decided(queued, scheduler, decision, started_s, now_s)

    def _decided(
        self, queued: QueuedPodInfo, scheduler: ProfileScheduler, decision: Decision, started_s: float, now_s: float
    ) -> None:
        """A decision was made just now: on to step 3, or to the binding cycle."""
        trace = self.metrics.decided(scheduler.profile, decision, started_s)
        observers = self.observers
        if observers.trouble is not None:
            if trace is not None:
                observers.trouble(SlowDecision(trace))
            if observers.decisions is not None:
                observers.decisions(PodDecided(decision, can_preempt=bool(scheduler.profile.post_filter)))
        if decision.node_name:
            self._binding_cycles.begin(queued, scheduler, decision, started_s, now_s)
        else:
            self._record(queued, scheduler, decision, started_s, now_s)

    def _record(
        self, queued: QueuedPodInfo, scheduler: ProfileScheduler, decision: Decision, started_s: float, now_s: float
    ) -> None:
        """Step 3: no node fits. Preemption was decided with it, and is set going."""
        self.metrics.failed(queued.info.pod.spec.scheduler_name, is_error=bool(decision.error), started_s=started_s)
        self.failures.no_node(queued, decision, now_s)
        self.failures.send_requests(scheduler.profile)
        preemption = decision.preemption
        if preemption is not None:
            self.preemptions.start(queued.info, preemption)
            self._binding_cycles.call_off_preempted(now_s)
