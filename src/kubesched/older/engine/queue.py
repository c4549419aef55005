"""The queue of older schedulers: whatever an attempt failed of, the pod waits for a change, and any that counted then
brings it back, whoever rejected it.

Changes that counted: nodes that come or can take more, pods that leave their nodes, volumes, claims and classes that
come or change; a pod that gets its node only for those that want to be near it; and what is new in the pod itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from msgspec.structs import replace as replaced

from kubesched.framework.events import ActionType, ClusterEvent, EventResource, Hint, RegisteredEvent
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import ObjectMeta
from kubesched.k8s.model.storage import StorageClass
from kubesched.older.engine.preemption import PreemptionOfThen
from kubesched.scheduler.queue import QueuedPodInfo, QueueProfile, QueueSettings, SchedulingQueue
from kubesched.scheduler.queue.hints import MeasuredHint

ERROR = "(error)"
"""Stands for whoever rejected a pod where nobody did."""

LONGEST_WAIT_S = 60.0
"""A pod that waited for a change as long as this was tried again without one."""

_NO_NAMESPACE_LABELS: dict[str, str] = {}


class QueueOfThen(SchedulingQueue):
    def __init__(
        self,
        settings: QueueSettings,
        profiles: Mapping[str, QueueProfile],
        measured_hint: MeasuredHint | None = None,
    ) -> None:
        wait_s = min(settings.max_unschedulable_s, LONGEST_WAIT_S)
        settings = replace(settings, max_unschedulable_s=wait_s, pop_from_backoff=False)
        super().__init__(settings, {name: _as_of_then(profile) for name, profile in profiles.items()}, measured_hint)

    def add_unschedulable(self, queued: QueuedPodInfo, *, is_error: bool, now_s: float) -> None:
        """An error makes no difference."""
        if is_error or not queued.unschedulable_plugins:
            queued.unschedulable_plugins = frozenset({ERROR})
        super().add_unschedulable(queued, is_error=False, now_s=now_s)


def _as_of_then(profile: QueueProfile) -> QueueProfile:
    """Who preempts is held back until the victims leave, as today."""
    counted = {plugin: CHANGES for plugin in (*profile.events, ERROR) if plugin != PreemptionOfThen.name}
    return replace(profile, events={**profile.events, **counted})


def _after_pod_change(pod: PodInfo, old: object | None, new: object | None) -> Hint:
    if not isinstance(new, Pod):
        is_other = isinstance(old, Pod) and (old.metadata.uid or old.pod_key) != pod.uid
        return _queue_if(is_other)
    if (new.metadata.uid or new.pod_key) == pod.uid:
        return _queue_if(not isinstance(old, Pod) or new.spec != old.spec or _lasting(new) != _lasting(old))
    if not new.spec.node_name:
        return Hint.SKIP
    near = pod.affinity.required
    return _queue_if(any(term.matches(new.namespace, new.labels, _NO_NAMESPACE_LABELS) for term in near))


def _lasting(pod: Pod) -> ObjectMeta:
    """The metadata without what changes with every write."""
    return replaced(pod.metadata, resource_version="", generation=0)


def _after_new_class(_pod: PodInfo, _old: object | None, new: object | None) -> Hint:
    return _queue_if(isinstance(new, StorageClass) and new.volume_binding_mode == "WaitForFirstConsumer")


def _queue_if(worth_it: bool) -> Hint:
    return Hint.QUEUE if worth_it else Hint.SKIP


_NODE_CAN_TAKE_MORE = (
    ActionType.ADD
    | ActionType.UPDATE_NODE_ALLOCATABLE
    | ActionType.UPDATE_NODE_LABEL
    | ActionType.UPDATE_NODE_TAINT
    | ActionType.UPDATE_NODE_CONDITION
)
_COMES_OR_CHANGES = ActionType.ADD | ActionType.UPDATE

CHANGES: tuple[RegisteredEvent, ...] = (
    RegisteredEvent(ClusterEvent(EventResource.POD, ActionType.ALL), _after_pod_change),
    RegisteredEvent(ClusterEvent(EventResource.NODE, _NODE_CAN_TAKE_MORE)),
    RegisteredEvent(ClusterEvent(EventResource.PERSISTENT_VOLUME, _COMES_OR_CHANGES)),
    RegisteredEvent(ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, _COMES_OR_CHANGES)),
    RegisteredEvent(ClusterEvent(EventResource.STORAGE_CLASS, ActionType.ADD), _after_new_class),
    RegisteredEvent(ClusterEvent(EventResource.CSI_NODE, _COMES_OR_CHANGES)),
)
