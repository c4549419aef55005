"""What happened, pod by pod: when each came, where it went, how it ended; and the events that were recorded.

And node by node: how much of each was asked for, at the end, at most, and on average over its time in the cluster.
Times are seconds since the start of the run.

Next: `report`, which makes tables of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from sys import intern

from kubesched.framework.effects import RecordEvent
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.meta import KubeObject, PodKey, controller_of
from kubesched.k8s.model.requests import PODS, node_units, pod_resources
from kubesched.k8s.model.scheduling import group_key_of
from kubesched.k8s.workloads.pod_states import POD_RUNNING
from kubesched.simulator.virtual.store import ClusterStore, VirtualClock

Amounts = dict[str, int]

_SCHEDULED = "Scheduled"


@dataclass(slots=True)
class NodeUsage:
    """A node's account. Areas are amounts times seconds."""

    name: str
    joined_s: float
    since_s: float
    allocatable: Amounts
    left_s: float | None = None
    requested: Amounts = field(default_factory=dict)
    peak: Amounts = field(default_factory=dict)
    requested_area: dict[str, float] = field(default_factory=dict)
    allocatable_area: dict[str, float] = field(default_factory=dict)

    def advance(self, now_s: float) -> None:
        """Counts what was there up to now."""
        for_s = now_s - self.since_s
        self.since_s = now_s
        if for_s <= 0:
            return
        for name, amount in self.requested.items():
            self.requested_area[name] = self.requested_area.get(name, 0.0) + amount * for_s
        for name, amount in self.allocatable.items():
            self.allocatable_area[name] = self.allocatable_area.get(name, 0.0) + amount * for_s

    def change(self, amounts: Amounts, sign: int) -> None:
        """A pod that requests so much comes (1), or goes (-1)."""
        requested, peak = self.requested, self.peak
        for name, amount in amounts.items():
            requested[name] = total = requested.get(name, 0) + sign * amount
            if total >= peak.get(name, 0):
                peak[name] = total
        requested[PODS] = total = requested.get(PODS, 0) + sign
        if total >= peak.get(PODS, 0):
            peak[PODS] = total


class UtilisationMeter:
    """Keeps the account of every node that ever was."""

    def __init__(self, clock: VirtualClock, store: ClusterStore, pods: Mapping[str, PodRecord]) -> None:
        """`pods` are the records of all pods by uid."""
        self._clock = clock
        self._store = store
        self._pods = pods
        self.nodes: list[NodeUsage] = []
        self._present: dict[str, NodeUsage] = {}
        self._waiting: dict[str, dict[str, Amounts]] = {}
        """Pods on nodes that are not there, by node and uid."""
        store.listen(self._on_change, Node)

    def close(self, at_s: float) -> None:
        """The run is over."""
        for usage in self._present.values():
            usage.advance(at_s)

    def pod_changed(self, record: PodRecord, sign: int) -> None:
        """The pod counts on its node from here on (1), or does not any more (-1)."""
        record.counts = sign > 0
        usage = self._present.get(record.node)
        if usage is not None:
            usage.advance(self._clock.now_s)
            usage.change(record.requests, sign)
        elif sign > 0:
            self._waiting.setdefault(record.node, {})[record.uid] = record.requests
        else:
            self._waiting.get(record.node, {}).pop(record.uid, None)

    def _on_change(self, before: KubeObject | None, after: KubeObject | None) -> None:
        if isinstance(after, Node):
            self._node_changed(after)
        elif isinstance(before, Node):
            self._node_left(before.name)

    def _node_changed(self, node: Node) -> None:
        now_s = self._clock.now_s
        allocatable = node_units(node.status.allocatable, "status.allocatable")
        usage = self._present.get(node.name)
        if usage is not None:
            usage.advance(now_s)
            usage.allocatable = allocatable
            return
        usage = NodeUsage(node.name, now_s, now_s, allocatable)
        self._present[node.name] = usage
        self.nodes.append(usage)
        for amounts in self._waiting.pop(node.name, {}).values():
            usage.change(amounts, 1)

    def _node_left(self, node_name: str) -> None:
        usage = self._present.pop(node_name)
        usage.advance(self._clock.now_s)
        usage.left_s = self._clock.now_s
        on_node = (self._pods[pod.metadata.uid] for pod in self._store.pods_on(node_name))
        self._waiting[node_name] = {record.uid: record.requests for record in on_node if record.counts}


@dataclass(slots=True)
class PodRecord:
    """One pod's life. What has not happened is None, or empty."""

    key: PodKey
    uid: str
    workload: str
    """`Deployment web` and the like; empty for a pod without an owner."""
    priority: int
    requests: dict[str, int]
    created_s: float
    was_there: bool = False
    """It had its node before the run began."""
    node: str = ""
    scheduled_s: float | None = None
    started_s: float | None = None
    ended_s: float | None = None
    phase: str = ""
    n_attempts: int = 0
    message: str = ""
    """What the scheduler last said about why it cannot be placed."""
    cause: str = ""
    """Why it had to go, if it had to."""
    is_gone: bool = False
    counts: bool = False
    """It has its node, and has not ended."""


@dataclass(slots=True)
class EventRecord:
    """An event, and how often it was recorded."""

    at_s: float
    last_s: float
    type: str
    reason: str
    kind: str
    """Of the object that it is about."""
    name: str
    note: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class PreemptionRecord:
    at_s: float
    preemptor: str
    victim: str
    node: str


