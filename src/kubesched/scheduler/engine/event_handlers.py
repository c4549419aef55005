"""Facts from informers, told to the cluster and to the queue.

The cluster learns what is; the queue learns what changed, so that pods which that may help are tried again. The cluster
is told first, but for a node that goes: what waits is told while the node is still known, as kube-scheduler does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from kubesched.framework import events
from kubesched.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    UNSCHEDULED_POD_ADD,
    UNSCHEDULED_POD_DELETE,
    ClusterEvent,
)
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.partial_reading import UnreadPod
from kubesched.k8s.model.scheduling import CompositePodGroup, PodGroup, group_key_of
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.binding_cycles import BindingCycles
from kubesched.scheduler.engine.failure import nomination_over, place_freed
from kubesched.scheduler.engine.observations import ADDED, DELETED, UPDATED, NodeEvent, Observers, PodEvent
from kubesched.scheduler.engine.preemption.execution import PreemptionExecutor
from kubesched.scheduler.queue import SchedulingQueue
from kubesched.scheduler.queue.changes import events_of


class EventHandlers:
    """Remembers every object as the informer last showed it."""

    def __init__(
        self,
        cluster: Cluster,
        queue: SchedulingQueue,
        scheduler_names: Collection[str],
        bindings: BindingCycles,
        preemptions: PreemptionExecutor,
        observers: Observers,
        *,
        moves_mates: bool = False,
        frees_rooms: bool = False,
    ) -> None:
        """`moves_mates`: a pod of a group that comes is a change to those that wait. `frees_rooms`: a gang that is
        incomplete now is nominated to nothing any more."""
        self._observers = observers
        self._moves_mates = moves_mates
        self._frees_rooms = frees_rooms
        self._cluster = cluster
        self._placed = cluster.placed
        self._queue = queue
        self._scheduler_names = scheduler_names
        self._bindings = bindings
        self._preemptions = preemptions
        self._pods: dict[PodKey, Pod] = {}
        self.handled: tuple[tuple[str], ...] = ()
        """The labels of the events that the last fact brought about, for metrics."""

    def put(self, item: KubeObject, now_s: float) -> None:
        if not isinstance(item, Pod):
            self._put_other(item, now_s)
            return
        if item.is_terminal:
            self._remove_pod(item, now_s)  # a finished pod holds nothing any more
            return
        key = item.pod_key
        old = self._pods.get(key)
        if old is not None and old.metadata.uid != item.metadata.uid:
            self._remove_pod(old, now_s)
            old = None
        if isinstance(item, UnreadPod):
            self._put_unread(old, key, now_s)
            return
        self._pods[key] = item
        if item.spec.node_name:
            self._put_assigned(old, item, key, now_s)
        else:
            self._put_pending(old, item, key, now_s)

    def _put_other(self, item: KubeObject, now_s: float) -> None:
        old: KubeObject | None
        if isinstance(item, Node):
            row = self._cluster.table.rows.get(item.name)
            old = None if row is None else self._cluster.table.nodes[row]
            if self._observers.steps is not None:
                self._observers.steps(NodeEvent(ADDED if old is None else UPDATED, item))
        else:
            old = self._cluster.objects.find(item)
        self._cluster.put(item)
        found = self._move(old, item, now_s)
        self.handled = _labels(found)
        if isinstance(item, PodGroup | CompositePodGroup) and found:
            self._call_members(item.group_key, found[0], now_s)

    def remove(self, item: KubeObject, now_s: float) -> None:
        if isinstance(item, Pod):
            self._remove_pod(item, now_s)
        elif isinstance(item, Node):
            if self._observers.steps is not None:
                self._observers.steps(NodeEvent(DELETED, item))
            self.handled = _labels(self._move(item, None, now_s))
            self._cluster.remove(item)
        else:
            self._cluster.remove(item)
            self.handled = _labels(self._move(item, None, now_s))
            if isinstance(item, PodGroup | CompositePodGroup):
                self._queue.group_gone(item, now_s)
                self._preemptions.forget(item.metadata.uid or item.group_key)
                for group in self._groups_below(item.group_key):
                    self._give_up_rooms(group, now_s)

    def _call_members(self, group: str, event: ClusterEvent, now_s: float) -> None:
        """What held pods of the group back may be over: they are held until they are called."""
        members = self._cluster.group_members(group)
        waiting = () if members is None else [info.key for info in members.unscheduled_pods()]
        self._queue.call_group(group, waiting, event, now_s)

    def _groups_below(self, group: str) -> Iterable[str]:
        """The PodGroups among them, itself included."""
        return (group,) if self._cluster.forest is None else list(self._cluster.forest.leaves(group))

    def _give_up_rooms(self, group: str, now_s: float) -> None:
        """Pods of a gang that is incomplete are held back: what they were nominated to is for others."""
        state = None if self._cluster.groups is None else self._cluster.groups.get(group)
        if state is None or not self._frees_rooms:
            return
        pod_group = self._cluster.objects.pod_groups.get(group)
        has_root = self._cluster.forest is None or self._cluster.forest.root_of(group)
        if pod_group is None or not has_root or state.n_pods < pod_group.min_count:
            for info in list(state.unscheduled_pods()):
                node_name = self._cluster.nominations.node_of(info)
                if node_name:
                    self._preemptions.clear_nomination(info)
                    nomination_over(self._queue, info.pod, node_name, now_s)

    # -- pods ----------------------------------------------------------------------------------------------------------

    def _put_unread(self, old: Pod | None, key: PodKey, now_s: float) -> None:
        """A pod without a node that cannot be read is not scheduled. If it is being bound it goes on its way, and what
        it takes stays taken until it is heard of again."""
        if old is not None and not self._cluster.is_assumed(key):
            self._remove_pod(old, now_s)
        else:
            self.handled = _UNSCHEDULED_UPDATE

    def _put_assigned(self, old: Pod | None, pod: Pod, key: PodKey, now_s: float) -> None:
        waiting = self._cluster.pending.get(key)
        was_pending = old is not None and not old.spec.node_name
        if was_pending:
            old = None  # for those that wait, a pod that got its node is new
        if self._observers.steps is not None:
            self._observers.steps(PodEvent(ADDED if old is None else UPDATED, pod, is_scheduled=True))
            if was_pending and pod.spec.scheduler_name in self._scheduler_names:
                self._observers.steps(PodEvent(DELETED, pod, is_scheduled=False))
        assumed = self._placed.get(key) if old is None else None
        nominated_nodes = self._cluster.nominations.node_by_uid
        nominated_node = nominated_nodes.get(waiting.uid, "") if nominated_nodes and waiting is not None else ""
        self._cluster.put_pod(pod, key)
        if pod.metadata.deletion_timestamp is not None:
            self._preemptions.pod_leaves(key, now_s)
        if waiting is not None:
            self._queue.delete(waiting)
        self.handled = _ASSIGNED_ADD if old is None else _ASSIGNED_UPDATE
        self._queue.on_assigned_pod(old, pod, now_s)
        was_counted = waiting is not None and pod.spec.scheduler_name in self._scheduler_names
        if self._moves_mates and old is None and not was_counted and pod.spec.scheduling_group is not None:
            self._call_members(group_key_of(pod), ASSIGNED_POD_ADD, now_s)  # one more counts for its gang
        if nominated_node and waiting is not None and nominated_node != pod.spec.node_name:
            nomination_over(self._queue, waiting.pod, nominated_node, now_s)  # somebody else bound it, and elsewhere
        if assumed is not None and assumed.pod.spec.node_name != pod.spec.node_name:
            self._queue.move_all(ASSIGNED_POD_DELETE, assumed.pod, None, now_s)  # the place we had for it is free
        elif assumed is not None and assumed.pod.metadata.labels != pod.metadata.labels:
            self._queue.on_assigned_pod(assumed.pod, pod, now_s)  # it changed on its way, and counted as it was

    def _put_pending(self, old: Pod | None, pod: Pod, key: PodKey, now_s: float) -> None:
        self.handled = _UNSCHEDULED_ADD if old is None else _UNSCHEDULED_UPDATE
        if old is not None and old.metadata.resource_version == pod.metadata.resource_version != "":
            return
        assumed = self._cluster.is_assumed(key)
        self._cluster.put_pod(pod, key)
        is_terminating = pod.metadata.deletion_timestamp is not None
        if is_terminating or (old is not None and old.spec.node_name):
            self._preemptions.pod_leaves(key, now_s)
        if assumed:
            self._queue.update_in_flight(old, self._cluster.pending[key])
            if is_terminating and not (old is not None and old.is_terminating):
                self._assumed_pod_leaves(pod, now_s)
            return
        if pod.spec.scheduler_name not in self._scheduler_names:
            return
        if self._observers.steps is not None:
            self._observers.steps(PodEvent(ADDED if old is None else UPDATED, pod, is_scheduled=False))
        info = self._cluster.pending[key]
        if old is None:
            self._queue.add(info, now_s)
            if self._moves_mates and pod.spec.scheduling_group is not None:
                group = group_key_of(pod)
                self._queue.move_all(UNSCHEDULED_POD_ADD, None, pod, now_s)
                if not self._queue.is_held_with(key, group):
                    self._call_members(group, UNSCHEDULED_POD_ADD, now_s)
            return
        self._queue.update(old, info, now_s)
        nominated = old.status.nominated_node_name
        if nominated and nominated != pod.status.nominated_node_name:
            place_freed(self._queue, old, now_s)

    def _remove_pod(self, pod: Pod, now_s: float) -> None:
        key = pod.pod_key
        old = self._pods.pop(key, None) or pod
        self.handled = _ASSIGNED_DELETE if old.spec.node_name else _UNSCHEDULED_DELETE
        is_scheduled = bool(old.spec.node_name)
        if self._observers.steps is not None and (is_scheduled or old.spec.scheduler_name in self._scheduler_names):
            self._observers.steps(PodEvent(DELETED, old, is_scheduled))
        uid = old.metadata.uid or key
        self._preemptions.forget(uid)
        self._bindings.pod_deleted(uid, now_s)
        if self._cluster.is_assumed(key):
            self._assumed_pod_leaves(old, now_s)
        waiting = self._cluster.pending.get(key)
        self._cluster.drop_pod(key)
        self._preemptions.pod_leaves(key, now_s)
        if waiting is not None:
            self._queue.delete(waiting)
        if old.spec.node_name:
            self._queue.on_assigned_pod(old, None, now_s)
        elif old.status.nominated_node_name:
            place_freed(self._queue, old, now_s)
        if old.spec.scheduling_group is not None:
            self._give_up_rooms(group_key_of(old), now_s)
            if self._cluster.forest is not None and waiting is not None:
                self._call_members(group_key_of(old), UNSCHEDULED_POD_DELETE, now_s)  # perhaps it held back its group

    def _assumed_pod_leaves(self, pod: Pod, now_s: float) -> None:
        """A pod that is being bound is deleted: its place is free at once, its binding will fail by itself."""
        assumed = self._cluster.find_pod(pod.pod_key)
        if assumed is None:
            return
        if not self._bindings.reject_if_waiting(assumed.uid, now_s):
            self._cluster.forget(assumed)
        self._queue.move_all(ASSIGNED_POD_DELETE, assumed.pod, None, now_s)

    def _move(self, old: KubeObject | None, new: KubeObject | None, now_s: float) -> Sequence[ClusterEvent]:
        found = events_of(old, new)
        for event in found:
            self._queue.move_all(event, old, new, now_s)
        return found


def _labels(events: Iterable[ClusterEvent]) -> tuple[tuple[str], ...]:
    return tuple((event.label,) for event in events)


_ASSIGNED_ADD = _labels((events.ASSIGNED_POD_ADD,))
_ASSIGNED_UPDATE = _labels((events.ASSIGNED_POD_UPDATE,))
_ASSIGNED_DELETE = _labels((events.ASSIGNED_POD_DELETE,))
_UNSCHEDULED_ADD = _labels((events.UNSCHEDULED_POD_ADD,))
_UNSCHEDULED_UPDATE = _labels((events.UNSCHEDULED_POD_UPDATE,))
_UNSCHEDULED_DELETE = _labels((events.UNSCHEDULED_POD_DELETE,))
