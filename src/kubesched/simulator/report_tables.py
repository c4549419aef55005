"""Tables of a run: pods, nodes, utilisation, events, preemptions; and the run over time.

Times are seconds since its start. What was requested of each resource over time, how many pods ran and how many waited,
is worked out from the records of the run when it is asked for, so a run costs nothing more. Lengths of queues leave no
record: `QueueSampler` notes them while the run goes on, if it is told to. A series has a row where something changed;
of very many, as many are kept as a picture can show.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.requests import CPU, MEMORY, PODS
from kubesched.k8s.model.scheduling import POD_GROUP_INITIALLY_SCHEDULED, POD_GROUP_SCHEDULED, PodGroup, group_key_of
from kubesched.k8s.workloads.pod_states import POD_PENDING, READY
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


INT, FLOAT, TEXT = ColumnKind.INT64, ColumnKind.FLOAT64, ColumnKind.UTF8


_POD_COLUMNS = {
    "namespace": TEXT,
    "name": TEXT,
    "workload": TEXT,
    "node": TEXT,
    "state": TEXT,
    "priority": INT,
    "cpu_milli": INT,
    "memory_bytes": INT,
    "created_s": FLOAT,
    "scheduled_s": FLOAT,
    "started_s": FLOAT,
    "ended_s": FLOAT,
    "attempts": INT,
    "message": TEXT,
    "cause": TEXT,
}
_NODE_COLUMNS = {
    "name": TEXT,
    "state": TEXT,
    "joined_s": FLOAT,
    "left_s": FLOAT,
    "pods": INT,
    "cpu_allocatable_milli": INT,
    "cpu_requested_milli": INT,
    "memory_allocatable_bytes": INT,
    "memory_requested_bytes": INT,
}
_UTILISATION_COLUMNS = {
    "node": TEXT,
    "resource": TEXT,
    "allocatable": INT,
    "requested": INT,
    "share": FLOAT,
    "peak": INT,
    "mean_share": FLOAT,
}
_EVENT_COLUMNS = {
    "at_s": FLOAT,
    "last_s": FLOAT,
    "count": INT,
    "type": TEXT,
    "reason": TEXT,
    "object": TEXT,
    "note": TEXT,
}
_PREEMPTION_COLUMNS = {"at_s": FLOAT, "preemptor": TEXT, "victim": TEXT, "node": TEXT}

_NOT_CREATED_COLUMNS = {"namespace": TEXT, "workload": TEXT, "pods": INT, "message": TEXT}

GONE = "Gone"
TERMINATING = "Terminating"
STARTING = "Starting"


def state_of(cluster: VirtualCluster, record: PodRecord) -> str:
    """A pod's phase as `kubectl get` would show it; `Gone` for one that was deleted."""
    if record.is_gone:
        return GONE
    pod = cluster.store.find(Pod, record.key)
    if pod is not None and pod.is_terminating:
        return TERMINATING
    if record.node and record.phase in ("", POD_PENDING):
        return STARTING
    return record.phase or POD_PENDING


def pod_table(cluster: VirtualCluster, messages: dict[str, str]) -> ColumnTable:
    """`messages` says by uid why pods are pending."""
    return ColumnTable(_POD_COLUMNS, (_pod_row(cluster, r, messages) for r in cluster.ledger.pods.values()))


def _pod_row(cluster: VirtualCluster, record: PodRecord, messages: dict[str, str]) -> tuple[Cell, ...]:
    namespace, _, name = record.key.partition("/")
    return (
        namespace,
        name,
        record.workload or None,
        record.node or None,
        state_of(cluster, record),
        record.priority,
        record.requests.get(CPU, 0),
        record.requests.get(MEMORY, 0),
        record.created_s,
        record.scheduled_s,
        record.started_s,
        record.ended_s,
        record.n_attempts,
        messages.get(record.uid),
        record.cause or None,
    )


def node_table(cluster: VirtualCluster) -> ColumnTable:
    return ColumnTable(_NODE_COLUMNS, (_node_row(cluster, usage) for usage in cluster.meter.nodes))


def _node_row(cluster: VirtualCluster, usage: NodeUsage) -> tuple[Cell, ...]:
    return (
        usage.name,
        node_state(cluster, usage),
        _since_start(cluster, usage.joined_s),
        None if usage.left_s is None else _since_start(cluster, usage.left_s),
        usage.requested.get(PODS, 0),
        usage.allocatable.get(CPU, 0),
        usage.requested.get(CPU, 0),
        usage.allocatable.get(MEMORY, 0),
        usage.requested.get(MEMORY, 0),
    )


