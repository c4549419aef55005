"""The cluster as a table: nodes are rows, what plugins ask about is in columns.

A filter or score is a few array operations over all rows. `NodeTable` may be the whole table or a part of it (the rows
still alive, the feasible ones, a single one); columns always have one entry per row *of that part*, in its order.
Two questions look at the whole cluster whatever the part: `nodes.whole`, and `nodes.pods`, whose per-row answers are
indexed by the row numbers that `nodes.rows` lists.

`kubesched.scheduler.cluster.table` keeps it. Arrays handed out are not to be written to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from kubesched.framework.pod_info import PodAffinityTerms, PodInfo
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model.core import ContainerPort, Node, Taint
from kubesched.k8s.model.selectors import NODE_NAME_FIELD, CompiledNodeSelector, NodeTerm, Requirement, Selector

IntArray = NDArray[np.int64]
CodeArray = NDArray[np.signedinteger[Any]]
RowArray = NDArray[np.intp]

Value = TypeVar("Value")


class RowSets:
    """Sets of rows, none of which is empty, to add up numbers by row in all of them at once."""

    __slots__ = ("_known", "_starts", "numbers", "rows")

    def __init__(self, parts: Sequence[RowArray]) -> None:
        sizes = [len(part) for part in parts]
        ends = np.cumsum(sizes)
        self._starts = np.zeros_like(ends)
        self._starts[1:] = ends[:-1]
        self.rows: RowArray = np.concatenate(parts)
        """The rows of all of them, one after another."""
        self.numbers: RowArray = np.repeat(np.arange(len(sizes)), sizes)
        """The set that each of these belongs to."""
        self._known: dict[str, tuple[IntArray, IntArray]] = {}

    def __len__(self) -> int:
        return len(self._starts)

    def sums(self, values: IntArray, times: int = 0) -> IntArray:
        """(n_parts,) of a number for each row, the sum over each part; as numbers of any size where so many times a sum
        could run over 64 bits."""
        if times and len(values) * int(values.view(np.uint64).max()) >= _LARGE // times:
            values = values.astype(object)  # negative ones are larger than all others, as the maximum sees them
        found: IntArray = np.add.reduceat(values.take(self.rows), self._starts)
        return found

    def kept_sums(self, name: str, values: IntArray, times: int = 0) -> IntArray:
        """The same of numbers that seldom change: added up again only if they are not those that were last given under
        this name."""
        known = self._known.get(name)
        if known is None or len(known[0]) != len(values) or (known[0] != values).any():
            known = self._known[name] = values.copy(), self.sums(values, times)
        return known[1]


_LARGE = 2**62

MISSING = -1
"""The code of a node that has no value in a column; as an index, the place behind all others."""


class Column(Generic[Value]):
    """A column of few distinct values: a code per node, and the value each code stands for.

    A question is asked once per distinct value and looked up per node, however many nodes there are. Codes are those
    of the whole table: `values` may hold values that no node of this part has.
    """

    __slots__ = ("codes", "values")

    def __init__(self, codes: CodeArray, values: Sequence[Value]) -> None:
        self.codes = codes
        self.values = values

    def where(self, question: Callable[[Value | None], bool]) -> BoolArray:
        """(n_nodes,) the answer for each node's value; None is asked for nodes that have none."""
        answers: BoolArray = self._answers(question, np.bool_)
        return answers

    def measure(self, question: Callable[[Value | None], int]) -> IntArray:
        """(n_nodes,) a number for each node's value."""
        answers: IntArray = self._answers(question, np.int64)
        return answers

    def _answers(self, question: Callable[[Value | None], Any], dtype: type[np.generic]) -> Any:
        values = self.values
        n_values = len(values)
        answers = np.zeros(n_values + 1, dtype=dtype)
        if len(self.codes) < n_values:
            for code in set(self.codes.tolist()):
                answers[code] = question(None if code == MISSING else values[code])
        else:
            for code, value in enumerate(values):
                answers[code] = question(value)
            answers[MISSING] = question(None)
        return answers.take(self.codes)


