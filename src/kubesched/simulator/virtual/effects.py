"""What the scheduler asks for is carried out in virtual time, and noted in the ledger.

A binding may take a while (`bind_latency_s`); everything else happens at once.
"""

from __future__ import annotations

from kubesched.framework.effects import BindPod, EvictPod, PatchPodStatus, RecordEvent
from kubesched.k8s.model.core import Pod
from kubesched.k8s.workloads.names import NameSource
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.simulator.api_model.interpreter import EffectInterpreter
from kubesched.simulator.ledger import PodLedger
from kubesched.simulator.virtual.clock import VirtualClock
from kubesched.simulator.virtual.deletion import Deletions
from kubesched.simulator.virtual.store import ClusterStore


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
