"""Binding cycles under way, many at a time: a pod's way from the decision to the bound pod.

    4. assume     the pod counts on its node; plugins reserve (volumes first) what it needs
    5. permit     allow, deny, or wait
    6. bind       a binding cycle that overlaps with others: wait for permit, prebind, bind
    7. finish     postbind; or, where anything failed, undo it all in reverse and back to the queue

A cycle goes on when what it waits for is there: the answer to an effect, a permit, or an object that shows that
another party has done its part. `bind` has the steps of a single one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from kubesched.framework.effects import (
    BindPod,
    Failed,
    FindOut,
    PatchPodStatus,
    RecordEvent,
    WaitUntil,
    Withheld,
)
from kubesched.framework.status import OK, Status
from kubesched.k8s.model.meta import KubeObject
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.bind import (
    CALLED_OFF,
    Bindings,
    PermitPassed,
    PodBinding,
    PreBindOver,
    WaitForPermit,
    begin_binding,
    run_post_bind,
)
from kubesched.scheduler.engine.cycle import Decision, ProfileScheduler
from kubesched.scheduler.engine.extender import HTTPExtender
from kubesched.scheduler.engine.failure import FailureHandler, nomination_over, place_of_assumed_freed
from kubesched.scheduler.engine.group_trial import PlacedMember
from kubesched.scheduler.engine.metrics.loop_metrics import LoopMetrics
from kubesched.scheduler.engine.observations import BindingUndone, Observers, PermitOver, PodBound
from kubesched.scheduler.engine.outbox import Outbox, WaitBroke, WaitEnded, Waits
from kubesched.scheduler.engine.permit import next_deadline_s
from kubesched.scheduler.engine.plugin_call import PluginError, broken_turn
from kubesched.scheduler.engine.preemption.execution import PreemptionExecutor
from kubesched.scheduler.engine.reserve import run_unreserve
from kubesched.scheduler.queue import QueuedPodInfo, SchedulingQueue

_KEPT_OR_NOT_ANSWERED = (WaitForPermit, WaitUntil, PatchPodStatus, RecordEvent)


class BindingCycles:
    def __init__(
        self,
        cluster: Cluster,
        queue: SchedulingQueue,
        outbox: Outbox,
        bindings: Bindings,
        failures: FailureHandler,
        preemptions: PreemptionExecutor,
        extenders: Sequence[HTTPExtender],
        metrics: LoopMetrics,
        observers: Observers,
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        self._outbox = outbox
        self._bindings = bindings
        self._failures = failures
        self._preemptions = preemptions
        self._extenders = extenders
        self._metrics = metrics
        self._observers = observers
        self.waits = Waits()
        """Cycles that wait for another party."""

    def begin(
        self,
        queued: QueuedPodInfo,
        scheduler: ProfileScheduler,
        decision: Decision,
        started_s: float,
        now_s: float,
        placed: PlacedMember | None = None,
        *,
        is_permitted: bool = False,
    ) -> None:
        """Steps 4 and 5, for a pod that has its node. One that is `placed` was assumed there for trial, and plugins
        have reserved for it; one that `is_permitted` is allowed with others of its group."""
        node_name = decision.node_name
        if placed is None:
            nominated_nodes = self._cluster.nominations.node_by_uid
            nominated_node = nominated_nodes.get(queued.uid, "") if nominated_nodes else ""
            assumed = self._cluster.assume(queued.info, node_name)
        else:
            nominated_node, assumed = placed.nominated, placed.assumed
        if nominated_node and nominated_node != node_name:
            nomination_over(self._queue, queued.info.pod, nominated_node, now_s)
        binding, status = begin_binding(
            queued,
            scheduler,
            decision,
            assumed,
            self._extenders,
            started_s,
            now_s,
            is_reserved=placed is not None,
            is_permitted=is_permitted,
        )
        if status is not OK:
            self._undo(binding, status, now_s)
            return
        self._bindings.begin(binding)
        if not binding.has_preparations:
            self._queue.done(assumed.uid)
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
                if type(action) is BindPod and not binding.is_preempted:  # as most are
                    binding.effect = self._outbox.send(action, partial(self._answered, binding))
                    return
                if isinstance(action, PermitPassed):
                    binding.waiting = None
                    binding.is_preparing = action.prepares
                    self._queue.done(binding.assumed.uid)
                elif isinstance(action, PreBindOver):
                    binding.is_preparing = False
                elif binding.is_preempted:
                    answer = CALLED_OFF
                elif not isinstance(action, _KEPT_OR_NOT_ANSWERED):
                    binding.effect = self._outbox.send(action, partial(self._answered, binding))
                    return
                elif isinstance(action, WaitForPermit):
                    self._check_permit(binding, now_s)
                    return
                elif isinstance(action, WaitUntil):
                    answer = self.waits.add(binding.assumed.uid, binding.assumed.name, action, now_s)
                    if answer is None:
                        return
                    binding.is_withheld = False
                else:
                    self._outbox.send(action)
        except StopIteration as end:
            status: Status = end.value
        except PluginError as bug:
            status = broken_turn(binding.scheduler.profile, bug, binding.assumed)
        self._finish(binding, status, now_s)

    def _answered(self, binding: PodBinding, answer: object, now_s: float) -> None:
        if self._bindings.get(binding.assumed.uid) is binding:  # else it was called off in the meantime
            binding.is_withheld = isinstance(answer, Withheld)
            try:
                self._advance(binding, answer, now_s)
            except Exception as bug:
                self.attempt_broke(binding.queued, bug, now_s)
                raise

    def _finish(self, binding: PodBinding, status: Status, now_s: float) -> None:
        """Step 7."""
        assumed = binding.assumed
        self._bindings.pop(assumed.uid, None)
        if self.waits.by_uid:
            self.waits.forget(assumed.uid)
        if status is not OK and not status.is_success:
            self._undo(binding, status, now_s)
            return
        node_name, scheduler_name = binding.decision.node_name, assumed.pod.spec.scheduler_name
        note = f"Successfully assigned {assumed.key} to {node_name}"
        self._outbox.send(
            RecordEvent(assumed.key, assumed.pod.metadata.uid, "Normal", "Scheduled", "Binding", note, scheduler_name)
        )
        self._metrics.scheduled(scheduler_name, binding.queued, binding.started_s, now_s)
        if self._observers.steps is not None:
            decision, was_flushed = binding.decision, binding.queued.was_flushed
            self._observers.steps(PodBound(assumed, node_name, decision.n_evaluated, decision.n_feasible, was_flushed))
        profile = binding.scheduler.profile
        if profile.post_bind:
            run_post_bind(profile, binding.decision.cycle, assumed, node_name)

    def _undo(self, binding: PodBinding, status: Status, now_s: float) -> None:
        """Gives back what was reserved and assumed, in reverse, and puts the pod back into the queue."""
        assumed, decision, profile = binding.assumed, binding.decision, binding.scheduler.profile
        if self._observers.steps is not None:
            self._observers.steps(BindingUndone(assumed, decision.node_name, status))
        run_unreserve(profile, decision.cycle, assumed, decision.node_name)
        self._failures.send_requests(profile)
        forgotten = self._cluster.forget(assumed)
        self._preemptions.pod_leaves(assumed.key, now_s)
        is_error = not status.is_rejected
        self._metrics.failed(assumed.spec.scheduler_name, is_error=is_error, started_s=binding.started_s)
        self._failures.attempt_ended(binding.queued, status, now_s, is_withheld=binding.is_withheld)
        if forgotten:
            place_of_assumed_freed(self._queue, assumed, itself_too=is_error, now_s=now_s)

    def attempt_broke(self, queued: QueuedPodInfo, bug: Exception, now_s: float) -> None:
        """Gives back what the attempt took, however far it came, and puts the pod back into the queue."""
        status = Status.error(f"{type(bug).__name__}: {bug}")
        if (binding := self._bindings.pop(queued.uid, None)) is not None:
            self.waits.forget(queued.uid)
            self._undo(binding, status, now_s)
        else:
            self._failures.attempt_broke(queued, status, now_s)

    # -- what they wait for --------------------------------------------------------------------------------------------

    def tick(self, now_s: float) -> None:
        """Time has passed."""
        self._go_on(self.waits.due(now_s), now_s)

    def check_permits(self, now_s: float) -> None:
        """Pods may have been allowed or rejected, or have waited for long enough."""
        for binding in self._bindings.waiting():
            self._check_permit(binding, now_s)

    def next_deadline_s(self) -> float | None:
        deadlines = self.waits.next_deadline_s(), next_deadline_s(self._bindings.waiting_pods())
        return min((at_s for at_s in deadlines if at_s is not None), default=None)

    def object_changed(self, item: KubeObject, now_s: float) -> None:
        """The object was added, changed or deleted: whoever watches its kind looks again."""
        self._go_on(self.waits.watching(item, now_s), now_s)

    def pod_deleted(self, uid: str, now_s: float) -> None:
        if self.waits.by_uid:
            self._go_on(self.waits.pod_deleted(uid), now_s)

    def _go_on(self, ended: Iterable[WaitEnded], now_s: float) -> None:
        for uid, answer in ended:
            if (binding := self._bindings.get(uid)) is not None:
                self._answered(binding, answer, now_s)

    def _check_permit(self, binding: PodBinding, now_s: float) -> None:
        assert binding.waiting is not None
        waited_s = now_s - binding.waiting_since_s
        outcome = binding.waiting.outcome(now_s, waited_s)
        if outcome is not None:
            self._metrics.permit_waited(outcome.code, waited_s)
            binding.waiting = None
            if self._observers.steps is not None:
                self._observers.steps(PermitOver(binding.assumed, outcome))
            self._answered(binding, outcome, now_s)

    def reject_if_waiting(self, uid: str, now_s: float) -> bool:
        """The pod is being deleted: if it waits for a permit, its binding ends here."""
        binding = self._bindings.get(uid)
        if binding is None or binding.waiting is None:
            return False
        binding.waiting.reject("", "removed")
        self._check_permit(binding, now_s)
        return True

    def call_off_preempted(self, now_s: float) -> None:
        """Pods that have to leave their place before they came there."""
        for binding in [binding for binding in self._bindings.values() if binding.is_preempted]:
            if binding.waiting is not None:
                self._check_permit(binding, now_s)
            else:
                self._advance(binding, CALLED_OFF, now_s)

    # -- those that wait for nothing -----------------------------------------------------------------------------------

    def waiting_for_nothing(self) -> list[PodBinding]:
        """Neither for an answer, nor for a permit, nor for facts: nothing will ever make them go on."""
        return [
            binding
            for uid, binding in self._bindings.items()
            if binding.effect not in self._outbox and binding.waiting is None and uid not in self.waits
        ]

    def find_out(self, binding: PodBinding) -> None:
        """Asks whether the pod is bound, and ends the binding accordingly."""
        binding.steps.close()
        action = BindPod(binding.assumed.key, binding.assumed.pod.metadata.uid, binding.decision.node_name)
        binding.effect = self._outbox.send(FindOut(binding.effect, action), partial(self._found_out, binding))

    def _found_out(self, binding: PodBinding, answer: object, now_s: float) -> None:
        if self._bindings.get(binding.assumed.uid) is binding:
            self._finish(binding, Status.error(answer.message) if isinstance(answer, Failed) else OK, now_s)
