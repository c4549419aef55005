"""The table's numbers and indexes, worked out again from the nodes and pods it holds.

Nothing is taken over from what was counted before: requests are read from the pods' specs anew. Yields what differs, as
(subject, what the table says against what it should say).

Next: `self_check`, which asks for this.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from kubesched.framework.nodes import MISSING
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.requests import PODS, PodResources, node_units, pod_resources
from kubesched.k8s.model.selectors import EVERYTHING
from kubesched.scheduler.cluster.cluster import Cluster
from kubesched.scheduler.cluster.columns import NumberColumn, ValueColumn
from kubesched.scheduler.cluster.table import Table

Difference = tuple[str, str]
"""(subject, detail)"""


def recount_rows(cluster: Cluster) -> Iterator[Difference]:
    table = cluster.table
    if not table.n == len(table.names) == len(table.nodes) == len(table.rows):
        yield "table", f"{table.n} rows, {len(table.names)} names, {len(table.nodes)} nodes, {len(table.rows)} by name"
        return
    for row, name in enumerate(table.names):
        subject = f"node {name}"
        pods = table.pods.on(row)
        resources = [pod_resources(info.pod) for info in pods]
        if table.rows[name] != row:
            yield subject, f"on row {row}, known as row {table.rows[name]}"
        yield from ((subject, detail) for detail in _amounts(table, row, table.nodes[row], resources))
        yield from ((subject, detail) for detail in _marks(table, row, table.nodes[row]))
    yield from _indexes(table)
    yield from _pod_columns(cluster)
    if sorted(cluster.rows_in_order.tolist()) != list(range(table.n)):
        yield "table", f"search order {cluster.rows_in_order.tolist()} of {table.n} rows"


def _amounts(table: Table, row: int, node: Node, pods: list[PodResources]) -> Iterator[str]:
    """What the node has, and what its pods take."""
    has = node_units(node.status.allocatable, "status.allocatable")
    takes: Counter[str] = Counter()
    for resources in pods:
        takes.update(resources.requests)
    yield from _differ("allocatable", _amounts_of(table.allocatable, row), {n: v for n, v in has.items() if n != PODS})
    yield from _differ("requested", _amounts_of(table.requested, row), takes)
    expected = (
        (table.allowed_pods, has.get(PODS, 0)),
        (table.pod_counts, len(pods)),
        (table.nonzero_cpu_milli, sum(resources.nonzero_cpu_milli for resources in pods)),
        (table.nonzero_memory_bytes, sum(resources.nonzero_memory_bytes for resources in pods)),
        (table.zeros, 0),
    )
    counted = tuple(column.cells[row] for column, _ in expected)
    if counted != tuple(value for _, value in expected):
        yield f"pods allowed, pods, cpu and memory for scoring: {counted}, should be {tuple(v for _, v in expected)}"


def _amounts_of(columns: Mapping[str, NumberColumn], row: int) -> dict[str, int]:
    return {name: column.cells[row] for name, column in columns.items()}


def _marks(table: Table, row: int, node: Node) -> Iterator[str]:
    """What the node is like."""
    if bool(table.unschedulable.data[row]) != node.spec.unschedulable:
        yield f"unschedulable is not {node.spec.unschedulable}"
    if _value(table.taints, row) != (node.spec.taints or ()):
        yield f"taints {_value(table.taints, row)}"
    if _value(table.declared_features, row) != frozenset(node.status.declared_features or ()):
        yield f"declared features {_value(table.declared_features, row)}"
    for key, column in table.labels.items():
        if _value(column, row) != node.labels.get(key):
            yield f"label {key} is {_value(column, row)!r}, should be {node.labels.get(key)!r}"
    images = {name for image in node.status.images or () for name in image.names or ()}
    kept = {name for name, on_nodes in table.images.items() if row in on_nodes}
    if images != kept:
        yield f"images {sorted(kept)}, should be {sorted(images)}"


def _value(column: ValueColumn[Any], row: int) -> Any:
    code = column.codes.cells[row]
    return None if code == MISSING else column.values[code]


def _indexes(table: Table) -> Iterator[Difference]:
    """Host ports and claims, by the rows that use them."""
    ports: Counter[tuple[object, ...]] = Counter()
    claims: Counter[tuple[object, ...]] = Counter()
    for row in range(table.n):
        for info in table.pods.on(row):
            for port in info.host_ports:
                ports[(port.protocol or "TCP", port.host_port), port.host_ip or "0.0.0.0", row] += 1
            for claim in info.signature.claim_names:
                claims[claim, row] += 1
    kept_ports = {
        (key, address, row): count
        for key, by_address in table.ports.items()
        for address, users in by_address.items()
        for row, count in users.items()
    }
    kept_claims = {(claim, row): count for claim, users in table.claims.items() for row, count in users.items()}
    yield from (("table", detail) for detail in _differ("host ports", kept_ports, ports))
    yield from (("table", detail) for detail in _differ("claims", kept_claims, claims))


def _pod_columns(cluster: Cluster) -> Iterator[Difference]:
    """Pods by label class, and those with affinity terms by their terms."""
    table = cluster.table
    classes: Counter[tuple[object, ...]] = Counter()
    staying: Counter[int] = Counter()
    groups: Counter[tuple[object, ...]] = Counter()
    for row in range(table.n):
        for info in table.pods.on(row):
            signature = cluster.signatures.info(info.pod).signature
            classes[signature.label_class, row] += 1
            staying[row] += not info.pod.is_terminating
            if signature.affinity_class >= 0:
                groups[info.namespace, signature.affinity, row] += 1
    every_class = table.pods.classes(EVERYTHING, None)
    kept_classes: dict[tuple[object, ...], int] = {}
    for number in range(len(every_class)):
        counts = table.pods.counts(np.arange(len(every_class)) == number).tolist()
        kept_classes.update(((number, row), count) for row, count in enumerate(counts) if count)
    kept_staying = dict(enumerate(table.pods.counts(every_class, terminating=False).tolist()))
    kept_groups: Counter[tuple[object, ...]] = Counter(
        (group.namespace, group.terms, row) for group in table.pods.affinity_groups() for row in group.rows.tolist()
    )
    yield from (("table", detail) for detail in _differ("pods by label class", kept_classes, classes))
    yield from (("table", detail) for detail in _differ("pods that stay", kept_staying, staying))
    yield from (("table", detail) for detail in _differ("pods with affinity", kept_groups, groups))


def _differ(what: str, kept: Mapping[Any, int], expected: Mapping[Any, int]) -> Iterator[str]:
    """Zero and absent are the same."""
    for key in {**kept, **expected}:
        if kept.get(key, 0) != expected.get(key, 0):
            yield f"{what} of {key}: {kept.get(key, 0)}, should be {expected.get(key, 0)}"
