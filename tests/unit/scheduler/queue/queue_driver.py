"""A queue to play with: pods by name, made-up plugins whose hints and gates are set by the test, and a clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from kubesched.framework import OK, ActionType, ClusterEvent, EventResource, Hint, PodInfo, PodSignature, Status
from kubesched.framework.events import HintFunction, RegisteredEvent
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import PodKey
from kubesched.scheduler.queue import QueuedPodInfo, QueueProfile, QueueSettings, SchedulingQueue

NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_LABEL = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
NODE_TAINT = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)
POD_LABEL = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_LABEL)
SLICE_ADD = ClusterEvent(EventResource.RESOURCE_SLICE, ActionType.ADD)
GATES_GONE = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)


def pod(name: str, *, uid: str = "", labels: Mapping[str, str] | None = None, **spec: Any) -> Pod:
    metadata = {"name": name, "namespace": "default", "uid": uid or f"uid-{name}", "labels": labels}
    return msgspec.convert({"metadata": metadata, "spec": spec}, Pod)


def info_of(of_pod: Pod) -> PodInfo:
    return PodInfo(of_pod, PodSignature(of_pod, label_class=0, affinity_class=-1))


def node(name: str = "n") -> Node:
    return msgspec.convert({"metadata": {"name": name}}, Node)


def key(name: str) -> PodKey:
    return PodKey(f"default/{name}")


def names(pods: Iterable[QueuedPodInfo]) -> list[str]:
    return [queued.info.name for queued in pods]


class Answers:
    """A hint that says what it is told to, and counts how often it is asked."""

    def __init__(self, answer: Hint | Exception = Hint.QUEUE) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def __call__(self, info: PodInfo, old: object | None, new: object | None) -> Hint:
        self.asked.append(info.name)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def on(event: ClusterEvent, hint: HintFunction | None = None) -> RegisteredEvent:
    return RegisteredEvent(event, hint)


def by_priority(queued: Any) -> tuple[float, ...]:
    return (-queued.info.priority, queued.queued_at_s)


def no_gates(_info: PodInfo) -> Status:
    return OK


class Play:
    """The queue, the time, and who is held back by which plugin."""

    def __init__(
        self,
        events: Mapping[str, Sequence[RegisteredEvent]] | None = None,
        settings: QueueSettings | None = None,
    ) -> None:
        self.now_s = 1000.0
        self.gated: dict[str, str] = {}
        self.gates_asked: list[str] = []
        profile = QueueProfile(by_priority, self._pre_enqueue, events or {})
        self.queue = SchedulingQueue(settings or QueueSettings(), {"default-scheduler": profile})
        self.popped: QueuedPodInfo | None = None

    def _pre_enqueue(self, info: PodInfo) -> Status:
        self.gates_asked.append(info.name)
        plugin = self.gated.get(info.name)
        return OK if plugin is None else Status.unresolvable("held back").by(plugin)

    def add(self, *pod_names: str, **fields: Any) -> None:
        for name in pod_names:
            self.queue.add(info_of(pod(name, **fields)), self.now_s)

    def pop(self) -> str | None:
        self.popped = self.queue.pop(self.now_s)
        return None if self.popped is None else self.popped.info.name

    def reject(self, *plugins: str, pending: Iterable[str] = ()) -> None:
        """The attempt for the pod popped last ends in a rejection; without a plugin, in an error."""
        assert self.popped is not None
        self.popped.unschedulable_plugins = frozenset(plugins)
        self.popped.pending_plugins = frozenset(pending)
        is_error = not plugins and not self.popped.pending_plugins
        self.queue.add_unschedulable(self.popped, is_error=is_error, now_s=self.now_s)

    def try_and_reject(self, name: str, *plugins: str, pending: Iterable[str] = (), **fields: Any) -> None:
        """A new pod that is popped and rejected at once. Nothing else may be active."""
        self.add(name, **fields)
        assert self.pop() == name
        self.reject(*plugins, pending=pending)

    def happen(self, event: ClusterEvent, old: object | None = None, new: object | None = None) -> None:
        self.queue.move_all(event, old, new, self.now_s)

    def wait(self, seconds: float) -> None:
        """Time passes, with a look at the queue at its end."""
        self.now_s += seconds
        self.queue.flush(self.now_s)

    def where(self, name: str) -> str:
        contents = self.queue.contents
        places = {
            "active": contents.active,
            "backoff": contents.backoff,
            "unschedulable": contents.unschedulable,
            "gated": contents.gated,
            "in flight": contents.in_flight,
        }
        return " and ".join(place for place, pods in places.items() if name in names(pods)) or "nowhere"
