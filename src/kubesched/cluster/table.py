"""The node table: columns kept up to date row by row as facts about nodes and pods arrive.

Live rows are 0 … n-1; a node that leaves is replaced by the last row. What plugins read is `view.TableView`.
Images are known by name with the size that the first node reported, as kube-scheduler's cache has it.

Next: `pod_table` for the pods' side, `view` for the reading side.
"""

from __future__ import annotations

import numpy as np

from kubesched.cluster.columns import NumberColumn, ValueColumn
from kubesched.cluster.journal import Journal
from kubesched.cluster.label_classes import LabelClasses
from kubesched.cluster.pod_table import PodColumns
from kubesched.framework.nodes import RowArray
from kubesched.framework.pod_info import PodInfo
from kubesched.model.core import Node, Taint
from kubesched.model.requests import PODS, node_units

PortKey = tuple[str, int]
"""(protocol, port number)"""


class ImageOnNodes:
    """The rows that have an image, and its size."""

    __slots__ = ("_rows", "_rows_array", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self._rows: set[int] = set()
        self._rows_array: RowArray | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, row: int) -> bool:
        return row in self._rows

    @property
    def rows(self) -> RowArray:
        if self._rows_array is None:
            self._rows_array = np.fromiter(self._rows, dtype=np.intp, count=len(self._rows))
        return self._rows_array

    def add(self, row: int) -> None:
        self._rows.add(row)
        self._rows_array = None

    def discard(self, row: int) -> None:
        self._rows.discard(row)
        self._rows_array = None


