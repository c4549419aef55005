"""Compares the cluster with what the informers hold, and its table with a recount. Finds, and fixes nothing.

kube-scheduler does the first part when it is sent SIGUSR2 (its cache comparer: missed and redundant nodes and pods).
Here an update that was missed is found too, and every number and index of the table is worked out again from the nodes
and pods it is made of. What comes out are findings as data; an empty list says that all is well.

Next: `table`, whose columns are recounted, and `cluster`, where facts arrive.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject, PodKey
from kubesched.k8s.model.stand_ins import UnreadPod
from kubesched.scheduler.cluster.cluster import Cluster
from kubesched.scheduler.cluster.recount import recount_rows

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
