"""The simulated cluster: all parts around one scheduling loop, and time that passes.

At every instant, in this order and until nothing moves: effects of the scheduler are carried out, the scheduler takes
the next pod, what is due happens (pods start and end, a scenario goes on), controllers look. Then time jumps to
whatever comes next. It ends when nothing can come any more: no happening is planned, no binding is under way, and every
pod that waits was tried in vain since the last change.

What the scheduler asks for is noted in the ledger. A binding may take a while (`bind_latency_s`); everything else
happens at once.
"""

from __future__ import annotations

from collections.abc import Callable

from kubesched.framework.effects import BindPod, EvictPod, PatchPodStatus, RecordEvent
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.manifests import KINDS
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.workloads.actions import Bursts, NameSource
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.simulator.api_model import EffectInterpreter
from kubesched.simulator.ledger import PodLedger
from kubesched.simulator.options import SimulationOptions
from kubesched.simulator.virtual.admission import ObjectAdmission, TooManyPodsError
from kubesched.simulator.virtual.controllers import ControllerRules, ControllerSet, DeviceClaims
from kubesched.simulator.virtual.kubelets import BudgetCoverage, Deletions, Drains, Kubelets, NodeFaults, TaintEvictions
from kubesched.simulator.virtual.store import ClusterStore, VirtualClock

PATIENCE_S = 3600.0
"""For so long the scheduler may go on by itself, without anything coming of it, before the run counts as over."""

_SCHEDULER_KINDS = frozenset(KINDS.values())

Progress = Callable[["VirtualCluster"], None]


class VirtualCluster:
    def __init__(self, loop: Scheduler, names: NameSource, options: SimulationOptions, bursts: Bursts) -> None:
        """`bursts` says how many pods of a workload controllers make, and how many of them may wait."""
        self.loop = loop
        self.clock = clock = VirtualClock(options.start_s)
        self.store = store = ClusterStore(clock, names)
        store.listen(self._tell_loop)
        self.ledger = PodLedger(clock, store, loop.cluster.find_pod)
        self.meter = self.ledger.meter
        self.admission = ObjectAdmission(store)
        self.deletions = Deletions(clock, store, self.ledger.asked_to_go)
        self.kubelets = Kubelets(clock, store, self.deletions, options.start_latency_s)
        self.faults = NodeFaults(clock, store, self.kubelets, self.deletions)
        coverage = BudgetCoverage(store)
        self.drains = Drains(clock, store, self.deletions, coverage)
        TaintEvictions(clock, store, self.deletions)
        has_claims = loop.features.claims
        rules = ControllerRules(clock, store, names, bursts, coverage, groups_have_claims=has_claims)
        self._controllers = ControllerSet(clock, store, self.admission, self.deletions, rules, self.ledger.refused)
        DeviceClaims(clock, store)
        self._effects = EffectHandler(clock, store, self.deletions, names, self.ledger, options.bind_latency_s)
        self._until_s = None if options.until_s is None else clock.start_s + options.until_s
        self.ended_at_s = clock.now_s
        """When the last thing happened; that the scheduler tried a pod once more in vain is no such thing."""
        self.is_cut_short = False
        """The time was over before the run was."""
        self.is_full = False
        """There were as many pods as a run keeps, and more were to come."""
        self.is_stopped = False
        """Whoever hears of the progress wanted no more of it."""

    def run(self, progress: Progress | None = None) -> None:
        """Lets time pass until nothing more can happen, or the time is over, or there are too many pods."""
        try:
            self._let_time_pass(progress)
        except TooManyPodsError:
            self.is_cut_short = self.is_full = True
            self.ended_at_s = self.clock.now_s
        self.meter.close(self.ended_at_s)

    def not_created(self) -> list[tuple[KubeObject, int]]:
        """Workloads of which so many pods wait that the rest is not made yet, and how many that is."""
        return self._controllers.not_created()

    def _let_time_pass(self, progress: Progress | None) -> None:
        self._settle(progress)
        while not self.is_stopped and (next_s := self._next_s()) is not None:
            if self._until_s is not None and next_s > self._until_s:
                self.is_cut_short = True
                self.ended_at_s = self._until_s
                break
            self.clock.go_to(next_s)
            self.loop.tick(self.clock.now_s)
            self._settle(progress)

    def _next_s(self) -> float | None:
        planned_s, scheduler_s = self.clock.next_s(), self.loop.next_deadline_s()
        if planned_s is None and (self._is_over() or scheduler_s is None):
            return None
        return min(at_s for at_s in (planned_s, scheduler_s) if at_s is not None)

    def _is_over(self) -> bool:
        if self.clock.now_s - self.ended_at_s > PATIENCE_S:
            return True
        if self.loop.bindings:
            return False
        contents = self.loop.queue.contents
        waiting = (*contents.active, *contents.backoff, *contents.unschedulable)
        return all(self.ledger.is_tried(queued.uid) for queued in waiting)

    def _settle(self, progress: Progress | None) -> None:
        """Everything that happens at this instant."""
        settle, loop, schedule_one, now_s = self._effects.settle, self.loop, self.loop.schedule_one, self.clock.now_s
        while True:
            if settle(loop) or schedule_one(now_s):
                if progress is not None:
                    progress(self)
                    if self.is_stopped:
                        self.is_cut_short = True
                        return
            elif self.clock.run_due() or self._controllers.sync():
                self.ended_at_s = self.clock.now_s
            else:
                return

    def _tell_loop(self, before: KubeObject | None, after: KubeObject | None) -> None:
        if after is not None:
            if type(after) in _SCHEDULER_KINDS:
                self.loop.put(after, self.clock.now_s)
        elif before is not None and type(before) in _SCHEDULER_KINDS:
            self.loop.remove(before, self.clock.now_s)

    def has_node(self, name: str) -> bool:
        return self.store.find(Node, name) is not None