class Table:
    """Nodes, and the pods on them, as rows and columns."""

    def __init__(self, label_classes: LabelClasses) -> None:
        self.n = 0
        self.names: list[str] = []
        self.nodes: list[Node] = []
        self.rows: dict[str, int] = {}
        self.pods = PodColumns(label_classes)
        self.journal = Journal()
        self.allocatable: dict[str, NumberColumn] = {}
        self.requested: dict[str, NumberColumn] = {}
        self.zeros = NumberColumn(np.int64)
        self.nonzero_cpu_milli = NumberColumn(np.int64)
        self.nonzero_memory_bytes = NumberColumn(np.int64)
        self.allowed_pods = NumberColumn(np.int64)
        self.pod_counts = NumberColumn(np.int64)
        self.unschedulable = NumberColumn(np.bool_)
        self.row_numbers: RowArray = np.arange(0)
        self.taints: ValueColumn[tuple[Taint, ...]] = ValueColumn()
        self.declared_features: ValueColumn[frozenset[str]] = ValueColumn()
        self.labels: dict[str, ValueColumn[str]] = {}
        self.images: dict[str, ImageOnNodes] = {}
        self.ports: dict[PortKey, dict[str, dict[int, int]]] = {}
        self.claims: dict[str, dict[int, int]] = {}

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def add_node(self, node: Node) -> int:
        row = self.n
        units = node_units(node.status.allocatable, "status.allocatable")
        self.n += 1
        for column in self._number_columns():
            column.reserve(self.n)
        if len(self.row_numbers) < self.n:
            self.row_numbers = np.arange(2 * self.n)
        self.names.append(node.name)
        self.nodes.append(node)
        self.rows[node.name] = row
        self.pods.add_row()
        self._set_node(row, node, units)
        self.journal.nodes_version += 1
        return row

    def update_node(self, node: Node) -> int:
        row = self.rows[node.name]
        if _looks_the_same(self.nodes[row], node):
            self.nodes[row] = node
            return row
        units = node_units(node.status.allocatable, "status.allocatable")
        self._forget_images(row, self.nodes[row])
        for column in self.allocatable.values():
            column.data[row] = 0
        self.nodes[row] = node
        self._set_node(row, node, units)
        self.journal.nodes_version += 1
        return row

    def remove_node(self, name: str) -> tuple[int, list[PodInfo]]:
        """Takes the node out; gives the row that was filled, and the pods that were on it."""
        row = self.rows[name]
        left = list(self.pods.on(row))
        for info in left:
            self.remove_pod(info)
        self._forget_images(row, self.nodes[row])
        self._move_last_row_to(row)
        self.journal.nodes_version += 1
        return row, left

    def label_column(self, key: str) -> ValueColumn[str]:
        """The column of a label, made when it is first asked for."""
        column = self.labels.get(key)
        if column is None:
            column = self.labels[key] = ValueColumn(len(self.zeros.data))
            for row, node in enumerate(self.nodes):
                column.set(row, node.labels.get(key))
        return column

    # -- pods ----------------------------------------------------------------------------------------------------------

    def add_pod(self, info: PodInfo, row: int) -> None:
        resources = info.shape.resources
        self.pods.add(info, row)
        self._count_pod(info, row, 1)
        for name, units in resources.requests.items():
            self._requested_column(name).data[row] += units
        self.journal.pod_changed(row, info, True)

    def remove_pod(self, info: PodInfo) -> int:
        known = self.pods.find(info.uid)
        assert known is not None
        row = self.pods.remove(known)
        self._count_pod(known, row, -1)
        for name, units in known.shape.resources.requests.items():
            self.requested[name].data[row] -= units
        self.journal.pod_changed(row, known, False)
        return row

    def _count_pod(self, info: PodInfo, row: int, sign: int) -> None:
        resources = info.shape.resources
        self.pod_counts.data[row] += sign
        self.nonzero_cpu_milli.data[row] += sign * resources.nonzero_cpu_milli
        self.nonzero_memory_bytes.data[row] += sign * resources.nonzero_memory_bytes
        for port in info.shape.host_ports:
            by_address = self.ports.setdefault((port.protocol or "TCP", port.host_port), {})
            _change(by_address.setdefault(port.host_ip or "0.0.0.0", {}), row, sign)
        for claim in info.shape.claim_names:
            _change(self.claims.setdefault(claim, {}), row, sign)

    def _requested_column(self, name: str) -> NumberColumn:
        column = self.requested.get(name)
        if column is None:
            column = self.requested[name] = NumberColumn(np.int64, capacity=len(self.zeros.data))
        return column

    # -- rows ----------------------------------------------------------------------------------------------------------

    def _set_node(self, row: int, node: Node, units: dict[str, int]) -> None:
        self.allowed_pods.data[row] = units.get(PODS, 0)
        for name, amount in units.items():
            if name != PODS:
                column = self.allocatable.get(name)
                if column is None:
                    column = self.allocatable[name] = NumberColumn(np.int64, capacity=len(self.zeros.data))
                column.data[row] = amount
        self.unschedulable.data[row] = node.spec.unschedulable
        self.taints.set(row, node.spec.taints or ())
        self.declared_features.set(row, frozenset(node.status.declared_features or ()))
        for key, labels in self.labels.items():
            labels.set(row, node.labels.get(key))
        for image in node.status.images or ():
            for name in image.names or ():
                known = self.images.get(name)
                if known is None:
                    known = self.images[name] = ImageOnNodes(image.size_bytes)
                known.add(row)

    def _forget_images(self, row: int, node: Node) -> None:
        for image in node.status.images or ():
            for name in image.names or ():
                known = self.images.get(name)
                if known is not None:
                    known.discard(row)
                    if not len(known):
                        del self.images[name]

    def _move_last_row_to(self, row: int) -> None:
        last = self.n - 1
        del self.rows[self.names[row]]
        name, node = self.names.pop(), self.nodes.pop()
        if row != last:
            self.names[row], self.nodes[row], self.rows[name] = name, node, row
            for image in node.status.images or ():
                for image_name in image.names or ():
                    self.images[image_name].discard(last)
                    self.images[image_name].add(row)
            for info in self.pods.on(last):
                self._rekey(info, last, row)
        self.pods.move_row(last, row)
        for column in self._number_columns():
            column.move(last, row)
        self.n = last

    def _rekey(self, info: PodInfo, source: int, target: int) -> None:
        """Moves what is counted by row number in dictionaries."""
        for port in info.shape.host_ports:
            users = self.ports[(port.protocol or "TCP", port.host_port)][port.host_ip or "0.0.0.0"]
            _change(users, source, -1)
            _change(users, target, +1)
        for claim in info.shape.claim_names:
            _change(self.claims[claim], source, -1)
            _change(self.claims[claim], target, +1)

    def _number_columns(self) -> list[NumberColumn]:
        return [
            self.zeros,
            self.nonzero_cpu_milli,
            self.nonzero_memory_bytes,
            self.allowed_pods,
            self.pod_counts,
            self.unschedulable,
            self.taints.codes,
            self.declared_features.codes,
            *self.allocatable.values(),
            *self.requested.values(),
            *(column.codes for column in self.labels.values()),
        ]


def _looks_the_same(old: Node, new: Node) -> bool:
    """Whether a changed node, a heartbeat say, is the same to everybody who decides."""
    return (
        old.metadata.labels == new.metadata.labels
        and old.metadata.annotations == new.metadata.annotations
        and old.spec == new.spec
        and old.status.allocatable == new.status.allocatable
        and old.status.images == new.status.images
        and old.status.declared_features == new.status.declared_features
        and old.status.conditions == new.status.conditions
    )


def _change(counts: dict[int, int], row: int, by: int) -> None:
    count = counts.get(row, 0) + by
    if count:
        counts[row] = count
    else:
        del counts[row]
