"""A world around the loop that does what it is asked at once: a perfect API server, in memory.

Objects live in `objects`; effects are carried out on them and come back as facts. `run` lets time pass until nothing
more happens. For tests and benchmarks; the fault simulation has an unreliable one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from kubesched.framework.effects import (
    BindPod,
    Done,
    EvictPod,
    Failed,
    PatchObject,
    PatchPodStatus,
    RecordEvent,
    WriteObject,
)
from kubesched.k8s.model.core import Pod, PodCondition
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.simulator.object_effects import ObjectEffects

Item = TypeVar("Item", bound=KubeObject)


class World:
    """Answers every effect of the loop in the order they come."""

    def __init__(self, loop: Scheduler, *, now_s: float = 0.0) -> None:
        self.loop = loop
        self.now_s = now_s
        self.pods: dict[PodKey, Pod] = {}
        self.events: list[RecordEvent] = []
        self.bound: dict[PodKey, str] = {}
        self.evicted: list[PodKey] = []
        self._objects: dict[type[KubeObject], dict[str, Any]] = defaultdict(dict)
        self._writes = ObjectEffects(self, lambda beginning: f"{beginning}{self._version}")
        self._version = 0

    # -- what users do -------------------------------------------------------------------------------------------------

    def add(self, *items: KubeObject) -> None:
        for item in items:
            self._tell(item)

    def delete(self, item: KubeObject) -> None:
        if isinstance(item, Pod):
            self.pods.pop(item.pod_key, None)
        self._objects[type(item)].pop(item.key, None)
        self.loop.remove(item, self.now_s)

    def find(self, kind: type[Item], key: str) -> Item | None:
        return cast("Item | None", self._objects[kind].get(key))

    def create(self, item: Item) -> Item:
        """A new object, with a uid of its own."""
        return self._tell(replace(item, metadata=replace(item.metadata, uid=f"{item.name}-{self._version}")))

    def update(self, item: Item) -> Item:
        return self._tell(item)

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
        if isinstance(action, BindPod):
            return self._bind(action)
        if isinstance(action, EvictPod):
            return self._evict(action)
        if isinstance(action, WriteObject):
            return self._writes.write(action)
        if isinstance(action, PatchObject):
            return self._writes.patch(action)
        if isinstance(action, PatchPodStatus):
            self._patch(action)
        elif isinstance(action, RecordEvent):
            self.events.append(action)
        return None

    def _bind(self, action: BindPod) -> object:
        pod = self.pods.get(action.pod)
        if pod is None:
            return Failed(f'pods "{action.pod.partition("/")[2]}" not found', is_gone=True)
        if pod.spec.node_name:
            return Failed(f"pod {action.pod} is already assigned to node {pod.spec.node_name!r}")
        self.bound[action.pod] = action.node_name
        self._tell(replace(pod, spec=replace(pod.spec, node_name=action.node_name)))
        return Done()

    def _evict(self, action: EvictPod) -> object:
        pod = self.pods.get(action.pod)
        if pod is not None:
            self.evicted.append(action.pod)
            self.delete(pod)
        return Done()

    def _patch(self, action: PatchPodStatus) -> None:
        pod = self.pods.get(action.pod)
        if pod is None:
            return
        status = pod.status
        if action.condition is not None:
            status = replace(status, conditions=_with(status.conditions or (), action.condition))
        if action.nominated_node_name is not None:
            status = replace(status, nominated_node_name=action.nominated_node_name)
        self._tell(replace(pod, status=status))

    def _tell(self, item: Item) -> Item:
        self._version += 1
        item = replace(item, metadata=replace(item.metadata, resource_version=str(self._version)))
        if isinstance(item, Pod):
            self.pods[item.pod_key] = item
        self._objects[type(item)][item.key] = item
        self.loop.put(item, self.now_s)
        return item


def _with(conditions: Iterable[PodCondition], condition: PodCondition) -> tuple[PodCondition, ...]:
    return (*(known for known in conditions if known.type != condition.type), condition)
