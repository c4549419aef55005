"""The node table: columns kept up to date row by row as facts about nodes and pods arrive.

Live rows are 0 … n-1; the last row takes the place of a node that is removed. What plugins read is `view.TableView`.
Images are known by name with the size that the first node reported, as kube-scheduler's cache has it.

Next: `pod_table` for the pods' side, `view` for the reading side.
"""

from __future__ import annotations

import numpy as np

from kubesched.framework.nodes import IntArray, RowArray
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Node, Taint
from kubesched.k8s.model.requests import PODS, node_units
from kubesched.scheduler.cluster.columns import AmountCodes, NumberColumn, ValueColumn
from kubesched.scheduler.cluster.journal import Journal, NodeChangeKind
from kubesched.scheduler.cluster.pod_table import PodColumns
from kubesched.scheduler.cluster.signatures import LabelClasses

_ABSURD = 2**55
"""From here on a hundred times an amount may not fit in 64 bits."""


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
        self.layout: object = object()
        """Another one when rows get other nodes."""
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
        self.has_absurd_amounts = False
        """Whether there ever was an amount that arithmetic on 64 bits could run over with, or a negative one."""
        self._amount_cells: list[memoryview[int]] | None = None
        self.amount_codes = AmountCodes(self._amounts)
        """Stand for all that a node has of resources and that is taken of them, and how many pods there are and may
        be."""
        self._n_lacking: dict[str, int] = {}

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def add_node(self, node: Node) -> int:
        row = self.n
        units = node_units(node.status.allocatable, "status.allocatable")
        self.n += 1
        if self.n > len(self.zeros.data):
            for column in (self.amount_codes.codes, *self._number_columns()):
                column.reserve(self.n)
            self._amount_cells = None
        if len(self.row_numbers) < self.n:
            self.row_numbers = np.arange(2 * self.n)
        self.names.append(node.name)
        self.nodes.append(node)
        self.rows[node.name] = row
        self.layout = object()
        self.pods.add_row()
        self._set_node(row, node, units)
        self.journal.node_changed(NodeChangeKind.ADDED, row, self.n)
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
        self.journal.node_changed(NodeChangeKind.UPDATED, row, self.n)
        return row

    def remove_node(self, name: str) -> tuple[int, list[PodInfo]]:
        """Takes the node out; gives the row that was filled, and the pods that were on it."""
        row = self.rows[name]
        left = list(self.pods.on(row))
        for info in left:
            self.remove_pod(info)
        self._forget_images(row, self.nodes[row])
        self._move_last_row_to(row)
        self.journal.node_changed(NodeChangeKind.REMOVED, row, self.n)
        return row, left

    def label_column(self, key: str) -> ValueColumn[str]:
        """The column of a label, made when it is first asked for."""
        column = self.labels.get(key)
        if column is None:
            column = self.labels[key] = ValueColumn(len(self.zeros.data))
            for row, node in enumerate(self.nodes):
                column.set(row, node.labels.get(key))
        return column

    @property
    def capacity(self) -> int:
        """How many rows there is room for, before columns have to be made longer."""
        return len(self.zeros.data)

    def _amounts(self, row: int) -> tuple[int, ...]:
        cells = self._amount_cells
        if cells is None:
            columns = (self.nonzero_cpu_milli, self.nonzero_memory_bytes, self.allowed_pods, self.pod_counts)
            all_columns = (*columns, *self.allocatable.values(), *self.requested.values())
            cells = self._amount_cells = [column.cells for column in all_columns]
        return tuple([column[row] for column in cells])

    def n_lacking(self, resource: str) -> int:
        """How many nodes have none of the resource."""
        found = self._n_lacking.get(resource)
        if found is None:
            column = self.allocatable.get(resource, self.zeros)
            found = self._n_lacking[resource] = self.n - int(np.count_nonzero(column.data[: self.n]))
        return found

    # -- pods ----------------------------------------------------------------------------------------------------------

    def add_pod(self, info: PodInfo, row: int) -> None:
        self.pods.add(info, row)
        self._count_pod(info, row, 1)
        if not self.journal.is_paused:
            self.journal.pods.append((row, info, True))

    def remove_pod(self, info: PodInfo) -> int:
        known = self.pods.find(info.uid)
        assert known is not None
        row = self.pods.remove(known)
        self._count_pod(known, row, -1)
        if not self.journal.is_paused:
            self.journal.pods.append((row, known, False))
        return row

    def count_alike(self, info: PodInfo, before: IntArray, now: IntArray) -> None:
        """Of pods like this one, so many count on each row, where so many did; none of them is there. That is for a
        question about all nodes at once: it has to be taken back before anything else changes, and classes of pods do
        not see it."""
        more = now - before
        self.pod_counts.data[: self.n] += more
        resources = info.signature.resources
        self.nonzero_cpu_milli.data[: self.n] += more * resources.nonzero_cpu_milli
        self.nonzero_memory_bytes.data[: self.n] += more * resources.nonzero_memory_bytes
        for name, units in resources.requests.items():
            column = self.requested.get(name) or self._new_requested(name)
            column.data[: self.n] += more * units
        self.pods.count_alike(info, np.repeat(self.row_numbers[: self.n], now))

    def _count_pod(self, info: PodInfo, row: int, sign: int) -> None:
        resources = info.signature.resources
        self.amount_codes.pod_counted(row, resources, sign)
        self.pod_counts.cells[row] += sign
        cpu_cells, memory_cells = self.nonzero_cpu_milli.cells, self.nonzero_memory_bytes.cells
        cpu = cpu_cells[row] + sign * resources.nonzero_cpu_milli
        memory = memory_cells[row] + sign * resources.nonzero_memory_bytes
        if 0 <= cpu < _ABSURD and 0 <= memory < _ABSURD:
            cpu_cells[row], memory_cells[row] = cpu, memory
        else:
            self._add(cpu_cells, row, sign * resources.nonzero_cpu_milli)
            self._add(memory_cells, row, sign * resources.nonzero_memory_bytes)
        for name, units in resources.requests.items():
            cells = (self.requested.get(name) or self._new_requested(name)).cells
            total = cells[row] + sign * units
            if 0 <= total < _ABSURD:
                cells[row] = total
            else:
                self._add(cells, row, sign * units)
        for port in info.signature.host_ports:
            by_address = self.ports.setdefault((port.protocol or "TCP", port.host_port), {})
            _change(by_address.setdefault(port.host_ip or "0.0.0.0", {}), row, sign)
        for claim in info.signature.claim_names:
            _change(self.claims.setdefault(claim, {}), row, sign)

    def _add(self, cells: memoryview[int], row: int, units: int) -> None:
        """Absurd amounts wrap around, as they do on kube-scheduler's 64 bits; taken away again, they leave no trace."""
        total = cells[row] + units
        if not 0 <= total < _ABSURD:
            self.has_absurd_amounts = True
            total = (total + 2**63) % 2**64 - 2**63
        cells[row] = total

    def _new_requested(self, name: str) -> NumberColumn:
        column = self.requested[name] = NumberColumn(np.int64, capacity=len(self.zeros.data))
        self._amount_cells = None
        return column

    # -- rows ----------------------------------------------------------------------------------------------------------

    def _set_node(self, row: int, node: Node, units: dict[str, int]) -> None:
        self._n_lacking.clear()
        self.amount_codes.forget(row)
        self.allowed_pods.data[row] = units.get(PODS, 0)
        for name, amount in units.items():
            if name != PODS:
                column = self.allocatable.get(name)
                if column is None:
                    column = self.allocatable[name] = NumberColumn(np.int64, capacity=len(self.zeros.data))
                    self._amount_cells = None
                column.data[row] = amount
                if not 0 <= amount < _ABSURD:
                    self.has_absurd_amounts = True
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
        self.layout = object()
        self._n_lacking.clear()
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
        self.amount_codes.move(last, row)
        self.n = last

    def _rekey(self, info: PodInfo, source: int, target: int) -> None:
        """Moves what is counted by row number in dictionaries."""
        for port in info.signature.host_ports:
            users = self.ports[(port.protocol or "TCP", port.host_port)][port.host_ip or "0.0.0.0"]
            _change(users, source, -1)
            _change(users, target, +1)
        for claim in info.signature.claim_names:
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