class PodLedger:
    def __init__(self, clock: VirtualClock, store: ClusterStore, find_info: Callable[[PodKey], PodInfo | None]) -> None:
        """`find_info` gives pods as the scheduler has them, which knows what pods like them request."""
        self.clock = clock
        self.store = store
        self._find_info = find_info
        self.pods: dict[str, PodRecord] = {}
        """By uid, in the order they came."""
        self.members: dict[str, list[PodRecord]] = {}
        """By pod group, those of its pods."""
        self.meter = UtilisationMeter(clock, store, self.pods)
        self.events: list[EventRecord] = []
        self.preemptions: list[PreemptionRecord] = []
        self._series: dict[str | tuple[str, ...], EventRecord] = {}
        self._tried: dict[str, int] = {}
        """By the pod's uid: how many changes there had been when it was last tried in vain."""
        store.listen(self._on_change, Pod)

    def event(self, type_: str, reason: str, kind: str, name: str, note: str) -> None:
        # what says that a pod was scheduled names the pod
        series = note if reason == _SCHEDULED else (kind, name, reason, note)
        known = self._series.get(series)
        if known is not None:
            known.count += 1
            known.last_s = self.clock.elapsed_s
            return
        now_s = self.clock.elapsed_s
        self._series[series] = record = EventRecord(now_s, now_s, type_, reason, kind, name, note)
        self.events.append(record)

    def scheduler_event(self, action: RecordEvent) -> None:
        record = self.pods.get(action.uid)
        if record is not None and action.reason == "FailedScheduling":
            record.n_attempts += 1
            record.message = action.note
            self._tried[record.uid] = self.store.n_changes
        elif record is not None and action.reason == _SCHEDULED:
            record.n_attempts += 1
        elif record is not None and action.reason == "Preempted":
            at_s, preemptor = self.clock.elapsed_s, action.related or ""
            self.preemptions.append(PreemptionRecord(at_s, preemptor, record.key, record.node))
        key = action.pod if record is None else record.key
        self.event(action.type, action.reason, "Pod", key, action.note)

    def is_tried(self, uid: str) -> bool:
        """Whether the pod was tried in vain since the last change."""
        return self._tried.get(uid) == self.store.n_changes

    def refused(self, owner: KubeObject, message: str) -> None:
        """A controller could not create what it wanted."""
        self.event("Warning", "FailedCreate", type(owner).__name__, owner.key, f"Error creating: {message}")

    def asked_to_go(self, pod: Pod, cause: str) -> None:
        record = self.pods.get(pod.metadata.uid)
        if record is not None and not pod.is_terminal:
            record.cause = cause

    def _on_change(self, before: KubeObject | None, after: KubeObject | None) -> None:
        if isinstance(after, Pod):
            uid = after.metadata.uid
            record = self.pods.get(uid)
            if record is None:
                record = self.pods[uid] = self._new_record(after)
            self._note(record, after)
        elif before is not None:
            record = self.pods[before.metadata.uid]
            record.is_gone = True
            self._ended(record)

    def _new_record(self, pod: Pod) -> PodRecord:
        info, uid = self._find_info(pod.pod_key), pod.metadata.uid
        if info is not None and info.uid == uid:
            key, resources = info.key, info.signature.resources
        else:  # it has ended, and is nothing to the scheduler
            key, resources = pod.pod_key, pod_resources(pod)
        record = PodRecord(
            key=key,
            uid=uid,
            workload=self.workload_of(pod),
            priority=pod.priority,
            requests=resources.requests,
            created_s=self.clock.elapsed_s,
            was_there=bool(pod.spec.node_name),
        )
        if group := group_key_of(pod):
            self.members.setdefault(group, []).append(record)
        return record

    def _note(self, record: PodRecord, pod: Pod) -> None:
        record.phase = phase = pod.status.phase
        node_name = pod.spec.node_name
        if node_name and not record.node:
            record.node = node_name
            record.message = ""
            if not record.was_there:
                record.scheduled_s = self.clock.elapsed_s
            if not pod.is_terminal:
                self.meter.pod_changed(record, 1)
        if phase == POD_RUNNING:
            if record.started_s is None and not record.was_there:
                record.started_s = self.clock.elapsed_s
        elif record.ended_s is None and pod.is_terminal:
            self._ended(record)

    def _ended(self, record: PodRecord) -> None:
        if record.ended_s is None:
            record.ended_s = self.clock.elapsed_s
        if record.counts:
            self.meter.pod_changed(record, -1)

    def know_owners(self) -> None:
        """Says again whose the pods are, once all that was given is there: a pod may be read before its ReplicaSet."""
        for record in self.pods.values():
            pod = self.store.find(Pod, record.key) if record.workload else None
            if pod is not None:
                record.workload = self.workload_of(pod)

    def workload_of(self, item: KubeObject) -> str:
        """The kind and name of the topmost owner, as far as owners are known; empty for a pod without an owner."""
        if not item.metadata.owner_references and isinstance(item, Pod):
            return ""
        last = (self.store.owners_of(item) or [item])[-1]
        top = controller_of(last.metadata)
        if top is not None:
            return intern(f"{top.kind} {top.name}")
        return "" if isinstance(last, Pod) else intern(f"{type(last).__name__} {last.name}")
