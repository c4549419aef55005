"""The cluster as the scheduler knows it. Takes facts about objects; gives the node table and everything else to read.

Pods that run count on their node's row; finished ones do not count; a pod on a node that is not known waits here until
the node comes. Pods without a node are pending: they count only where they are nominated, after preemption made them
wait for evictions there. Beside the table stands what is known of each pod group: which pods name it, and which of
these have a node.

A pod that is being bound is *assumed*: it counts on its node and is still pending for the API server. A pod's life:

    pending --assume--> assumed --put (bound)--> on its node --remove--> gone
       ^------forget-------'  (also from pending or assumed straight to any of these, as facts come)

Next: `table`, and `signatures` for what pods have in common; `undo` for changes that are taken back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager

import numpy as np
from msgspec.structs import replace

from kubesched.framework.groups import PodGroupMembers
from kubesched.framework.nodes import RowArray
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model import storage
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.scheduling import group_key_of, is_composite
from kubesched.scheduler.cluster.group_forest import GroupForest
from kubesched.scheduler.cluster.journal import ChangeLog
from kubesched.scheduler.cluster.node_order import NameOrder, NodeOrder
from kubesched.scheduler.cluster.objects import ObjectStore
from kubesched.scheduler.cluster.signatures import LabelClasses, PodSignatures
from kubesched.scheduler.cluster.table import Table
from kubesched.scheduler.cluster.view import TableView


class Nominations:
    """Nominated pods by node name. A pod is nominated to one node at a time."""

    def __init__(self) -> None:
        self._by_node: dict[str, dict[str, PodInfo]] = {}
        self.node_by_uid: dict[str, str] = {}
        """To look at; mostly empty, which is asked for every pod."""
        self.changed: ChangeLog[str] = ChangeLog()
        """The nodes whose nominations changed."""

    def __len__(self) -> int:
        """How many pods are nominated to a node."""
        return len(self.node_by_uid)

    def add(self, info: PodInfo, node_name: str) -> None:
        self.remove(info)
        self._by_node.setdefault(node_name, {})[info.uid] = info
        self.node_by_uid[info.uid] = node_name
        self.changed.append(node_name)

    def remove(self, info: PodInfo) -> None:
        node_name = self.node_by_uid.pop(info.uid, None)
        if node_name is not None:
            del self._by_node[node_name][info.uid]
            if not self._by_node[node_name]:
                del self._by_node[node_name]
            self.changed.append(node_name)

    def on(self, node_name: str) -> Sequence[PodInfo]:
        found = self._by_node.get(node_name)
        return tuple(found.values()) if found else ()

    def node_for(self, info: PodInfo) -> str:
        """The node that the pod is nominated to: by its status, or by what was decided and is perhaps not written yet.
        Empty if there is none."""
        return info.pod.status.nominated_node_name or self.node_by_uid.get(info.uid, "")

    def node_of(self, info: PodInfo) -> str:
        """Empty if the pod is nominated to none."""
        return self.node_by_uid.get(info.uid, "")

    def node_names(self) -> Iterable[str]:
        return self._by_node.keys()

    def has(self, info: PodInfo) -> bool:
        """Whether this pod is nominated to a node."""
        return info.uid in self.node_by_uid


STORAGE_KINDS = (
    storage.PersistentVolume,
    storage.PersistentVolumeClaim,
    storage.StorageClass,
    storage.CSINode,
    storage.CSIDriver,
    storage.CSIStorageCapacity,
    storage.VolumeAttachment,
)


class Cluster:
    """One owner at a time: nothing here is locked."""

    def __init__(self) -> None:
        label_classes = LabelClasses()
        self.table = Table(label_classes)
        self.signatures = PodSignatures(label_classes)
        self.objects = ObjectStore()
        self.nominations = Nominations()
        self.pending: dict[PodKey, PodInfo] = {}
        self.groups: PodGroupStates | None = None
        """Who belongs together, if anybody asks for it (`track_groups`)."""
        self.forest: GroupForest | None = None
        """Which groups belong together, likewise (`track_forest`)."""
        self._order = NodeOrder()
        self._rows_in_order: RowArray | None = None
        self._name_order: NameOrder | None = None
        self._pods: dict[PodKey, PodInfo] = {}
        self._assumed: set[PodKey] = set()
        self._orphans: dict[str, dict[PodKey, PodInfo]] = {}

    @classmethod
    def from_objects(cls, objects: Iterable[KubeObject]) -> Cluster:
        cluster = cls()
        for item in cls.in_order(objects):
            cluster.put(item)
        return cluster

    @staticmethod
    def in_order(objects: Iterable[KubeObject]) -> list[KubeObject]:
        """Nodes first, then pods, then the rest; within a kind in the order given."""
        return sorted(objects, key=lambda item: 0 if isinstance(item, Node) else 1 if isinstance(item, Pod) else 2)

    @property
    def nodes(self) -> TableView:
        """The table of all nodes."""
        return TableView(self.table)

    @property
    def rows_in_order(self) -> RowArray:
        """(n_nodes,) rows in the order in which a search goes through them."""
        if self._rows_in_order is None:
            rows = self.table.rows
            self._rows_in_order = np.fromiter(map(rows.__getitem__, self._order), dtype=np.intp, count=len(rows))
        return self._rows_in_order

    def name_order(self) -> NameOrder:
        if self._name_order is None:
            self._name_order = NameOrder(self.table.names)
        return self._name_order

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        found = self.objects.namespaces.get(namespace)
        return {} if found is None else found.labels

    def track_groups(self, scheduler_names: Collection[str]) -> None:
        """From now on it is known which pods belong to which group, of those without a node if these schedule them."""
        self.groups = PodGroupStates(scheduler_names).recounted(self.pending.values(), self._pods.values())

    def track_forest(self, *, has_composites: bool) -> None:
        """From now on groups have parents, as in v1.37, if these count."""
        objects = self.objects
        self.forest = GroupForest(objects.pod_groups, objects.composite_pod_groups, has_composites=has_composites)

    def group_members(self, key: str) -> PodGroupMembers | None:
        """Of a group of groups, those of all groups below; None if there are none."""
        if self.groups is None:
            return None
        if self.forest is None or not is_composite(key):
            return self.groups.get(key)
        states = [state for leaf in self.forest.leaves(key) if (state := self.groups.get(leaf)) is not None]
        return MembersOfGroups(states) if states else None

    # -- facts ---------------------------------------------------------------------------------------------------------

    def put(self, item: KubeObject) -> None:
        """An object was added, or is now like this."""
        if isinstance(item, Pod):
            if item.is_terminal:
                self.drop_pod(item.pod_key)
            else:
                self.put_pod(item, item.pod_key)
        elif isinstance(item, Node):
            self._put_node(item)
        else:
            self.objects.put(item)
            self._note_object(item)

    def remove(self, item: KubeObject) -> None:
        """An object is gone."""
        if isinstance(item, Pod):
            self.drop_pod(item.pod_key)
        elif isinstance(item, Node):
            self._remove_node(item.name)
        else:
            self.objects.remove(item)
            self._note_object(item)

    def _note_object(self, item: KubeObject) -> None:
        """Storage is the concern of pods that have some, and their answers are not kept."""
        if not isinstance(item, STORAGE_KINDS):
            self.table.journal.object_changed(item)

    def find_pod(self, key: PodKey) -> PodInfo | None:
        """A pod that is known here: on a node, waiting for its node to come, or pending."""
        return self._pods.get(key) or self.pending.get(key)

    def _put_node(self, node: Node) -> None:
        if node.name in self.table.rows:
            self.table.update_node(node)
        else:
            row = self.table.add_node(node)
            for info in self._orphans.pop(node.name, {}).values():
                self.table.add_pod(info, row)
            self._rows_in_order = self._name_order = None
        if self._order.put(node):
            self._rows_in_order = None

    def _remove_node(self, name: str) -> None:
        if name not in self.table.rows:
            return
        _, left = self.table.remove_node(name)
        if left:
            self._orphans[name] = {info.key: info for info in left}
        self._order.remove(name)
        self._rows_in_order = self._name_order = None

    def put_pod(self, pod: Pod, key: PodKey) -> None:
        """The same for a pod that has not finished, whose key the caller knows."""
        known = self._pods.get(key)
        if known is None and key not in self.pending:
            info = self.signatures.info(pod, key)
            info.signature.resources  # noqa: B018  as below
            self.add_pod(info, pod.status.nominated_node_name)
            return
        info = self.signatures.info_like(pod, known, key)
        info.signature.resources  # noqa: B018  a pod whose amounts cannot be read must fail before anything changes
        if known is not None and known.uid == info.uid:
            if not pod.spec.node_name and key in self._assumed:
                self.pending[key] = info  # the API server has not heard of the binding yet
                return
            if pod.spec.node_name == known.spec.node_name and info.signature is known.signature:
                self._replace_in_place(known, info)
                return
        nominated = self._nominated_node(info)
        self.drop_pod(key)
        self.add_pod(info, nominated)

    def _nominated_node(self, info: PodInfo) -> str:
        """The node that the pod, which is pending, is nominated to: what its status says; or, as long as that has never
        said anything, what was decided here and is perhaps not written yet."""
        written = info.pod.status.nominated_node_name
        known = self.pending.get(info.key)
        if written or known is None or known.uid != info.uid or known.pod.status.nominated_node_name:
            return written
        return self.nominations.node_of(known)

    def add_pod(self, info: PodInfo, nominated: str = "") -> None:
        """A pod that is not known here: on its node, or pending and perhaps nominated to one."""
        pod = info.pod
        if self.groups is not None and pod.spec.scheduling_group is not None:
            (self.groups.is_placed if pod.spec.node_name else self.groups.is_pending)(info)
        if not pod.spec.node_name:
            self.pending[info.key] = info
            if nominated:
                self.nominations.add(info, nominated)
            return
        self._pods[info.key] = info
        row = self.table.rows.get(pod.spec.node_name)
        if row is None:
            self._orphans.setdefault(pod.spec.node_name, {})[info.key] = info
        else:
            self.table.add_pod(info, row)

    def _replace_in_place(self, known: PodInfo, info: PodInfo) -> None:
        """A confirmed binding, or a change that no count depends on."""
        key, pod = info.key, info.pod
        self._assumed.discard(key)
        if key in self.pending:
            self._forget_pending(key)
        if (known.pod.metadata.deletion_timestamp is None) != (pod.metadata.deletion_timestamp is None):
            self.drop_pod(key)
            self.add_pod(info)
            return
        self._pods[key] = info
        if self.groups is not None and pod.spec.scheduling_group is not None:
            self.groups.is_placed(info)
        if not self.table.pods.replace(info):
            self._orphans[pod.spec.node_name][key] = info

    def drop_pod(self, key: PodKey) -> None:
        """A pod is gone, wherever it was."""
        self._assumed.discard(key)
        if key in self.pending:
            self._forget_pending(key)
        known = self._pods.pop(key, None)
        if known is None:
            return
        if self.groups is not None and known.spec.scheduling_group is not None:
            self.groups.is_gone(known)
        self._take_off_node(known)

    def _take_off_node(self, known: PodInfo) -> None:
        if self.table.pods.find(known.uid) is not None:
            self.table.remove_pod(known)
            return
        orphans = self._orphans[known.spec.node_name]
        del orphans[known.key]
        if not orphans:
            del self._orphans[known.spec.node_name]

    def _forget_pending(self, key: PodKey) -> None:
        waiting = self.pending.pop(key)
        if self.nominations.node_by_uid:
            self.nominations.remove(waiting)
        if self.groups is not None and waiting.spec.scheduling_group is not None and key not in self._pods:
            self.groups.is_gone(waiting)

    # -- assumed pods --------------------------------------------------------------------------------------------------

    def assume(self, info: PodInfo, node_name: str) -> PodInfo:
        """Counts the pod on the node before the API server knows of it. Gives the pod as it is there."""
        pod = info.pod
        assumed = PodInfo(replace(pod, spec=replace(pod.spec, node_name=node_name)), info.signature, info.key, info.pin)
        if self.nominations.node_by_uid:
            self.nominations.remove(info)
        self._pods[info.key] = assumed
        self._assumed.add(info.key)
        if self.groups is not None and pod.spec.scheduling_group is not None:
            self.groups.is_placed(assumed)
        self.table.add_pod(assumed, self.table.rows[node_name])
        return assumed

    def forget(self, assumed: PodInfo) -> bool:
        """Takes an assumed pod back; False if it is not assumed (any more)."""
        known = self._pods.get(assumed.key)
        if assumed.key not in self._assumed or known is None or known.uid != assumed.uid:
            return False
        self._assumed.discard(assumed.key)
        del self._pods[assumed.key]
        self._take_off_node(known)
        if self.groups is not None and known.spec.scheduling_group is not None:
            waiting = self.pending.get(assumed.key)
            if waiting is None:
                self.groups.is_gone(known)
            else:
                self.groups.is_pending(waiting)
        return True

    def is_assumed(self, key: PodKey) -> bool:
        return key in self._assumed

    @property
    def placed(self) -> Mapping[PodKey, PodInfo]:
        """Every pod that has a node here: confirmed or assumed, whether its node is known or not."""
        return self._pods

    @property
    def assumed_keys(self) -> Set[PodKey]:
        return self._assumed

    @property
    def orphans(self) -> Mapping[str, Mapping[PodKey, PodInfo]]:
        """Pods on nodes that are not known (yet, or any more), by the node's name."""
        return self._orphans

    @property
    def n_assumed(self) -> int:
        return len(self._assumed)

    @property
    def n_pods(self) -> int:
        """Pods on nodes, assumed ones among them."""
        return len(self._pods)

    # -- what if -------------------------------------------------------------------------------------------------------

    def node_order(self) -> NodeOrder:
        """A copy of the order in which nodes are searched, for `restore_node_order`."""
        return self._order.copy()

    def has_other_order_with(self, node: Node) -> bool:
        """Whether nodes would be searched in another order if the node came, or became like this."""
        return self._order.changes_with(node)

    def restore_node_order(self, order: NodeOrder) -> None:
        """The nodes are the same again as when this order was copied."""
        self._order = order.copy()
        self._rows_in_order = None

    def bring_back_pod(self, info: PodInfo, nominated: str, *, is_assumed: bool) -> None:
        """A pod is where it was before something was tried out."""
        self.drop_pod(info.key)
        self.add_pod(info, nominated)
        if is_assumed:
            self._assumed.add(info.key)

    def restore_node(self, node: Node, row: int) -> None:
        """Brings back a node that was removed, on the row that it had. The node there now was the last one."""
        self._put_node(node)
        last = self.table.n - 1
        if row == last:
            return
        other = self.table.nodes[row]
        _, pods = self.table.remove_node(other.name)
        self.table.add_node(other)
        for info in pods:
            self.table.add_pod(info, last)
        self._rows_in_order = self._name_order = None

    @contextmanager
    def with_pods(self, added: Iterable[PodInfo], row: int) -> Iterator[None]:
        """The table as it would be with these pods on a row; afterwards as before."""
        pods = list(added)
        with self.table.journal.paused():
            for info in pods:
                self.table.add_pod(info, row)
            try:
                yield
            finally:
                for info in reversed(pods):
                    self.table.remove_pod(info)


