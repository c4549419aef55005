"""Tables of a run: pods, nodes, utilisation, events, preemptions. Times are seconds since its start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.requests import CPU, MEMORY, PODS
from kubesched.k8s.model.scheduling import (
    POD_GROUP_INITIALLY_SCHEDULED,
    POD_GROUP_SCHEDULED,
    PodGroup,
    group_key_of,
)
from kubesched.k8s.workloads.pod_states import POD_PENDING, READY
from kubesched.simulator.column_table import Cell, ColumnKind, ColumnTable
from kubesched.simulator.ledger import NodeUsage, PodRecord
from kubesched.simulator.virtual.cluster import VirtualCluster

INT, FLOAT, TEXT = ColumnKind.INT64, ColumnKind.FLOAT64, ColumnKind.UTF8

_DIGITS = 6

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