class EffectHandler:
    def __init__(
        self,
        clock: VirtualClock,
        store: ClusterStore,
        deletions: Deletions,
        names: NameSource,
        ledger: PodLedger,
        bind_latency_s: float,
    ) -> None:
        self._clock = clock
        self._store = store
        self._deletions = deletions
        self._ledger = ledger
        self._bind_latency_s = bind_latency_s
        self._interpreter = EffectInterpreter(
            store,
            now=lambda: clock.now,
            new_name=names.name,
            delete=self._delete,
        )

    def settle(self, loop: Scheduler) -> bool:
        """Carries out all effects that are there; False if there were none."""
        effects = loop.take_effects()
        for effect in effects:
            action = effect.action
            if type(action) is RecordEvent:  # as most are
                self._ledger.scheduler_event(action)
            elif type(action) is PatchPodStatus:
                self._patch_status(action)
            elif self._bind_latency_s and isinstance(action, BindPod):
                self._bind_later(loop, effect.id, action)
            else:
                answer = self._interpreter.carry_out(action)
                if answer is not None:
                    loop.answer(effect.id, answer, self._clock.now_s)
        return bool(effects)

    def _bind_later(self, loop: Scheduler, effect_id: int, action: BindPod) -> None:
        def bind() -> None:
            loop.answer(effect_id, self._interpreter.carry_out(action), self._clock.now_s)

        self._clock.after(self._bind_latency_s, bind)

    def _patch_status(self, action: PatchPodStatus) -> None:
        n_changes, nominated = self._store.n_changes, self._nominated_node(action)
        self._interpreter.carry_out(action)
        if nominated == self._nominated_node(action):
            self._store.n_changes = n_changes  # what a pod says of its own failure lets no other one in

    def _nominated_node(self, action: PatchPodStatus) -> str:
        pod = self._store.find(Pod, action.pod)
        return "" if pod is None else pod.status.nominated_node_name

    def _delete(self, pod: Pod, action: EvictPod) -> None:
        self._deletions.delete(pod, f"preempted by {action.preemptor}")
