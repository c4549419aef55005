"""A world around the loop that does what it is asked at once: a perfect API server, in memory.

Effects are carried out on its objects and come back as facts; pods that are evicted are gone at once. `run` lets time
pass until nothing more happens. For tests; the fault simulation has an unreliable one. `listen_for` keeps what a loop
does for a test to look at, and `QuietHandle` is part of a handle for tests of single plugins.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar, cast

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.effects import BindPod, Done, EvictPod, RecordEvent
from kubesched.framework.groups import GroupCycle, GroupFeatures, PodGroupMembers, TrySchedule
from kubesched.framework.handle import HeldPod
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Status
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.scheduling import AnyGroup
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.engine.observations import Observation
from kubesched.simulator.api_model import EffectInterpreter, TypedStore


class World:
    """Answers every effect of the loop in the order they come."""

    def __init__(self, loop: Scheduler, *, now_s: float = 0.0) -> None:
        self.loop = loop
        self.now_s = now_s
        self.objects = TypedStore()
        self.objects.listen(self._tell)
        self.events: list[RecordEvent] = []
        self.bound: dict[PodKey, str] = {}
        self.evicted: list[PodKey] = []
        self._interpreter = EffectInterpreter(self.objects, delete=self._evict, also={RecordEvent: self.events.append})

    @property
    def pods(self) -> dict[PodKey, Pod]:
        return cast("dict[PodKey, Pod]", self.objects.of(Pod))

    # -- what users do -------------------------------------------------------------------------------------------------

    def add(self, *items: KubeObject) -> None:
        for item in items:
            self.objects.write(item)

    def delete(self, item: KubeObject) -> None:
        self.objects.remove(item)

    def run(self, *, for_s: float = 0.0) -> None:
        """Schedules until nothing is ready, then lets time pass to the next deadline, for at most this long."""
        until_s = self.now_s + for_s
        while True:
            while self.loop.schedule_one(self.now_s):
                self.settle()
            self.settle()
            deadline_s = self.loop.next_deadline_s()
            if deadline_s is None or deadline_s > until_s:
                self.now_s = until_s
                return
            self.now_s = max(self.now_s, deadline_s)
            self.loop.tick(self.now_s)
            self.settle()

    # -- what the loop asks for ----------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Carries out all effects, and those that follow from them."""
        effects = self.loop.take_effects()
        while effects:
            for effect in effects:
                answer = self.carry_out(effect.action)
                if answer is not None:
                    self.loop.answer(effect.id, answer, self.now_s)
            effects = self.loop.take_effects()

    def carry_out(self, action: object) -> object:
        """What an effect is answered with; None if it is not answered."""
        answer = self._interpreter.carry_out(action)
        if isinstance(action, BindPod) and isinstance(answer, Done):
            self.bound[action.pod] = action.node_name
        return answer

    def _evict(self, pod: Pod, action: EvictPod) -> None:
        self.evicted.append(action.pod)
        self.delete(pod)

    def _tell(self, before: KubeObject | None, after: KubeObject | None) -> None:
        if after is not None:
            self.loop.put(after, self.now_s)
        elif before is not None:
            self.loop.remove(before, self.now_s)


class QuietHandle:
    """Inherit it, and add what the plugin looks at."""

    group_features = GroupFeatures()

    def group_members(self, key: str) -> PodGroupMembers | None:
        return None

    def group(self, key: str) -> AnyGroup | None:
        return None

    def root_group(self, key: str) -> str:
        return key

    def child_groups(self, key: str) -> Sequence[AnyGroup]:
        return ()

    def preempt_for_group(self, cycle: CycleState, group: GroupCycle, pod_group: AnyGroup, fits: TrySchedule) -> Status:
        return Status.unschedulable()

    def waiting_pods(self) -> Sequence[HeldPod]:
        return ()

    def allow(self, uid: str, plugin_name: str) -> bool:
        return False

    def reject(self, uid: str, plugin_name: str, message: str) -> bool:
        return False

    def activate(self, pods: Iterable[PodInfo]) -> None:
        pass

    def activate_group(self, key: str) -> None:
        pass


Seen = TypeVar("Seen")


def listen_for(loop: Scheduler, kind: type[Seen]) -> list[Seen]:
    """A list that grows with every observation of this kind from now on."""
    found: list[Seen] = []

    def observe(seen: Observation) -> None:
        if isinstance(seen, kind):
            found.append(seen)

    loop.listen(observe)
    return found
