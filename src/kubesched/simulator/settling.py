"""What becomes of the pods that wait in a trial: the scheduler's queue, without its waiting times.

Pods are tried in the queue's order, again and again, until nothing changes any more. Who failed is not tried again
before something has changed, nor are pods that ask for the same.

Next: `trial`, whose changes these are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from kubesched.explanation.explain import Explanation
from kubesched.explanation.layout import counted
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.meta import PodKey
from kubesched.scheduler.engine.cycle import Decision, ProfileScheduler
from kubesched.scheduler.engine.enqueue import checked_pre_enqueue
from kubesched.scheduler.engine.postfilter import for_event
from kubesched.scheduler.engine.prefilter import run_pre_filter
from kubesched.scheduler.engine.reserve import run_reserve, run_unreserve

if TYPE_CHECKING:
    from kubesched.simulator.trial import WorldTrial

MOST_ROUNDS = 10
"""How often `settle` goes through the pods that wait; after that, whoever still moves is left as it is."""


class TrialError(KubeschedError, ValueError):
    """What a trial was asked for cannot be done."""


@dataclass(frozen=True, slots=True)
class PendingPod:
    """A pod that found no node."""

    pod: PodKey
    message: str
    """What kube-scheduler would say."""
    plugins: tuple[str, ...] = ()
    """Whose plugins rejected it."""
    _trial: WorldTrial | None = field(default=None, repr=False, compare=False)

    def explain(self) -> Explanation:
        """Why, as `kubesched.explain` says it. To be asked as long as the trial stands as it was settled."""
        assert self._trial is not None
        return self._trial.explain(self.pod)


@dataclass(frozen=True, slots=True)
class Settled:
    """What came of a trial once the queue was at rest."""

    placed: dict[PodKey, str]
    """The pods that got a node, and which."""
    pending: tuple[PendingPod, ...]
    preempted: tuple[PodKey, ...]
    """The pods that had to leave for others. Those with a controller waited again, and are above."""

    def __str__(self) -> str:
        parts = [f"{counted(len(self.placed), 'pod')} placed", f"{len(self.pending)} pending"]
        if self.preempted:
            parts.append(f"{len(self.preempted)} preempted")
        lines = [f"{', '.join(parts)}.", *(f"  {one.pod}: {one.message}" for one in self.pending)]
        return "\n".join(lines)


class Settling:
    """The queue of a trial, without waiting."""

    def __init__(self, trial: WorldTrial) -> None:
        self._trial = trial
        self._world = trial._world
        self._cluster = trial._cluster
        self._undo = trial._undo
        self._placed: dict[PodKey, str] = {}
        self._preempted: dict[PodKey, None] = {}
        self._failed: dict[PodKey, tuple[int, PendingPod]] = {}
        """Who found no node, and at which version of the trial."""
        self._by_class: dict[tuple[int, str], tuple[int, PendingPod]] = {}
        """The same for all pods that ask for the same."""

    def to_rest(self) -> Settled:
        for _ in range(MOST_ROUNDS):
            version = self._trial._version
            for info in self._world._in_order(list(self._cluster.pending.values())):
                if self._cluster.pending.get(info.key) is info:
                    self._try(info)
            if self._trial._version == version:
                break
        waiting = [self._failed[key][1] for key in self._cluster.pending if key in self._failed]
        placed = {key: node for key, node in self._placed.items() if key not in self._cluster.pending}
        return Settled(placed, tuple(waiting), tuple(self._preempted))

    def to_first_failure(self) -> Settled:
        """Nobody is preempted."""
        for info in self._world._in_order(list(self._cluster.pending.values())):
            _, failed = self.place_or_say_why(info)
            if failed is not None:
                return Settled(self._placed, (failed,), ())
        return Settled(self._placed, (), ())

    def place_or_say_why(self, info: PodInfo) -> tuple[str, PendingPod | None]:
        """The node of a pod that is not there yet, where it is now; or why it has none."""
        scheduler = self._world.scheduler_of(info)
        if scheduler is None:
            raise TrialError(f"pod {info.key} is the business of scheduler {info.spec.scheduler_name}")
        gate = checked_pre_enqueue(scheduler.profile, info)
        if not gate.is_success:
            return "", self._pending(info, gate.message)
        decision = scheduler.decide(info)
        if decision.node_name and self._place(scheduler, decision):
            return decision.node_name, None
        if decision.diagnosis is not None:
            decision.diagnosis.post_filter_message = ""  # nobody is preempted, whatever it found
        return "", self._why(info, decision)

    def nodes_for(self, info: PodInfo, within: Sequence[str] | None = None) -> list[str]:
        """The nodes, of all or of those `within`, on which the scheduler's filters let a pod that waits."""
        return self._let_in(info, within)[0]

    def place_on(self, info: PodInfo, node_name: str) -> bool:
        """A pod that waits goes to this node, whatever its score, if the filters let it. Whether they do."""
        names, cycle = self._let_in(info, (node_name,))
        scheduler = self._world.scheduler_of(info)
        if not names or scheduler is None:
            return False
        return self._place(scheduler, Decision(info, cycle, self._cluster.table.names, node_name))

    def _let_in(self, info: PodInfo, within: Sequence[str] | None) -> tuple[list[str], CycleState]:
        scheduler, cycle, table = self._world.scheduler_of(info), CycleState(), self._cluster.table
        if scheduler is None or not checked_pre_enqueue(scheduler.profile, info).is_success:
            return [], cycle
        before = run_pre_filter(scheduler.profile, cycle, info, self._cluster.nodes)
        if not before.status.is_success:
            return [], cycle
        rows = range(table.n) if within is None else [table.rows[name] for name in within]
        asked = [row for row in rows if before.node_names is None or table.names[row] in before.node_names]
        filtered = scheduler.filter_nodes(cycle, info, self._cluster.nodes.take(np.array(asked, dtype=np.intp)))
        return [table.names[row] for row, fits in zip(asked, filtered.fits.tolist(), strict=True) if fits], cycle

    def _try(self, info: PodInfo) -> None:
        scheduler = self._world.scheduler_of(info)
        assert scheduler is not None
        if self._is_known_to_fail(info):
            return
        gate = checked_pre_enqueue(scheduler.profile, info)
        if not gate.is_success:
            self._failed[info.key] = self._trial._version, self._pending(info, gate.message)
            return
        decision = scheduler.decide(info)
        if decision.node_name:
            if self._place(scheduler, decision):
                return
        elif decision.preemption is not None:
            decision = self._preempt(scheduler, info, decision)
            if decision.node_name and self._place(scheduler, decision):
                return
        self._note_failure(info, decision)

    def _preempt(self, scheduler: ProfileScheduler, info: PodInfo, decision: Decision) -> Decision:
        """The victims leave at once, and the pod is tried again."""
        assert decision.preemption is not None
        for victim in decision.preemption.victims:
            self._preempted[victim.key] = None
            self._placed.pop(victim.key, None)
            self._trial._leave(self._world.pod(victim.key))
        self._undo.put_pod(info, decision.preemption.node_name)
        return scheduler.decide(info)

    def _place(self, scheduler: ProfileScheduler, decision: Decision) -> bool:
        info, node_name, cycle = decision.pod, decision.node_name, decision.cycle
        profile = scheduler.profile
        if decision.needs_reserve and profile.reserve:
            status = run_reserve(profile, cycle, info, node_name)
            if not status.is_success:
                run_unreserve(profile, cycle, info, node_name)
                decision.error = status.message
                return False
            self._undo.also(lambda: run_unreserve(profile, cycle, info, node_name))
        self._undo.place(info, node_name)
        self._placed[info.key] = node_name
        self._failed.pop(info.key, None)
        self._trial._version += 1
        return True

    def _is_known_to_fail(self, info: PodInfo) -> bool:
        """Whether it, or a pod that asks for the same, failed and nothing has changed since."""
        version = self._trial._version
        known = self._failed.get(info.key)
        if known is not None and known[0] == version:
            return True
        same = self._by_class.get((id(info.signature), info.pin))
        if same is None or same[0] != version or self._cluster.nominations.has(info):
            return False
        self._failed[info.key] = version, dataclasses.replace(same[1], pod=info.key)
        return True

    def _note_failure(self, info: PodInfo, decision: Decision) -> None:
        failed = self._trial._version, self._why(info, decision)
        self._failed[info.key] = failed
        spec = info.spec
        if not spec.volumes and not spec.resource_claims and not self._cluster.nominations.has(info):
            self._by_class[id(info.signature), info.pin] = failed

    def _why(self, info: PodInfo, decision: Decision) -> PendingPod:
        plugins = () if decision.diagnosis is None else tuple(sorted(decision.diagnosis.unschedulable_plugins()))
        return self._pending(info, for_event(decision.message), plugins)

    def _pending(self, info: PodInfo, message: str, plugins: tuple[str, ...] = ()) -> PendingPod:
        return PendingPod(info.key, message, plugins, self._trial)
