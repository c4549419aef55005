"""Changes to a cluster that can be taken back, exactly: for what-if questions on a cluster that is loaded once.

Every change remembers its inverse. `revert` plays the inverses, the last one first, so that everything that is counted
and indexed is brought up to date as by any other fact; then it restores what inverses alone do not: the order of the
pods on a node, of the pending pods and of the nodes. It costs what was changed, not what there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec.structs import replace

from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.scheduler.cluster.cluster import Cluster
from kubesched.scheduler.cluster.node_order import NodeOrder


class UndoLog:
    """All changes go through here until they are reverted, or kept by whoever has the UndoLog before this one."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._inverses: list[Callable[[], None]] = []
        self._pods_on: dict[str, list[PodInfo]] = {}
        self._pending: dict[PodKey, PodInfo] | None = None
        self._order: NodeOrder | None = None
        self._lowest_priority = cluster.table.pods.lowest_priority
        self._has_absurd_amounts = cluster.table.has_absurd_amounts

    # -- changes -------------------------------------------------------------------------------------------------------

    def place(self, info: PodInfo, node_name: str) -> PodInfo:
        """A pod gets a node. Gives the pod as it is there."""
        pod = info.pod
        spec, status = replace(pod.spec, node_name=node_name), pod.status
        if status.nominated_node_name:
            status = replace(status, nominated_node_name="")
        placed = PodInfo(replace(pod, spec=spec, status=status), info.signature, info.key, info.pin)
        self.put_pod(placed)
        return placed

    def put_pod(self, info: PodInfo, nominated: str = "") -> None:
        """A pod is new, or now like this: on its node, or pending and perhaps nominated to one."""
        self._note_pod(info.key, info)
        self._cluster.drop_pod(info.key)
        self._cluster.add_pod(info, nominated)

    def remove_pod(self, key: PodKey) -> None:
        self._note_pod(key, None)
        self._cluster.drop_pod(key)

    def put_node(self, node: Node) -> None:
        """A node is new, or now like this."""
        if self._cluster.has_other_order_with(node):
            self._note_order()
        row = self._cluster.table.rows.get(node.name)
        if row is None:
            self._inverses.append(lambda: self._cluster.remove(node))
        else:
            before = self._cluster.table.nodes[row]
            self._inverses.append(lambda: self._cluster.put(before))
        self._cluster.put(node)

    def remove_node(self, name: str) -> None:
        """A node is gone, whose pods have left it before."""
        self._note_order()
        row = self._cluster.table.rows[name]
        node = self._cluster.table.nodes[row]
        assert not self._cluster.table.pods.on(row)
        self._inverses.append(lambda: self._cluster.restore_node(node, row))
        self._cluster.remove(node)

    def put_object(self, item: KubeObject) -> None:
        """Any other object is new, or now like this."""
        before = self._cluster.objects.find(item)
        if before is None:
            self._inverses.append(lambda: self._cluster.remove(item))
        else:
            self._inverses.append(lambda: self._cluster.put(before))
        self._cluster.put(item)

    def reorder_pending(self, order: Iterable[PodKey]) -> None:
        """The pods that wait came in this order; whoever is not named comes last."""
        pending = self._cluster.pending
        if self._pending is None:
            self._pending = dict(pending)
        named = dict.fromkeys(key for key in order if key in pending)
        for key in [*named, *(key for key in pending if key not in named)]:
            pending[key] = pending.pop(key)

    def also(self, inverse: Callable[[], None]) -> None:
        """Something else was changed, and this takes it back."""
        self._inverses.append(inverse)

    # -- the end -------------------------------------------------------------------------------------------------------

    def revert(self) -> None:
        """The cluster as it was before the first change."""
        cluster = self._cluster
        while self._inverses:
            self._inverses.pop()()
        if self._order is not None:
            cluster.restore_node_order(self._order)
        for name, pods in self._pods_on.items():
            row = cluster.table.rows.get(name)
            if row is not None:
                cluster.table.pods.restore_order(row, pods)
        if self._pending is not None:
            cluster.pending.clear()
            cluster.pending.update(self._pending)
        cluster.table.pods.lowest_priority = self._lowest_priority
        cluster.table.has_absurd_amounts = self._has_absurd_amounts

    def keep_in(self, before: UndoLog) -> None:
        """The changes stay, and are taken back with those of the UndoLog before this one."""
        before._inverses.extend(self._inverses)
        for name, pods in self._pods_on.items():
            before._pods_on.setdefault(name, pods)
        before._pending = self._pending if before._pending is None else before._pending
        before._order = self._order if before._order is None else before._order

    # -- what is noted before a change ---------------------------------------------------------------------------------

    def _note_pod(self, key: PodKey, becomes: PodInfo | None) -> None:
        """What the pod is now, and the order of the pods wherever it comes from or goes to."""
        cluster = self._cluster
        goes_to = "" if becomes is None else becomes.spec.node_name
        if self._pending is None and (key in cluster.pending or (becomes is not None and not goes_to)):
            self._pending = dict(cluster.pending)
        known = cluster.find_pod(key)
        if known is None:
            self._inverses.append(lambda: cluster.drop_pod(key))
        else:
            nominated, is_assumed = cluster.nominations.node_of(known), cluster.is_assumed(key)
            self._inverses.append(lambda: cluster.bring_back_pod(known, nominated, is_assumed=is_assumed))
            self._note_pods_on(known.spec.node_name)
        if goes_to:
            self._note_pods_on(goes_to)

    def _note_pods_on(self, node_name: str) -> None:
        row = self._cluster.table.rows.get(node_name)
        if row is not None and node_name not in self._pods_on:
            self._pods_on[node_name] = list(self._cluster.table.pods.on(row))

    def _note_order(self) -> None:
        if self._order is None:
            self._order = self._cluster.node_order()
