"""What plugins read: a part of the table (or all of it) as columns. Implements `framework.NodeTable`.

The whole table is a slice and costs no copy; a part gathers its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from kubesched.framework.nodes import MISSING, CodeArray, Column, IntArray, PodTable, RowArray
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model.core import ContainerPort, Node, Taint
from kubesched.k8s.model.selectors import Requirement
from kubesched.scheduler.cluster.columns import NumberColumn
from kubesched.scheduler.cluster.table import Table

ANY_ADDRESS = "0.0.0.0"


class NodeRow:
    """Implements `framework.NodeInfo`: one row."""

    __slots__ = ("_table", "row")

    def __init__(self, table: Table, row: int) -> None:
        self._table = table
        self.row = row

    @property
    def name(self) -> str:
        return self._table.names[self.row]

    @property
    def node(self) -> Node:
        return self._table.nodes[self.row]

    @property
    def labels(self) -> dict[str, str]:
        return self._table.nodes[self.row].labels

    @property
    def pods(self) -> Sequence[PodInfo]:
        return self._table.pods.on(self.row)

    def allocatable(self, resource: str) -> int:
        table = self._table
        return table.allocatable.get(resource, table.zeros).cells[self.row]

    def requested(self, resource: str) -> int:
        table = self._table
        return table.requested.get(resource, table.zeros).cells[self.row]

    @property
    def nonzero_cpu_milli(self) -> int:
        return self._table.nonzero_cpu_milli.cells[self.row]

    @property
    def nonzero_memory_bytes(self) -> int:
        return self._table.nonzero_memory_bytes.cells[self.row]

    @property
    def allowed_pods(self) -> int:
        return self._table.allowed_pods.cells[self.row]

    @property
    def pod_count(self) -> int:
        return self._table.pod_counts.cells[self.row]

    def image_size(self, image: str) -> int:
        known = self._table.images.get(image)
        return known.size_bytes if known is not None and self.row in known else 0

    def has_conflicting_ports(self, ports: Sequence[ContainerPort]) -> bool:
        return any(self.row in users for port in ports for users in _users_of(self._table, port))


class TableView:
    """Rows of a table. Valid until nodes are added or removed."""

    def __init__(self, table: Table, rows: RowArray | None = None) -> None:
        self._table = table
        self._rows: RowArray | slice = slice(0, table.n) if rows is None else rows

    def __len__(self) -> int:
        return self._table.n if isinstance(self._rows, slice) else len(self._rows)

    @property
    def rows(self) -> RowArray:
        rows = self._rows
        return self._table.row_numbers[rows] if isinstance(rows, slice) else rows

    @cached_property
    def names(self) -> Sequence[str]:
        if isinstance(self._rows, slice):
            return self._table.names
        names = self._table.names
        return [names[row] for row in self._rows]

    @property
    def layout(self) -> object:
        return self._table.layout

    @property
    def whole(self) -> TableView:
        return self if isinstance(self._rows, slice) else TableView(self._table)

    def take(self, positions: RowArray | BoolArray) -> TableView:
        return TableView(self._table, self.rows[positions])

    def gathered(self, rows: RowArray) -> GatheredView:
        """These rows of the table (not positions here), for several questions in a row."""
        return GatheredView(self._table, rows)

    def at(self, position: int) -> NodeRow:
        rows = self._rows
        return NodeRow(self._table, position if isinstance(rows, slice) else int(rows[position]))

    def each(self) -> list[NodeRow]:
        table = self._table
        return [NodeRow(table, row) for row in self.rows.tolist()]

    def row_of(self, name: str) -> int | None:
        return self._table.rows.get(name)

    @property
    def pods(self) -> PodTable:
        return self._table.pods

    # -- resources -----------------------------------------------------------------------------------------------------

    def allocatable(self, resource: str) -> IntArray:
        return self._numbers(self._table.allocatable.get(resource, self._table.zeros))

    def requested(self, resource: str) -> IntArray:
        return self._numbers(self._table.requested.get(resource, self._table.zeros))

    def is_plain(self, resource: str) -> bool:
        table = self._table
        if table.has_absurd_amounts:
            return False
        return table.n_lacking(resource) == 0 or bool(self.allocatable(resource).all())

    @property
    def nonzero_cpu_milli(self) -> IntArray:
        return self._numbers(self._table.nonzero_cpu_milli)

    @property
    def nonzero_memory_bytes(self) -> IntArray:
        return self._numbers(self._table.nonzero_memory_bytes)

    @property
    def allowed_pods(self) -> IntArray:
        return self._numbers(self._table.allowed_pods)

    @property
    def pod_counts(self) -> IntArray:
        return self._numbers(self._table.pod_counts)

    # -- what nodes are like -------------------------------------------------------------------------------------------

    @property
    def unschedulable(self) -> BoolArray:
        flags: BoolArray = self._table.unschedulable.data[self._rows]
        return flags

    def label(self, key: str) -> Column[str]:
        column = self._table.label_column(key)
        return Column(self._codes(column.codes), column.values)

    def matching(self, requirement: Requirement) -> BoolArray:
        column = self._table.label_column(requirement.key)
        codes = self._codes(column.codes)
        match requirement.operator:
            case "In" | "NotIn":
                asked = [code for value in requirement.values if (code := column.code_of(value)) != MISSING]
                found = _is_any_of(codes, asked)
                return found if requirement.operator == "In" else ~found
            case "Exists":
                return np.not_equal(codes, MISSING)
            case "DoesNotExist":
                return np.equal(codes, MISSING)
            case _:
                return Column(codes, column.values).where(requirement.matches)

    def named(self, name: str) -> BoolArray:
        row = self._table.rows.get(name)
        if row is None:
            return np.zeros(len(self), dtype=np.bool_)
        return np.equal(self.rows, row)

    @property
    def taints(self) -> Column[tuple[Taint, ...]]:
        column = self._table.taints
        return Column(self._codes(column.codes), column.values)

    @property
    def declared_features(self) -> Column[frozenset[str]]:
        column = self._table.declared_features
        return Column(self._codes(column.codes), column.values)

    def image_sizes(self, image: str) -> IntArray:
        known = self._table.images.get(image)
        sizes = np.zeros(self._table.n, dtype=np.int64)
        if known is not None:
            sizes[known.rows] = known.size_bytes
        return sizes[self._rows]

    def image_node_count(self, image: str) -> int:
        known = self._table.images.get(image)
        return 0 if known is None else len(known)

    def conflicting_ports(self, ports: Sequence[ContainerPort]) -> BoolArray:
        taken = np.zeros(self._table.n, dtype=np.bool_)
        for port in ports:
            for users in _users_of(self._table, port):
                taken[list(users)] = True
        return taken[self._rows]

    def claim_users(self, claim_key: str) -> IntArray:
        users = np.zeros(self._table.n, dtype=np.int64)
        for row, count in self._table.claims.get(claim_key, {}).items():
            users[row] = count
        return users[self._rows]

    def is_claim_used(self, claim_key: str) -> bool:
        return bool(self._table.claims.get(claim_key))

    def _numbers(self, column: NumberColumn) -> IntArray:
        rows = self._rows
        return column.data[rows] if isinstance(rows, slice) else column.data.take(rows)

    def _codes(self, column: NumberColumn) -> CodeArray:
        rows = self._rows
        return column.data[rows] if isinstance(rows, slice) else column.data.take(rows)


class GatheredView(TableView):
    """Some rows, as long as nothing changes on them: columns of numbers are picked out once."""

    def __init__(self, table: Table, rows: RowArray) -> None:
        super().__init__(table, rows)
        self._gathered: dict[int, IntArray] = {}
        self._plain: dict[str, bool] = {}

    def _numbers(self, column: NumberColumn) -> IntArray:
        found = self._gathered.get(id(column))
        if found is None:
            found = self._gathered[id(column)] = column.data.take(self.rows)
        return found

    def is_plain(self, resource: str) -> bool:
        found = self._plain.get(resource)
        if found is None:
            found = self._plain[resource] = super().is_plain(resource)
        return found


def do_ports_conflict(port: ContainerPort, used: ContainerPort) -> bool:
    """Whether two host ports of one node are the same port, on an address that both hold."""
    if port.host_port != used.host_port or (port.protocol or "TCP") != (used.protocol or "TCP"):
        return False
    return _same_address(port.host_ip or ANY_ADDRESS, used.host_ip or ANY_ADDRESS)


def _same_address(one: str, other: str) -> bool:
    return one == other or ANY_ADDRESS in (one, other)


def _users_of(table: Table, port: ContainerPort) -> Iterator[Mapping[int, int]]:
    """How many pods on which rows hold the port, on an address where it is the same port."""
    by_address = table.ports.get((port.protocol or "TCP", port.host_port))
    if by_address:
        address = port.host_ip or ANY_ADDRESS
        for used_address, users in by_address.items():
            if users and _same_address(address, used_address):
                yield users


def _is_any_of(codes: CodeArray, asked: list[int]) -> BoolArray:
    if len(asked) == 1:
        return np.equal(codes, asked[0])
    return np.isin(codes, asked)