class PodGroupState:
    """The pods of one group, in the order in which they came to where they are."""

    __slots__ = ("scheduled", "unscheduled")

    def __init__(self) -> None:
        self.unscheduled: dict[PodKey, PodInfo] = {}
        self.scheduled: dict[PodKey, PodInfo] = {}
        """With their node: assumed, or bound."""

    @property
    def n_pods(self) -> int:
        return len(self.unscheduled) + len(self.scheduled)

    @property
    def n_scheduled(self) -> int:
        return len(self.scheduled)

    def unscheduled_pods(self) -> Collection[PodInfo]:
        return self.unscheduled.values()

    def scheduled_pods(self) -> Collection[PodInfo]:
        return self.scheduled.values()


class MembersOfGroups:
    """Of several groups together. Implements `framework.groups.PodGroupMembers`."""

    def __init__(self, states: Sequence[PodGroupState]) -> None:
        self._states = states

    @property
    def n_pods(self) -> int:
        return sum(state.n_pods for state in self._states)

    @property
    def n_scheduled(self) -> int:
        return sum(state.n_scheduled for state in self._states)

    def unscheduled_pods(self) -> Collection[PodInfo]:
        return [info for state in self._states for info in state.unscheduled_pods()]

    def scheduled_pods(self) -> Collection[PodInfo]:
        return [info for state in self._states for info in state.scheduled_pods()]


