"""A run over time: what was requested of each resource, how many pods ran and waited, how long the queues were.

Requests and pods are worked out from the records of the run when they are asked for, so a run costs nothing more.
Lengths of queues leave no record: `QueueSampler` notes them while the run goes on, if it is told to. A series has a row
where something changed; of very many, as many are kept as a picture can show.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kubesched.k8s.model.requests import PODS
from kubesched.simulator.column_table import Cell, ColumnKind, ColumnTable
from kubesched.simulator.ledger import NodeUsage, PodRecord
from kubesched.simulator.virtual.cluster import VirtualCluster

MOST_SAMPLES = 1_000
_DIGITS = 6

_INT, _FLOAT, _TEXT = ColumnKind.INT64, ColumnKind.FLOAT64, ColumnKind.UTF8
_TIMELINE_COLUMNS = {"at_s": _FLOAT, "nodes": _INT, "running": _INT, "pending": _INT}
_USAGE_COLUMNS = {"at_s": _FLOAT, "resource": _TEXT, "requested": _INT, "allocatable": _INT, "share": _FLOAT}
_QUEUE_COLUMNS = {"at_s": _FLOAT, "active": _INT, "backoff": _INT, "unschedulable": _INT}

_Spans = list[tuple[float, float, int]]
"""(from, to, how much): what was there for that long."""


class QueueSampler:
    """Told after every step of a run. Of an instant it keeps the longest active queue, and the others as they end."""

    def __init__(self) -> None:
        self.samples: list[tuple[float, int, int, int]] = []
        self._least_gap_s = 0.0

    def __call__(self, cluster: VirtualCluster) -> None:
        at_s = cluster.clock.elapsed_s
        active, backoff, unschedulable = cluster.loop.queue.contents.lengths()
        if self.samples and at_s - self.samples[-1][0] <= self._least_gap_s:
            before_s, most, _, _ = self.samples[-1]
            self.samples[-1] = (before_s, max(most, active), backoff, unschedulable)
            return
        if self.samples and self.samples[-1][1:] == (active, backoff, unschedulable):
            return
        self.samples.append((at_s, active, backoff, unschedulable))
        if len(self.samples) > 2 * MOST_SAMPLES:
            del self.samples[1:-1:2]
            self._least_gap_s = max(self._least_gap_s * 2, self.samples[-1][0] / MOST_SAMPLES / 2)

    def table(self) -> ColumnTable:
        return ColumnTable(_QUEUE_COLUMNS, self.samples)


NO_QUEUE_SAMPLES = ColumnTable(_QUEUE_COLUMNS, ())


@dataclass(frozen=True)
class RunHistory:
    """The records of a run, from which its series are made."""

    pods: Sequence[PodRecord]
    nodes: Sequence[NodeUsage]
    start_s: float
    ended_s: float
    """Seconds since the start; the other times of nodes are seconds since the epoch."""

    @property
    def nodes_used(self) -> list[str]:
        """Nodes that ever held a pod other than a daemon's."""
        return sorted({one.node for one in self.pods if one.node and not one.workload.startswith("DaemonSet ")})

    def requested_share(self, resource: str) -> float | None:
        """How much of what the nodes have was requested: over the run, or at its end if no time passed."""
        whole = sum(usage.allocatable_area.get(resource, 0.0) for usage in self.nodes)
        if whole:
            return sum(usage.requested_area.get(resource, 0.0) for usage in self.nodes) / whole
        whole = sum(usage.allocatable.get(resource, 0) for usage in self.nodes)
        return sum(usage.requested.get(resource, 0) for usage in self.nodes) / whole if whole else None

    def highest_share(self, resource: str) -> float:
        """Of what one node has, the most that was ever requested of it."""
        known = [usage for usage in self.nodes if usage.allocatable.get(resource)]
        return max((usage.peak.get(resource, 0) / usage.allocatable[resource] for usage in known), default=0.0)

    @property
    def timeline(self) -> ColumnTable:
        """How many nodes there were, and how many pods ran and waited for a node, over time."""
        running: _Spans = []
        waiting: _Spans = []
        for pod in self.pods:
            began_s = pod.created_s if pod.was_there else pod.started_s
            if began_s is not None:
                running.append((began_s, _end(pod.ended_s), 1))
            if not pod.was_there:
                waiting.append((pod.created_s, min(_end(pod.scheduled_s), _end(pod.ended_s)), 1))
        nodes = [(*self._stay(node), 1) for node in self.nodes]
        at_s = self._instants(nodes, running, waiting)
        columns = [_levels(at_s, spans) for spans in (nodes, running, waiting)]
        rows = zip(at_s.tolist(), *(column.tolist() for column in columns), strict=True)
        return ColumnTable(_TIMELINE_COLUMNS, rows)

    @property
    def usage(self) -> ColumnTable:
        """What was requested of each resource on all nodes together, of how much, over time."""
        requested: dict[str, _Spans] = {}
        for pod in self.pods:
            placed_s = pod.created_s if pod.was_there else pod.scheduled_s
            if placed_s is None or not pod.node:
                continue
            for resource, amount in {**pod.requests, PODS: 1}.items():
                requested.setdefault(resource, []).append((placed_s, _end(pod.ended_s), amount))
        allocatable: dict[str, _Spans] = {}
        for node in self.nodes:
            for resource, amount in node.allocatable.items():
                allocatable.setdefault(resource, []).append((*self._stay(node), amount))
        at_s = self._instants(*requested.values(), *allocatable.values())
        rows: list[tuple[Cell, ...]] = []
        for resource in allocatable:
            used = _levels(at_s, requested.get(resource, [])).tolist()
            whole = _levels(at_s, allocatable[resource]).tolist()
            if any(whole):
                rows += [
                    (when, resource, part, of, round(part / of, _DIGITS) if of else None)
                    for when, part, of in zip(at_s.tolist(), used, whole, strict=True)
                ]
        return ColumnTable(_USAGE_COLUMNS, rows)

    def node_shares(self, resource: str, n_instants: int) -> tuple[np.ndarray, list[str], np.ndarray]:
        """Of each node what share was requested, at evenly spaced instants: these, the names, and a row for each node.
        Where a node was not there, it is not a number."""
        at_s = np.linspace(0.0, self.ended_s, n_instants)
        by_node: dict[str, _Spans] = {}
        for pod in self.pods:
            placed_s = pod.created_s if pod.was_there else pod.scheduled_s
            if placed_s is not None and pod.node:
                amount = 1 if resource == PODS else pod.requests.get(resource, 0)
                by_node.setdefault(pod.node, []).append((placed_s, _end(pod.ended_s), amount))
        nodes = [node for node in self.nodes if node.allocatable.get(resource)]
        shares = np.full((len(nodes), n_instants), np.nan)
        for row, node in enumerate(nodes):
            begin_s, end_s = self._stay(node)
            is_there = (at_s >= begin_s) & (at_s < end_s)
            used = _levels(at_s, by_node.get(node.name, []))
            shares[row, is_there] = used[is_there] / node.allocatable[resource]
        return at_s, [node.name for node in nodes], shares

    def _stay(self, node: NodeUsage) -> tuple[float, float]:
        left_s = math.inf if node.left_s is None else round(node.left_s - self.start_s, _DIGITS)
        return round(node.joined_s - self.start_s, _DIGITS), left_s

    def _instants(self, *spans: _Spans) -> np.ndarray:
        """When something changed, from the beginning to the end; evenly thinned out if there are very many."""
        found = {0.0, self.ended_s}
        for some in spans:
            for begin_s, end_s, _ in some:
                found.update(at_s for at_s in (begin_s, end_s) if at_s <= self.ended_s)
        at_s = sorted(found)
        if len(at_s) > MOST_SAMPLES:
            at_s = [at_s[place] for place in np.linspace(0, len(at_s) - 1, MOST_SAMPLES).astype(int).tolist()]
        return np.array(at_s)


def _end(at_s: float | None) -> float:
    """What has not ended goes on beyond the end."""
    return math.inf if at_s is None else at_s


def _levels(at_s: np.ndarray, spans: _Spans) -> np.ndarray:
    """How much there was at each instant, after all that happened then."""
    changes: dict[float, int] = {}
    for begin_s, end_s, amount in spans:
        changes[begin_s] = changes.get(begin_s, 0) + amount
        changes[end_s] = changes.get(end_s, 0) - amount
    if not changes:
        return np.zeros(len(at_s), dtype=np.int64)
    when = np.array(sorted(changes))
    totals = np.cumsum([changes[moment] for moment in when.tolist()])
    places = np.searchsorted(when, at_s, side="right") - 1
    return np.where(places >= 0, totals[np.maximum(places, 0)], 0).astype(np.int64)
