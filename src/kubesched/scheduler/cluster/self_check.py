"""Compares the cluster with what the informers hold, and its table with a recount. Finds, and fixes nothing.

kube-scheduler does the first part when it is sent SIGUSR2 (its cache comparer: missed and redundant nodes and pods).
Here an update that was missed is found too. The recount works out every number and index of the table again from the
nodes and pods it holds, taking nothing over: requests are read from the pods' specs anew. What comes out are findings
as data; an empty list says that all is well.

Next: `table`, whose columns are recounted, and `cluster`, where facts arrive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from kubesched.framework.nodes import MISSING
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.partial_reading import UnreadPod
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
    yield from _groups(cluster)
    if sorted(cluster.rows_in_order.tolist()) != list(range(table.n)):
        yield "table", f"search order {cluster.rows_in_order.tolist()} of {table.n} rows"


def _groups(cluster: Cluster) -> Iterator[Difference]:
    """Who belongs to which pod group, against a recount."""
    kept = cluster.groups
    if kept is None:
        return
    anew = kept.recounted(cluster.pending.values(), cluster.placed.values())
    for key in sorted({*kept.names(), *anew.names()}):
        for what in ("unscheduled", "scheduled"):
            mine, other = (getattr(states.get(key), what, {}).keys() for states in (kept, anew))
            if mine != other:
                yield f"pod group {key}", f"{what}: {sorted(mine)}, recounted {sorted(other)}"


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


MISSED = "missed"
"""The informers hold it, the cluster does not."""
REDUNDANT = "redundant"
"""The cluster holds it, the informers do not."""
STALE = "stale"
"""Both hold it, and the cluster's is not the same object: an update was missed."""
MISPLACED = "misplaced"
"""A pod is not where it belongs."""
MISCOUNTED = "miscounted"
"""A number or an index of the table is not what its nodes and pods add up to."""


@dataclass(frozen=True, slots=True)
class CacheFinding:
    """One thing that is not as it should be. `problem` is one of the words above, `subject` reads `node a`."""

    problem: str
    subject: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.problem} {self.subject}{': ' if self.detail else ''}{self.detail}"


def self_check(cluster: Cluster, objects: Iterable[KubeObject]) -> list[CacheFinding]:
    """`objects` is all that the informers hold now."""
    nodes: dict[str, Node] = {}
    pods: dict[PodKey, Pod] = {}
    others: list[KubeObject] = []
    for item in objects:
        if isinstance(item, Node):
            nodes[item.name] = item
        elif not isinstance(item, Pod):
            others.append(item)
        elif not item.is_terminal and not isinstance(item, UnreadPod):  # which hold nothing and are not kept
            pods[item.pod_key] = item
    return [
        *_check_nodes(cluster, nodes),
        *_check_placed_pods(cluster, pods),
        *_check_pending_pods(cluster, pods),
        *_check_others(cluster, others),
        *_check_places(cluster),
        *(CacheFinding(MISCOUNTED, subject, detail) for subject, detail in recount_rows(cluster)),
    ]


def _check_nodes(cluster: Cluster, nodes: dict[str, Node]) -> Iterator[CacheFinding]:
    rows = cluster.table.rows
    for name, node in nodes.items():
        row = rows.get(name)
        if row is None:
            yield CacheFinding(MISSED, f"node {name}")
        elif not _is_same(cluster.table.nodes[row], node):
            yield CacheFinding(STALE, f"node {name}", _versions(cluster.table.nodes[row], node))
    for name in rows.keys() - nodes.keys():
        yield CacheFinding(REDUNDANT, f"node {name}")


def _check_placed_pods(cluster: Cluster, pods: dict[PodKey, Pod]) -> Iterator[CacheFinding]:
    placed, assumed = cluster.placed, cluster.assumed_keys
    for key, pod in pods.items():
        if not pod.spec.node_name:
            continue
        known = placed.get(key)
        if known is None or not known.is_same_as(pod):
            yield CacheFinding(MISSED, f"pod {key}", f"on node {pod.spec.node_name}")
        elif known.spec.node_name != pod.spec.node_name:
            detail = f"counted on node {known.spec.node_name}, assigned to {pod.spec.node_name}"
            yield CacheFinding(MISPLACED, f"pod {key}", detail)
        elif key in assumed:
            yield CacheFinding(STALE, f"pod {key}", "still assumed, though its binding is confirmed")
        elif not _is_same(known.pod, pod):
            yield CacheFinding(STALE, f"pod {key}", _versions(known.pod, pod))
    for key, info in placed.items():
        told = pods.get(key)
        if told is None or not info.is_same_as(told) or (not told.spec.node_name and key not in assumed):
            yield CacheFinding(REDUNDANT, f"pod {key}", f"on node {info.spec.node_name}")


def _check_pending_pods(cluster: Cluster, pods: dict[PodKey, Pod]) -> Iterator[CacheFinding]:
    waiting = {key: pod for key, pod in pods.items() if not pod.spec.node_name}
    for key, pod in waiting.items():
        known = cluster.pending.get(key)
        if known is None:
            yield CacheFinding(MISSED, f"pod {key}", "pending")
        elif not _is_same(known.pod, pod):
            yield CacheFinding(STALE, f"pod {key}", f"pending, {_versions(known.pod, pod)}")
    for key in cluster.pending.keys() - waiting.keys():
        yield CacheFinding(REDUNDANT, f"pod {key}", "pending")
    for node_name in cluster.nominations.node_names():
        for info in cluster.nominations.on(node_name):
            told = waiting.get(info.key)
            if told is None or not info.is_same_as(told):
                yield CacheFinding(REDUNDANT, f"pod {info.key}", f"nominated to node {node_name}")


def _check_others(cluster: Cluster, others: list[KubeObject]) -> Iterator[CacheFinding]:
    told = {(type(item), item.key) for item in others}
    for item in others:
        known = cluster.objects.find(item)
        subject = f"{type(item).__name__} {item.key}"
        if known is None:
            yield CacheFinding(MISSED, subject)
        elif not _is_same(known, item):
            yield CacheFinding(STALE, subject, _versions(known, item))
    for item in cluster.objects:
        if (type(item), item.key) not in told:
            yield CacheFinding(REDUNDANT, f"{type(item).__name__} {item.key}")


def _check_places(cluster: Cluster) -> Iterator[CacheFinding]:
    """Every pod with a node stands on its node's row once, or waits once for the node to come."""
    table = cluster.table
    found: dict[str, list[str]] = {}
    for row, name in enumerate(table.names):
        for info in table.pods.on(row):
            found.setdefault(info.uid, []).append(name)
    for node_name, waiting in cluster.orphans.items():
        for info in waiting.values():
            found.setdefault(info.uid, []).append(f"{node_name} (not there)")
    for key, info in cluster.placed.items():
        node_name = info.spec.node_name
        belongs = node_name if node_name in table.rows else f"{node_name} (not there)"
        places = found.pop(info.uid, [])
        if places != [belongs]:
            yield CacheFinding(MISPLACED, f"pod {key}", f"found on {places}, belongs to {belongs}")
    for uid, places in found.items():
        yield CacheFinding(MISPLACED, f"pod with uid {uid}", f"found on {places}, belongs nowhere")
    for key in cluster.assumed_keys - cluster.placed.keys():
        yield CacheFinding(MISPLACED, f"pod {key}", "assumed, but on no node")


def _is_same(known: KubeObject, told: KubeObject) -> bool:
    return known is told or known == told


def _versions(known: KubeObject, told: KubeObject) -> str:
    return f"known in version {known.metadata.resource_version!r}, told {told.metadata.resource_version!r}"