class PodGroupStates:
    """By `namespace/name` of the group."""

    def __init__(self, scheduler_names: Collection[str]) -> None:
        self._scheduler_names = scheduler_names
        self._by_group: dict[str, PodGroupState] = {}

    def get(self, key: str) -> PodGroupState | None:
        """None if no pod names the group."""
        return self._by_group.get(key)

    def names(self) -> Iterable[str]:
        return self._by_group.keys()

    def recounted(self, pending: Iterable[PodInfo], placed: Iterable[PodInfo]) -> PodGroupStates:
        """What follows from these pods alone. Of one that is both, it counts that it is placed."""
        found = PodGroupStates(self._scheduler_names)
        for info in pending:
            found.is_pending(info)
        for info in placed:
            found.is_placed(info)
        return found

    def is_pending(self, info: PodInfo) -> None:
        """The pod has no node, or none any more."""
        group = group_key_of(info.pod)
        if not group:
            return
        if info.spec.scheduler_name not in self._scheduler_names:
            self.is_gone(info)
            return
        state = self._by_group.get(group)
        if state is None:
            state = self._by_group[group] = PodGroupState()
        state.scheduled.pop(info.key, None)
        state.unscheduled[info.key] = info

    def is_placed(self, info: PodInfo) -> None:
        """The pod has a node."""
        group = group_key_of(info.pod)
        if group:
            state = self._by_group.get(group)
            if state is None:
                state = self._by_group[group] = PodGroupState()
            state.unscheduled.pop(info.key, None)
            state.scheduled[info.key] = info

    def is_gone(self, info: PodInfo) -> None:
        group = group_key_of(info.pod)
        state = self._by_group.get(group)
        if state is not None:
            state.unscheduled.pop(info.key, None)
            state.scheduled.pop(info.key, None)
            if not state.n_pods:
                del self._by_group[group]