class NodeInfo(Protocol):
    """One node, for plugins that answer node by node: what the table has in columns, as plain numbers."""

    @property
    def row(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def node(self) -> Node: ...
    @property
    def labels(self) -> dict[str, str]: ...
    @property
    def pods(self) -> Sequence[PodInfo]: ...
    def allocatable(self, resource: str) -> int: ...
    def requested(self, resource: str) -> int: ...
    @property
    def nonzero_cpu_milli(self) -> int: ...
    @property
    def nonzero_memory_bytes(self) -> int: ...
    @property
    def allowed_pods(self) -> int: ...
    @property
    def pod_count(self) -> int: ...

    def image_size(self, image: str) -> int:
        """Bytes of this image, 0 if it is absent; by the size that the whole table has for it."""
        ...

    def has_conflicting_ports(self, ports: Sequence[ContainerPort]) -> bool:
        """Whether one of these host ports is taken."""
        ...


class AffinityGroup(Protocol):
    """Pods on nodes that have the same pod affinity terms."""

    @property
    def terms(self) -> PodAffinityTerms: ...
    @property
    def namespace(self) -> str: ...
    @property
    def rows(self) -> RowArray:
        """(n_pods,) the row of each such pod; a row stands once for every pod on it."""
        ...


class PodTable(Protocol):
    """All pods on nodes, countable by label class. Per-row answers span the whole table."""

    def on(self, row: int) -> Sequence[PodInfo]: ...

    def classes(self, selector: Selector, namespaces: frozenset[str] | None) -> BoolArray:
        """(n_label_classes,) which label classes the selector picks in these namespaces (None: in all)."""
        ...

    def counts(self, classes: BoolArray, *, terminating: bool = True) -> IntArray:
        """(n_rows,) how many pods of these label classes each row of the whole table holds; without those that are
        being deleted if `terminating` is False."""
        ...

    def affinity_groups(self, *, required_anti_only: bool = False) -> Sequence[AffinityGroup]:
        """Pods with pod affinity terms, or with required anti-affinity only, grouped by their terms."""
        ...


class NodeTable(Protocol):
    """Rows of the cluster's table, and their columns."""

    def __len__(self) -> int: ...

    @property
    def rows(self) -> RowArray:
        """(n_nodes,) the row number of each node of this part in the whole table."""
        ...

    @property
    def names(self) -> Sequence[str]: ...

    @property
    def layout(self) -> object:
        """The same object as long as the rows of the whole table are those of the same nodes."""
        ...

    @property
    def whole(self) -> NodeTable:
        """The table of all nodes; there `rows` counts 0, 1, 2, …"""
        ...

    def take(self, positions: RowArray | BoolArray) -> NodeTable:
        """A part of this part."""
        ...

    def at(self, position: int) -> NodeInfo: ...

    def each(self) -> Sequence[NodeInfo]:
        """Every node of this part, one by one."""
        ...

    def row_of(self, name: str) -> int | None:
        """The row of a node by its name, in the whole table."""
        ...

    @property
    def pods(self) -> PodTable: ...

    # -- resources: milli-cpus, bytes, whole units ---------------------------------------------------------------------

    def allocatable(self, resource: str) -> IntArray: ...
    def requested(self, resource: str) -> IntArray: ...

    def is_plain(self, resource: str) -> bool:
        """Whether all these nodes are known to have some of the resource, and no amount in the cluster is so large, or
        negative, that arithmetic on it could run over."""
        ...

    @property
    def nonzero_cpu_milli(self) -> IntArray:
        """Requests with a default for containers that name none, for scoring."""
        ...

    @property
    def nonzero_memory_bytes(self) -> IntArray: ...
    @property
    def allowed_pods(self) -> IntArray: ...
    @property
    def pod_counts(self) -> IntArray: ...

    # -- what nodes are like -------------------------------------------------------------------------------------------

    @property
    def unschedulable(self) -> BoolArray: ...

    def label(self, key: str) -> Column[str]: ...

    def matching(self, requirement: Requirement) -> BoolArray:
        """Nodes whose label meets the requirement: as `label(key).where(requirement.matches)`, but without asking
        about every value where the operator allows."""
        ...

    def named(self, name: str) -> BoolArray: ...

    @property
    def taints(self) -> Column[tuple[Taint, ...]]: ...
    @property
    def declared_features(self) -> Column[frozenset[str]]: ...

    def image_sizes(self, image: str) -> IntArray:
        """(n_nodes,) bytes of this image on each node, 0 where it is absent."""
        ...

    def image_node_count(self, image: str) -> int:
        """How many nodes of the whole table have this image."""
        ...

    def conflicting_ports(self, ports: Sequence[ContainerPort]) -> BoolArray:
        """Nodes on which one of these host ports is taken."""
        ...

    def claim_users(self, claim_key: str) -> IntArray:
        """(n_nodes,) how many pods on each node name this persistent volume claim (`namespace/name`)."""
        ...

    def is_claim_used(self, claim_key: str) -> bool:
        """Whether a pod on any node of the whole table names this persistent volume claim."""
        ...


def matching_nodes(selector: CompiledNodeSelector, nodes: NodeTable) -> BoolArray:
    """(n_nodes,) the nodes that one term of the selector picks."""
    picked = np.zeros(len(nodes), dtype=np.bool_)
    for term in selector.terms:
        picked |= _matching_term(term, nodes)
    return picked


def _matching_term(term: NodeTerm, nodes: NodeTable) -> BoolArray:
    if term.error is not None:
        return np.zeros(len(nodes), dtype=np.bool_)
    picked = np.ones(len(nodes), dtype=np.bool_)
    for requirement in term.labels:
        picked &= nodes.matching(requirement)
    for requirement in term.fields:
        picked &= _matching_field(requirement, nodes)
    return picked


def _matching_field(requirement: Requirement, nodes: NodeTable) -> BoolArray:
    """Nodes have one field that can be asked for, their name; any other is empty on all of them."""
    if requirement.key != NODE_NAME_FIELD:
        return np.full(len(nodes), requirement.matches(""), dtype=np.bool_)
    named = nodes.named(requirement.values[0])
    return named if requirement.operator == "In" else ~named