def node_state(cluster: VirtualCluster, usage: NodeUsage) -> str:
    node = cluster.store.find(Node, usage.name)
    if usage.left_s is not None or node is None:
        return GONE
    unready = any(known.type == READY and known.status != "True" for known in node.status.conditions or ())
    states = ["NotReady" if unready else READY, *(["SchedulingDisabled"] if node.spec.unschedulable else [])]
    return ",".join(states)


def utilisation_table(cluster: VirtualCluster) -> ColumnTable:
    return ColumnTable(_UTILISATION_COLUMNS, (row for usage in cluster.meter.nodes for row in _utilisation_rows(usage)))


def _utilisation_rows(usage: NodeUsage) -> Iterator[tuple[Cell, ...]]:
    for name in _resources(usage):
        allocatable, requested = usage.allocatable.get(name, 0), usage.requested.get(name, 0)
        yield (
            usage.name,
            name,
            allocatable,
            requested,
            share(requested, allocatable),
            usage.peak.get(name, 0),
            share(usage.requested_area.get(name, 0.0), usage.allocatable_area.get(name, 0.0)),
        )


def _resources(usage: NodeUsage) -> list[str]:
    """The well-known ones first, then the others by name; without those that a node neither has nor is asked for."""
    first = [CPU, MEMORY, PODS]
    known = {name for amounts in (usage.allocatable, usage.peak) for name, amount in amounts.items() if amount}
    return [name for name in first if name in known] + sorted(known - set(first))


def share(part: float, whole: float) -> float | None:
    return round(part / whole, _DIGITS) if whole else None


def event_table(cluster: VirtualCluster) -> ColumnTable:
    rows = ((e.at_s, e.last_s, e.count, e.type, e.reason, f"{e.kind} {e.name}", e.note) for e in cluster.ledger.events)
    return ColumnTable(_EVENT_COLUMNS, rows)


def preemption_table(cluster: VirtualCluster) -> ColumnTable:
    rows = ((p.at_s, p.preemptor, p.victim, p.node) for p in cluster.ledger.preemptions)
    return ColumnTable(_PREEMPTION_COLUMNS, rows)


def not_created_table(cluster: VirtualCluster, messages: dict[str, str]) -> ColumnTable:
    """Pods of which too many others of their workload wait already: how many, and what is said of those."""
    rows = (
        (owner.namespace, cluster.ledger.workload_of(owner), n, _message_of(cluster, owner, messages))
        for owner, n in cluster.not_created()
    )
    return ColumnTable(_NOT_CREATED_COLUMNS, rows)


def _message_of(cluster: VirtualCluster, owner: KubeObject, messages: dict[str, str]) -> str | None:
    """The most frequent one: pods of a workload ask for the same."""
    uids = (pod.metadata.uid for pod in cluster.store.owned(owner.metadata.uid, Pod))
    counts = Counter(messages[uid] for uid in uids if uid in messages)
    return counts.most_common(1)[0][0] if counts else None


def _since_start(cluster: VirtualCluster, at_s: float) -> float:
    return round(at_s - cluster.clock.start_s, _DIGITS)


def pod_group_rows(cluster: VirtualCluster) -> list[dict[str, Any]]:
    """By key. `scheduled` is None as long as no attempt was made; `complete_after_s` is how long after its first pod
    came as many had a node as it needs (a group without a number: all), None if that did not happen."""
    groups = cluster.store.of(PodGroup)
    placed: Counter[str] = Counter()
    pods: Counter[str] = Counter()
    for pod in cluster.store.of(Pod).values():
        if key := group_key_of(pod):
            pods[key] += 1
            placed[key] += bool(pod.spec.node_name)
    rows = []
    for key, group in sorted(groups.items()):
        condition = group.condition(POD_GROUP_SCHEDULED) or group.condition(POD_GROUP_INITIALLY_SCHEDULED)
        rows.append(
            {
                "namespace": group.namespace,
                "name": group.name,
                "min_count": group.min_count,
                "pods": pods[key],
                "placed": placed[key],
                "scheduled": None if condition is None else condition.status == "True",
                "complete_after_s": _complete_after_s(cluster.ledger.members.get(key, ()), group.min_count),
                "message": "" if condition is None else condition.message,
            }
        )
    return rows


def _complete_after_s(members: Sequence[PodRecord], min_count: int) -> float | None:
    n_needed = min_count or len(members)
    moments = [record.created_s if record.was_there else record.scheduled_s for record in members]
    scheduled = sorted(at_s for at_s in moments if at_s is not None)
    if not members or len(scheduled) < n_needed:
        return None
    first_s = min(record.created_s for record in members)
    return round(max(scheduled[n_needed - 1] - first_s, 0.0), _DIGITS)
