"""Clusters full of labelled pods, for plugins that look at other pods; and a plugin's whole answer in one call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import msgspec

from kubesched.framework import CycleState, NodeTable, PodInfo, PostFilterResult, PreFilterResult, Status, Verdicts
from kubesched.framework.handle import Objects, PreemptionLimits
from kubesched.framework.results import NodeStatuses, Scores
from kubesched.framework.verdicts import ACCEPT_ALL
from kubesched.k8s.model.core import Namespace, Node, Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.scheduler.cluster.cluster import Cluster
from kubesched.scheduler.cluster.view import TableView
from kubesched.testing.world import QuietHandle

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

Labels = dict[str, str]
Json = dict[str, Any]


def node(name: str, zone: str | None = None, *, labels: Labels | None = None, **spec: Any) -> Node:
    """With a hostname label; with a zone label if a zone is given."""
    all_labels = {HOST: name, **({} if zone is None else {ZONE: zone}), **(labels or {})}
    return msgspec.convert({"metadata": {"name": name, "labels": all_labels}, "spec": spec}, Node)


def bare_node(name: str, **labels: str) -> Node:
    """With these labels only."""
    return msgspec.convert({"metadata": {"name": name, "labels": labels}}, Node)


def pod(
    name: str = "p",
    *,
    labels: Labels | None = None,
    on: str = "",
    namespace: str = "default",
    terminating: bool = False,
    nominated: str = "",
    owner: Json | None = None,
    **spec: Any,
) -> Pod:
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": labels,
        "deletionTimestamp": "2026-01-01T00:00:00Z" if terminating else None,
        "ownerReferences": None if owner is None else [owner],
    }
    status = {"nominatedNodeName": nominated}
    return msgspec.convert({"metadata": metadata, "spec": {"nodeName": on, **spec}, "status": status}, Pod)


def namespace(name: str, **labels: str) -> Namespace:
    return msgspec.convert({"metadata": {"name": name, "labels": labels}}, Namespace)


class Crowd(QuietHandle):
    """A cluster that is its own handle."""

    def __init__(self, *objects: KubeObject) -> None:
        self.cluster = Cluster.from_objects(objects)

    @property
    def objects(self) -> Objects:
        return self.cluster.objects

    @property
    def nodes(self) -> TableView:
        return self.cluster.nodes

    def namespace_labels(self, namespace: str) -> Mapping[str, str]:
        return self.cluster.namespace_labels(namespace)

    def is_preempting(self, uid: str) -> bool:
        return False

    def preempt(
        self, cycle: CycleState, pod: PodInfo, statuses: NodeStatuses, limits: PreemptionLimits
    ) -> PostFilterResult:
        raise AssertionError(f"nobody preempts here: {cycle}, {pod}, {statuses}, {limits}")

    def info(self, of_pod: Pod) -> PodInfo:
        return self.cluster.signatures.info(of_pod)


class TablePlugin(Protocol):
    """What both plugins that look at other pods can do."""

    def pre_filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> PreFilterResult: ...
    def filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable, /) -> Verdicts: ...
    def pre_score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Status: ...
    def score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable, /) -> Scores: ...
    def normalize_score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable, scores: Scores, /) -> Scores: ...


def rejections(plugin: TablePlugin, crowd: Crowd, incoming: Pod) -> dict[str, str] | None:
    """The reason for every node that is rejected; None if the filter is left out."""
    cycle, info = CycleState(), crowd.info(incoming)
    found = plugin.pre_filter(cycle, info, crowd.nodes)
    if found.status.is_skip:
        return None
    assert found.status.is_success
    return reasons(plugin.filter(cycle, info, crowd.nodes), crowd.nodes)


def reasons(verdicts: Verdicts, nodes: TableView) -> dict[str, str]:
    if verdicts is ACCEPT_ALL:
        return {}
    found = {name: verdicts.status(position) for position, name in enumerate(nodes.names)}
    return {name: f"{s.code.value}: {s.message}" for name, s in found.items() if not s.is_success}


def scores(
    plugin: TablePlugin, crowd: Crowd, incoming: Pod, feasible: Iterable[int] | None = None
) -> dict[str, tuple[int, int]] | None:
    """Raw and normalized score of every feasible node (all, unless rows are given); None if the score is left out."""
    cycle, info = CycleState(), crowd.info(incoming)
    nodes = crowd.nodes
    if feasible is not None:
        rows = list(feasible)
        nodes = nodes.take(nodes.rows[rows])
    if plugin.pre_score(cycle, info, nodes).is_skip:
        return None
    raw = plugin.score(cycle, info, nodes)
    normalized = plugin.normalize_score(cycle, info, nodes, raw.copy())
    return {name: (int(r), int(n)) for name, r, n in zip(nodes.names, raw, normalized, strict=True)}
