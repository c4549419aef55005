"""The scheduling loop: facts in, effects out. One thread owns it; nothing here waits.

A pod's way, told as seven steps (`schedule_one` and what it calls):

    1. pop        the next pod; one that is being deleted, or already assumed, is skipped
    2. schedule   `decide`: filter, score, select
    3. record     where no node fits: event and condition; and preempt
    4. assume     the pod counts on its node; plugins reserve (volumes first) what it needs
    5. permit     allow, deny, or wait
    6. bind       a binding cycle that overlaps with others: wait for permit, prebind, bind
    7. finish     postbind; or, where anything failed, undo it all in reverse and back to the queue

Facts come from informers (`put`, `remove`), answers to effects (`answer`), time through `tick`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from kubesched.framework.effects import BindPod, Effect, Failed, PatchPodStatus, RecordEvent, WaitUntil, Withheld
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Status
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine import observations as seen
from kubesched.scheduler.engine.bind import (
    CALLED_OFF,
    PermitPassed,
    PodBinding,
    PreBindOver,
    WaitForPermit,
    begin_binding,
    run_post_bind,
)
from kubesched.scheduler.engine.cycle import Decision, ProfileScheduler
from kubesched.scheduler.engine.event_handlers import EventHandlers
from kubesched.scheduler.engine.extender import HTTPExtender, PausedCycles
from kubesched.scheduler.engine.failure import FailureHandler
from kubesched.scheduler.engine.handle import PluginRequests
from kubesched.scheduler.engine.metrics.loop_metrics import LoopMetrics
from kubesched.scheduler.engine.observations import Observe, Observers, tell_of_queue
from kubesched.scheduler.engine.outbox import Outbox, WaitBroke, Waits
from kubesched.scheduler.engine.permit import WaitingPod, next_deadline_s
from kubesched.scheduler.engine.plugin_call import PluginError, broken_turn
from kubesched.scheduler.engine.preemption.execution import PreemptionExecutor
from kubesched.scheduler.engine.reserve import run_unreserve
from kubesched.scheduler.engine.self_check import AnswerLimit, SelfCheck
from kubesched.scheduler.queue import QueuedPodInfo, SchedulingQueue

_KEPT_OR_NOT_ANSWERED = (WaitForPermit, WaitUntil, PatchPodStatus, RecordEvent)


class Scheduler:
    def __init__(
        self,
        cluster: Cluster,
        schedulers: Mapping[str, ProfileScheduler],
        queue: SchedulingQueue,
        extenders: Sequence[HTTPExtender] = (),
        metrics: LoopMetrics | None = None,
        answer_limit: AnswerLimit | None = None,
        observers: Observers | None = None,
    ) -> None:
        """With an `answer_limit`, the loop looks after itself; without, whoever drives it answers everything."""
        self.metrics = LoopMetrics() if metrics is None else metrics
        self.observers = Observers() if observers is None else observers
        """The one that the schedulers' profiles have; whoever wants to be told what happens says `listen`."""
        self.cluster = cluster
        self.queue = queue
        self.schedulers = schedulers
        self.outbox = Outbox()
        self.check = None if answer_limit is None else SelfCheck(self.outbox, answer_limit, self.observers)
        calls = queue.activate, queue.reconsider_gated, queue.hold_may_be_over
        self.preemptions = PreemptionExecutor(
            cluster, self.outbox, self._reject_waiting, *calls, self.metrics, self.observers
        )
        self.bindings: dict[str, PodBinding] = {}
        self.paused = PausedCycles(extenders, self.outbox, self) if extenders else None
        """Cycles that wait for an extender's answer."""
        self.extenders = extenders
        self.requests = PluginRequests(self.waiting_pods, queue)
        self.waits = Waits(self._wait_ended)
        self._intake = EventHandlers(cluster, queue, schedulers.keys(), self, self.observers)
        self.failures = FailureHandler(cluster, queue, self.outbox, self._intake.promise_over, self.observers)

    def listen(self, observe: Observe, *, steps: bool = True, decisions: bool = False, scores: bool = False) -> None:
        """From here on `observe` is told what happens: every step, or decisions and trouble, or trouble alone. With
        `scores` no decision is taken from a class, so that each comes with every plugin's scores."""
        self.observers.add(observe, steps=steps, decisions=decisions, scores=scores)
        tell_of_queue(self.queue, self.observers)

    # -- facts, answers, time ------------------------------------------------------------------------------------------

    def put(self, item: KubeObject, now_s: float) -> None:
        """An informer saw the object added, or changed."""
        if self.metrics.clock is None:
            self._intake.put(item, now_s)
        else:
            started_s = self.metrics.clock()
            self._intake.put(item, now_s)
            self.metrics.event_handled(self._intake.handled, started_s)
        self.waits.object_changed(item, now_s)

    def remove(self, item: KubeObject, now_s: float) -> None:
        """An informer saw the object deleted."""
        started_s = self.metrics.now_s()
        self._intake.remove(item, now_s)
        self.metrics.event_handled(self._intake.handled, started_s)
        self.waits.object_changed(item, now_s)

    def answer(self, effect_id: int, answer: object, now_s: float) -> None:
        self.outbox.answer(effect_id, answer, now_s)

    def tick(self, now_s: float) -> None:
        """Time has passed: backoffs end, pods are flushed, waits time out."""
        self.queue.flush(now_s)
        self.waits.look(now_s)
        self.requests.tick(now_s)
        for binding in [b for b in self.bindings.values() if b.waiting is not None]:
            self._check_permit(binding, now_s)
        if self.check is not None:
            self.check.look(self, now_s)

    def next_deadline_s(self) -> float | None:
        """When `tick` has something to do."""
        deadlines = [part.next_deadline_s() for part in (self.queue, self.waits, self.requests)]
        deadlines.append(next_deadline_s(self.waiting_pods()))
        if self.check is not None:
            deadlines.append(self.check.next_deadline_s(self))
        return min((at_s for at_s in deadlines if at_s is not None), default=None)

    def take_effects(self) -> list[Effect]:
        return self.outbox.take()

    # -- the cycle -----------------------------------------------------------------------------------------------------

    def schedule_one(self, now_s: float) -> bool:
        """One pod, from the queue to a binding under way or back. False if none is ready. What it raises cost a try."""
        queued = self.queue.pop(now_s)
        if queued is None:
            return False
        info = queued.info
        if self._is_skipped(info):
            self.queue.done(info.uid)
            return True
        if self.observers.steps is not None:
            self.observers.steps(seen.AttemptBegan(info))
        scheduler = self.schedulers[info.spec.scheduler_name]
        plain = scheduler.profile
        try:
            scheduler.profile = self.metrics.sampled(plain) or plain
            self._attempt(queued, scheduler, now_s)
        except Exception as bug:
            self._attempt_broke(queued, bug, now_s)
            raise
        finally:
            scheduler.profile = plain
        return True

    def _attempt_broke(self, queued: QueuedPodInfo, bug: Exception, now_s: float) -> None:
        """Gives back what the attempt took, however far it came, and puts the pod back into the queue."""
        status = Status.error(f"{type(bug).__name__}: {bug}")
        if (binding := self.bindings.pop(queued.uid, None)) is not None:
            self.waits.forget(queued.uid)
            self._undo(binding, status, now_s)
        else:
            self.failures.attempt_broke(queued, status, now_s)

    def _attempt(self, queued: QueuedPodInfo, scheduler: ProfileScheduler, now_s: float) -> None:
        """Step 2."""
        started_s = self.metrics.cycle_started()
        if self.paused is None or not self.paused.takes(queued, scheduler, started_s, now_s):
            self.decided(queued, scheduler, scheduler.decide(queued.info), started_s, now_s)

    def decided(
        self, queued: QueuedPodInfo, scheduler: ProfileScheduler, decision: Decision, started_s: float, now_s: float
    ) -> None:
        """Steps 3 to 5, for a decision that was made just now."""
        trace = self.metrics.decided(scheduler.profile, decision, started_s)
        observers = self.observers
        if observers.trouble is not None:
            if trace is not None:
                observers.trouble(seen.SlowDecision(trace))
            if observers.decisions is not None:
                observers.decisions(seen.PodDecided(decision, can_preempt=bool(scheduler.profile.post_filter)))
        if decision.node_name:
            self._assume(queued, scheduler, decision, started_s, now_s)
        else:
            self._record(queued, decision, started_s, now_s)

    def is_still_wanted(self, queued: QueuedPodInfo) -> bool:
        """Brings a pod whose cycle paused up to date; False if it is gone or going, and its attempt over."""
        latest = self.cluster.pending.get(queued.key)
        if latest is not None and latest.uid == queued.uid:
            queued.info = latest
            if not self._is_skipped(latest):
                return True
        self.queue.done(queued.uid)
        return False

    def _is_skipped(self, info: PodInfo) -> bool:
        is_assumed = self.cluster.is_assumed(info.key)
        if self.observers.steps is not None and (info.pod.is_terminating or is_assumed):
            self.observers.steps(seen.PodSkipped(info))
        if info.pod.is_terminating:
            note = f"skip schedule deleting pod: {info.key}"
            self._event(info, "Warning", "FailedScheduling", "Scheduling", note)
            return True
        return is_assumed

    def _record(self, queued: QueuedPodInfo, decision: Decision, started_s: float, now_s: float) -> None:
        """Step 3: no node fits. Preemption was decided with it, and is set going."""
        self.metrics.failed(queued.info.spec.scheduler_name, is_error=bool(decision.error), started_s=started_s)
        self.failures.no_node(queued, decision, now_s)
        self._send_requests(self.schedulers[queued.info.spec.scheduler_name])
        preemption = decision.preemption
        if preemption is not None:
            self.preemptions.start(queued.info, preemption)
            for binding in [b for b in self.bindings.values() if b.is_preempted]:
                self._call_off(binding, now_s)

    def _send_requests(self, scheduler: ProfileScheduler) -> None:
        """What plugins ask for outside of a binding cycle, without waiting for it."""
        for plugin in scheduler.profile.emitters:
            for action in plugin.take_effects():
                self.outbox.send(action)

    def _assume(
        self, queued: QueuedPodInfo, scheduler: ProfileScheduler, decision: Decision, started_s: float, now_s: float
    ) -> None:
        """Steps 4 and 5."""
        node_name = decision.node_name
        promises = self.cluster.nominations.node_by_uid
        promised = promises.get(queued.uid, "") if promises else ""
        assumed = self.cluster.assume(queued.info, node_name)
        if promised and promised != node_name:
            self._intake.promise_over(queued.info.pod, promised, now_s)
        binding, status = begin_binding(queued, scheduler, decision, assumed, self.extenders, started_s, now_s)
        if status is not OK:
            self._undo(binding, status, now_s)
            return
        self.bindings[assumed.uid] = binding
        if not binding.has_preparations:
            self.queue.done(assumed.uid)
        self._advance(binding, None, now_s)

    def _advance(self, binding: PodBinding, answer: object, now_s: float) -> None:
        """Step 6: the binding cycle up to the next action whose outcome it needs."""
        try:
            while True:
                if isinstance(answer, WaitBroke):
                    action = binding.steps.throw(answer.bug)
                else:
                    action = binding.steps.send(answer)
                answer = None
                if isinstance(action, PermitPassed):
                    binding.waiting = None
                    binding.is_preparing = action.prepares
                    self.queue.done(binding.assumed.uid)
                elif isinstance(action, PreBindOver):
                    binding.is_preparing = False
                elif binding.is_preempted:
                    answer = CALLED_OFF
                elif isinstance(action, BindPod) or not isinstance(action, _KEPT_OR_NOT_ANSWERED):  # most are the first
                    binding.effect = self.outbox.send(action, partial(self._answered, binding))
                    return
                elif isinstance(action, WaitForPermit):
                    self._check_permit(binding, now_s)
                    return
                elif isinstance(action, WaitUntil):
                    self.waits.add(binding.assumed.uid, binding.assumed.name, action, now_s)
                    return
                else:
                    self.outbox.send(action)
        except StopIteration as end:
            status: Status = end.value
        except PluginError as bug:
            status = broken_turn(binding.scheduler.profile, bug, binding.assumed)
        self._finish(binding, status, now_s)

    def _answered(self, binding: PodBinding, answer: object, now_s: float) -> None:
        if self.bindings.get(binding.assumed.uid) is binding:  # else it was called off in the meantime
            binding.is_withheld = isinstance(answer, Withheld)
            try:
                self._advance(binding, answer, now_s)
            except Exception as bug:
                self._attempt_broke(binding.queued, bug, now_s)
                raise

    def _finish(self, binding: PodBinding, status: Status, now_s: float) -> None:
        """Step 7."""
        assumed = binding.assumed
        self.bindings.pop(assumed.uid, None)
        self.waits.forget(assumed.uid)
        if not status.is_success:
            self._undo(binding, status, now_s)
            return
        node_name = binding.decision.node_name
        note = f"Successfully assigned {assumed.key} to {node_name}"
        self._event(assumed, "Normal", "Scheduled", "Binding", note)
        self.metrics.scheduled(assumed.spec.scheduler_name, binding.queued, binding.started_s, now_s)
        if self.observers.steps is not None:
            decision, was_flushed = binding.decision, binding.queued.was_flushed
            bound = seen.PodBound(assumed, node_name, decision.n_evaluated, decision.n_feasible, was_flushed)
            self.observers.steps(bound)
        profile = binding.scheduler.profile
        if profile.post_bind:
            run_post_bind(profile, binding.decision.cycle, assumed, node_name)

    def _undo(self, binding: PodBinding, status: Status, now_s: float) -> None:
        """Gives back what was reserved and assumed, in reverse, and puts the pod back into the queue."""
        assumed, decision, profile = binding.assumed, binding.decision, binding.scheduler.profile
        if self.observers.steps is not None:
            self.observers.steps(seen.BindingUndone(assumed, decision.node_name, status))
        run_unreserve(profile, decision.cycle, assumed, decision.node_name)
        self._send_requests(binding.scheduler)
        forgotten = self.cluster.forget(assumed)
        self.preemptions.pod_leaves(assumed.key, now_s)
        is_error = not status.is_rejected
        self.metrics.failed(assumed.spec.scheduler_name, is_error=is_error, started_s=binding.started_s)
        self.failures.attempt_ended(binding.queued, status, now_s, is_withheld=binding.is_withheld)
        if forgotten:
            self._intake.assumed_pod_forgotten(assumed, itself_too=is_error, now_s=now_s)

    # -- waiting for permit --------------------------------------------------------------------------------------------

    def waiting_pods(self) -> list[WaitingPod]:
        """Pods that plugins asked to wait; they may be allowed or rejected, then call `tick`."""
        return [binding.waiting for binding in self.bindings.values() if binding.waiting is not None]

    def _check_permit(self, binding: PodBinding, now_s: float) -> None:
        assert binding.waiting is not None
        waited_s = now_s - binding.waiting_since_s
        outcome = binding.waiting.outcome(now_s, waited_s)
        if outcome is not None:
            self.metrics.permit_waited(outcome.code, waited_s)
            binding.waiting = None
            if self.observers.steps is not None:
                self.observers.steps(seen.PermitOver(binding.assumed, outcome))
            self._answered(binding, outcome, now_s)

    def _reject_waiting(self, victim: PodInfo, plugin: str) -> str:
        """The stage in which it waited."""
        binding = self.bindings.get(victim.uid)
        if binding is None or (binding.waiting is None and not binding.is_preparing):
            return ""
        binding.is_preempted = True
        if binding.waiting is None:
            return "PreBind"
        binding.waiting.preempt(plugin, "preempted")
        return "Permit"

    def _call_off(self, binding: PodBinding, now_s: float) -> None:
        """The pod has to leave its place before it came there."""
        if binding.waiting is not None:
            self._check_permit(binding, now_s)
        else:
            self._advance(binding, CALLED_OFF, now_s)

    def reject_if_waiting(self, info: PodInfo, now_s: float) -> bool:
        """The pod is being deleted: if it waits for a permit, its binding ends here."""
        binding = self.bindings.get(info.uid)
        if binding is None or binding.waiting is None:
            return False
        binding.waiting.reject("", "removed")
        self._check_permit(binding, now_s)
        return True

    def found_out(self, binding: PodBinding, answer: object, now_s: float) -> None:
        if self.bindings.get(binding.assumed.uid) is binding:
            self._finish(binding, Status.error(answer.message) if isinstance(answer, Failed) else OK, now_s)

    # -- asked by the intake -------------------------------------------------------------------------------------------

    def pod_deleted(self, uid: str, now_s: float) -> None:
        self.preemptions.forget(uid)
        self.waits.pod_deleted(uid, now_s)

    def pod_leaves(self, key: PodKey, now_s: float) -> None:
        self.preemptions.pod_leaves(key, now_s)

    def _wait_ended(self, uid: str, answer: object, now_s: float) -> None:
        if (binding := self.bindings.get(uid)) is not None:
            self._answered(binding, answer, now_s)

    def _event(self, info: PodInfo, kind: str, reason: str, action: str, note: str) -> None:
        self.outbox.send(
            RecordEvent(info.key, info.pod.metadata.uid, kind, reason, action, note, info.spec.scheduler_name)
        )
