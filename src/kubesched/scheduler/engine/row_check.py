"""One pod on one node: does it fit as things are, or with the pods nominated there?

The same answer as the filters give for a table of one row. Trials (preemption, nominated pods) ask this very often:
where every filter looks at one node at a time they are asked through their scalar forms, about a node as it would be
without some of its pods or with others (`ImaginedNode`); else pods are put on the table, and taken off again.

Pods of equal or higher priority that are nominated to a node are treated as if they ran there: the pod must fit with
them and without them (`run_filters_with_nominated`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kubesched.framework.caching import WITHIN_NODE, Scope
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import NodeInfo, NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Code, Status
from kubesched.k8s.model.core import ContainerPort, Node
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.view import NodeRow, do_ports_conflict
from kubesched.scheduler.engine.filter import FilterOutcome, change_state, index_of, run_filters
from kubesched.scheduler.engine.plugin_call import PluginError, blamed, guarded
from kubesched.scheduler.engine.profile import FilterStep, Profile


class ImaginedNode:
    __slots__ = (
        "_amounts",
        "_brought",
        "_gone",
        "_node",
        "_nonzero_cpu_milli",
        "_nonzero_memory_bytes",
        "pod_count",
        "row",
    )

    def __init__(self, node: NodeRow) -> None:
        self._node = node
        self.row = node.row
        self.pod_count = node.pod_count
        self._gone: set[str] = set()
        self._brought: dict[str, PodInfo] = {}
        self._amounts: dict[str, int] = {}
        self._nonzero_cpu_milli = 0
        self._nonzero_memory_bytes = 0

    def take_away(self, info: PodInfo) -> None:
        if self._brought.pop(info.uid, None) is None:
            self._gone.add(info.uid)
        self._change(info, -1)

    def bring(self, info: PodInfo) -> None:
        if info.uid in self._gone:
            self._gone.remove(info.uid)
        else:
            self._brought[info.uid] = info
        self._change(info, 1)

    def _change(self, info: PodInfo, sign: int) -> None:
        resources = info.signature.resources
        amounts = self._amounts
        for name, units in resources.requests.items():
            amounts[name] = amounts.get(name, 0) + sign * units
        self._nonzero_cpu_milli += sign * resources.nonzero_cpu_milli
        self._nonzero_memory_bytes += sign * resources.nonzero_memory_bytes
        self.pod_count += sign

    @property
    def name(self) -> str:
        return self._node.name

    @property
    def node(self) -> Node:
        return self._node.node

    @property
    def labels(self) -> dict[str, str]:
        return self._node.labels

    @property
    def pods(self) -> Sequence[PodInfo]:
        return [*(info for info in self._node.pods if info.uid not in self._gone), *self._brought.values()]

    def allocatable(self, resource: str) -> int:
        return self._node.allocatable(resource)

    def requested(self, resource: str) -> int:
        return self._node.requested(resource) + self._amounts.get(resource, 0)

    @property
    def nonzero_cpu_milli(self) -> int:
        return self._node.nonzero_cpu_milli + self._nonzero_cpu_milli

    @property
    def nonzero_memory_bytes(self) -> int:
        return self._node.nonzero_memory_bytes + self._nonzero_memory_bytes

    @property
    def allowed_pods(self) -> int:
        return self._node.allowed_pods

    def image_size(self, image: str) -> int:
        return self._node.image_size(image)

    def has_conflicting_ports(self, ports: Sequence[ContainerPort]) -> bool:
        return any(do_ports_conflict(port, used) for info in self.pods for used in info.host_ports for port in ports)


@dataclass(frozen=True, slots=True)
class NodeSteps:
    """The filters of a cycle, if each of them looks at one node at a time; kept in the cycle."""

    profile: Profile
    skipped: frozenset[str]
    steps: tuple[FilterStep, ...] | None
    about_pods: tuple[FilterStep, ...] = ()
    """Those whose answer may change with the pods on the node."""
    about_nodes: tuple[FilterStep, ...] = ()
    """The others."""
    by_amounts: bool = False
    """Of the pods on a node, none of them looks at more than the amounts they take."""


def steps_within_node(profile: Profile, cycle: CycleState, pod: PodInfo) -> Sequence[FilterStep] | None:
    """The filters to ask about an imagined node; None if one of them has to see the table."""
    return node_steps(profile, cycle, pod).steps


def node_steps(profile: Profile, cycle: CycleState, pod: PodInfo) -> NodeSteps:
    known = cycle.find(NodeSteps)
    if known is None or known.profile is not profile or known.skipped is not cycle.skip_filter:
        steps = tuple(step for step in profile.filter if step.name not in cycle.skip_filter)
        within = all(step.filter_node is not None and step.scope_for(pod) in WITHIN_NODE for step in steps)
        about_pods = tuple(step for step in steps if step.scope_for(pod) is not Scope.NODE)
        about_nodes = tuple(step for step in steps if step.scope_for(pod) is Scope.NODE)
        by_amounts = all(step.scope_for(pod) is Scope.AMOUNTS for step in about_pods)
        known = NodeSteps(profile, cycle.skip_filter, steps if within else None, about_pods, about_nodes, by_amounts)
        cycle.put(known)
    return known


def check_row(cluster: Cluster, profile: Profile, cycle: CycleState, pod: PodInfo, row: int) -> Status:
    """The first rejection, with its plugin; or OK."""
    node = NodeRow(cluster.table, row)
    steps = steps_within_node(profile, cycle, pod)
    if steps is not None:
        return check_node(steps, cycle, pod, node)
    alone = None
    for step in profile.filter:
        if step.name in cycle.skip_filter:
            continue
        with guarded(step.name, 'running "{}" filter plugin'):
            if step.filter_node is not None:
                status = step.filter_node(cycle, pod, node)
            else:
                if alone is None:
                    alone = cluster.nodes.take(np.array([row]))
                status = step.filter(cycle, pod, alone).status(0)
        if not status.is_success:
            return _rejection(status, step.name)
    return OK


def check_row_with_nominated(cluster: Cluster, profile: Profile, cycle: CycleState, pod: PodInfo, row: int) -> Status:
    """The pod must fit beside the nominated pods (asked first, as their rejection counts) and without them."""
    nominated_pods = nominated_pods_on(cluster, pod, cluster.table.names[row])
    if nominated_pods:
        status = check_row_beside(cluster, profile, cycle, pod, row, nominated_pods)
        if not status.is_success:
            return status
    return check_row(cluster, profile, cycle, pod, row)


def nominated_pods_on(cluster: Cluster, pod: PodInfo, node_name: str) -> list[PodInfo]:
    """Pods nominated to the node that this one must not overtake."""
    return [p for p in cluster.nominations.on(node_name) if p.priority >= pod.priority and p.uid != pod.uid]


def check_row_beside(
    cluster: Cluster, profile: Profile, cycle: CycleState, pod: PodInfo, row: int, others: Sequence[PodInfo]
) -> Status:
    """Whether the pod fits on the row if the others ran there too."""
    steps = steps_within_node(profile, cycle, pod)
    if steps is not None:
        return check_node(steps, cycle, pod, imagined_with(others, NodeRow(cluster.table, row)))
    with cluster.with_pods(others, row):
        for other in others:
            change_state(profile, cycle, pod, other, cluster, row, adding=True)
        status = check_row(cluster, profile, cycle, pod, row)
        for other in reversed(others):
            change_state(profile, cycle, pod, other, cluster, row, adding=False)
    return status


def imagined_with(others: Sequence[PodInfo], node: NodeRow) -> ImaginedNode:
    """The node as it would be if the others ran there too."""
    imagined = ImaginedNode(node)
    for other in others:
        imagined.bring(other)
    return imagined


def check_node(steps: Sequence[FilterStep], cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
    for step in steps:
        assert step.filter_node is not None
        try:
            status = step.filter_node(cycle, pod, node)
        except Exception as bug:
            raise blamed(bug, step.name, 'running "{}" filter plugin') from bug
        if status is not OK and not status.is_success:
            return _rejection(status, step.name)
    return OK


def _rejection(status: Status, plugin: str) -> Status:
    if status.code is Code.ERROR:
        raise PluginError(plugin, f'running "{plugin}" filter plugin: {status.message}')
    return status.by(plugin)


def run_filters_with_nominated(
    cluster: Cluster, profile: Profile, cycle: CycleState, pod: PodInfo, nodes: NodeTable
) -> FilterOutcome:
    """As `run_filters`, and nodes must hold the pod beside those nominated to them, too. A rejection because of these
    comes before any other."""
    outcome = run_filters(profile, cycle, pod, nodes)
    rows = nodes.rows
    for node_name in cluster.nominations.node_names():
        row = cluster.table.rows.get(node_name)
        nominated_pods = nominated_pods_on(cluster, pod, node_name)
        if row is None or not nominated_pods:
            continue
        position = row if row < len(rows) and rows[row] == row else index_of(rows, row)
        if position is None:
            continue
        status = check_row_beside(cluster, profile, cycle, pod, row, nominated_pods)
        if not status.is_success:
            outcome.fits[position] = False
            outcome.unresolvable[position] = status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
            outcome.overrides[position] = status
    return outcome
