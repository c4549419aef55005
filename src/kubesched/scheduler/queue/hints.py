"""Queueing hints: which plugins registered for an event, and whether a rejected pod should be requeued for it.

Only the plugins that rejected the pod are asked. A hint that raises counts as `QUEUE`: better one attempt in vain than
a pod that stays unschedulable forever.

Next: `scheduling_queue`, which asks for every event.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import ClassVar, NamedTuple

from kubesched.framework.events import (
    ActionType,
    ClusterEvent,
    EventResource,
    Hint,
    HintFunction,
    RegisteredEvent,
    Subjects,
)
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Pod
from kubesched.scheduler.queue.queued_pod import QueuedPodInfo

KEPT_FAILURES = 100
NODE_TAINT_UPDATE = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)

HintsByPlugin = Mapping[str, tuple[HintFunction | None, ...]]
"""Of the plugins that care about an event: their hints, None for one that is always worth an attempt."""

MeasuredHint = Callable[[str, str, HintFunction], HintFunction]
"""(plugin, event, hint) -> the same hint, with its duration measured."""


Judge = Callable[[QueuedPodInfo], "Requeue"]


class Requeue(Enum):
    """What a change means for a pod that waits for one."""

    SKIP = auto()
    """Nothing: it goes on waiting."""
    AFTER_BACKOFF = auto()
    IMMEDIATELY = auto()
    """To the active queue, whatever is left of its backoff."""


@dataclass(frozen=True, slots=True)
class EventMatch:
    """An event, and who registered for it."""

    label: str
    is_wildcard: bool
    plugins: tuple[str, ...]
    """Those of all profiles, each once."""
    hints: Mapping[str, HintsByPlugin]
    """By scheduler name."""
    pod_by_pod: Mapping[str, frozenset[str]]
    """By scheduler name: the plugins with a hint that has to be asked about every pod."""
    subjects: Mapping[str, Subjects]
    """By plugin, what its hints look for in such changes, where they say so in all profiles."""

    @property
    def is_of_interest(self) -> bool:
        return self.is_wildcard or bool(self.plugins)


class ClusterChange(NamedTuple):
    """Something that happened: the object before (None: it is new) and after (None: it is gone)."""

    match: EventMatch
    old: object | None
    new: object | None

    @property
    def changed(self) -> object | None:
        """The object as it is now, or as it was last."""
        return self.old if self.new is None else self.new


class HintFailure(NamedTuple):
    """A plugin's hint broke."""

    plugin: str
    event: str
    pod: PodInfo
    error: Exception


class HintTable:
    """The registered events of all profiles. What matches an event is looked up once for each kind of event."""

    adds_node_taints: ClassVar[bool] = True
    """Whether who waits for new nodes also waits for nodes that lose their taints."""

    def __init__(
        self,
        events: Mapping[str, Mapping[str, Sequence[RegisteredEvent]]],
        measured: MeasuredHint | None = None,
    ) -> None:
        self._measured = measured
        self.register(events)
        self.failures: deque[HintFailure] = deque(maxlen=KEPT_FAILURES)
        """The last hints that raised, for debugging."""
        self.failed: Callable[[HintFailure], None] | None = None
        """Notified of hints that fail."""
        self.n_failed = 0

    def register(self, events: Mapping[str, Mapping[str, Sequence[RegisteredEvent]]]) -> None:
        """These, in the place of all that were registered before."""
        self._events = {
            scheduler: {
                plugin: _with_node_taints(own) if self.adds_node_taints else own for plugin, own in by_plugin.items()
            }
            for scheduler, by_plugin in events.items()
        }
        self._matches: dict[ClusterEvent, EventMatch] = {}

    def match(self, event: ClusterEvent) -> EventMatch:
        known = self._matches.get(event)
        if known is None:
            known = self._matches[event] = self._find(event)
        return known

    def judge_all(self, change: ClusterChange) -> Judge:
        """What the change means for each of many pods."""
        if change.match.is_wildcard or self._measured is not None:  # what is measured is measured pod by pod
            return lambda queued: self.judge(queued, change)
        return JudgedBySignature(self, change)

    def judge(self, queued: QueuedPodInfo, change: ClusterChange) -> Requeue:
        """What the change means for a pod that was rejected."""
        match = change.match
        if match.is_wildcard:
            return Requeue.AFTER_BACKOFF if _concerns(change.new, queued) else Requeue.SKIP
        hints = match.hints.get(queued.info.pod.spec.scheduler_name)
        if not hints:
            return Requeue.SKIP
        if queued.pending_plugins and self._any_says_queue(queued.pending_plugins, hints, queued, change):
            return Requeue.IMMEDIATELY
        if self._any_says_queue(queued.unschedulable_plugins, hints, queued, change):
            return Requeue.AFTER_BACKOFF
        return Requeue.SKIP

    def _any_says_queue(
        self, rejectors: frozenset[str], hints: HintsByPlugin, queued: QueuedPodInfo, change: ClusterChange
    ) -> bool:
        for plugin, own in hints.items():
            if plugin in rejectors:
                for hint in own:
                    if hint is None or self._says_queue(plugin, hint, queued, change):
                        return True
        return False

    def _says_queue(self, plugin: str, hint: HintFunction, queued: QueuedPodInfo, change: ClusterChange) -> bool:
        try:
            return hint(queued.info, change.old, change.new) is not Hint.SKIP
        except Exception as error:  # noqa: BLE001  a broken plugin must not keep a pod from being tried
            self.n_failed += 1
            failure = HintFailure(plugin, change.match.label, queued.info, error)
            self.failures.append(failure)
            if self.failed is not None:
                self.failed(failure)
            return True

    def _find(self, event: ClusterEvent) -> EventMatch:
        hints: dict[str, HintsByPlugin] = {}
        pod_by_pod: dict[str, frozenset[str]] = {}
        plugins: dict[str, None] = {}
        for scheduler, by_plugin in self._events.items():
            found = {plugin: self._matching(plugin, own, event) for plugin, own in by_plugin.items()}
            hints[scheduler] = {plugin: own for plugin, own in found.items() if own}
            plugins.update(dict.fromkeys(hints[scheduler]))
            pod_by_pod[scheduler] = frozenset(
                plugin for plugin in hints[scheduler] if _is_asked_pod_by_pod(by_plugin[plugin], event)
            )
        subjects = {} if self._measured is not None else self._subjects(plugins, event)
        return EventMatch(event.label, event.is_wildcard, tuple(plugins), hints, pod_by_pod, subjects)

    def _subjects(self, plugins: Iterable[str], event: ClusterEvent) -> Mapping[str, Subjects]:
        """What is measured is measured pod by pod; else, what hints look for where they agree on it."""
        found: dict[str, Subjects] = {}
        for plugin in plugins:
            own = {
                entry.subjects if entry.by_signature else None
                for by_plugin in self._events.values()
                for entry in by_plugin.get(plugin, ())
                if entry.event.matches(event)
            }
            (one,) = own if len(own) == 1 else (None,)
            if one is not None:
                found[plugin] = one
        return found

    def _matching(
        self, plugin: str, registered: Sequence[RegisteredEvent], event: ClusterEvent
    ) -> tuple[HintFunction | None, ...]:
        found = [entry.hint for entry in registered if entry.event.matches(event)]
        measured = self._measured
        if measured is None:
            return tuple(found)
        return tuple(None if hint is None else measured(plugin, event.label, hint) for hint in found)


class JudgedBySignature:
    """Hints that look at no more of a pod than its signature are asked once for all pods that have it and were rejected
    by the same plugins."""

    __slots__ = ("_about", "_change", "_known", "_table")

    def __init__(self, table: HintTable, change: ClusterChange) -> None:
        self._table = table
        self._change = change
        changed = change.changed
        self._about = (changed.metadata.uid or changed.pod_key) if isinstance(changed, Pod) else ""
        """The changed pod itself, for which hints may answer otherwise."""
        self._known: dict[tuple[object, ...], Requeue] = {}

    def __call__(self, queued: QueuedPodInfo) -> Requeue:
        info, rejecting, pending = queued.info, queued.unschedulable_plugins, queued.pending_plugins
        pod_by_pod = self._change.match.pod_by_pod.get(info.pod.spec.scheduler_name)
        if pod_by_pod is None or info.uid == self._about or not pod_by_pod.isdisjoint(queued.rejectors):
            return self._table.judge(queued, self._change)
        key = info.signature, info.pin, rejecting, pending
        known = self._known.get(key)
        if known is None:
            n_failed = self._table.n_failed
            known = self._table.judge(queued, self._change)
            if self._table.n_failed == n_failed:  # one that breaks is reported for every pod
                self._known[key] = known
        return known


def _is_asked_pod_by_pod(registered: Sequence[RegisteredEvent], event: ClusterEvent) -> bool:
    matching = (entry for entry in registered if entry.event.matches(event))
    return any(entry.hint is not None and not entry.by_signature for entry in matching)


def _with_node_taints(registered: Sequence[RegisteredEvent]) -> Sequence[RegisteredEvent]:
    """Who waits for new nodes also waits for nodes that lose their taints, as kube-scheduler has it: a node often comes
    with a taint that goes as soon as it is ready."""
    of_nodes = [entry.event.action for entry in registered if entry.event.resource is EventResource.NODE]
    adds = any(ActionType.ADD in action for action in of_nodes)
    taints = any(ActionType.UPDATE_NODE_TAINT in action for action in of_nodes)
    return (*registered, RegisteredEvent(NODE_TAINT_UPDATE)) if adds and not taints else registered


def _concerns(new: object | None, queued: QueuedPodInfo) -> bool:
    """A wildcard event with an object is meant for that pod alone."""
    return new is None or (isinstance(new, Pod) and queued.info.is_same_as(new))
