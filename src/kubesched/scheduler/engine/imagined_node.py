"""A node as it would be without some of its pods, or with others: worked out, not tried out on the table.

Implements `framework.NodeInfo`. Enough for filters that look at one node at a time through it (`steps_within_node`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubesched.framework.caching import WITHIN_NODE, Scope
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import ContainerPort, Node
from kubesched.scheduler.cluster.view import NodeRow, do_ports_conflict
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.engine.steps import FilterStep


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


def steps_within_node(profile: Profile, cycle: CycleState, pod: PodInfo) -> Sequence[FilterStep] | None:
    """The filters to ask about an imagined node; None if one of them has to see the table."""
    return node_steps(profile, cycle, pod).steps


def node_steps(profile: Profile, cycle: CycleState, pod: PodInfo) -> NodeSteps:
    known = cycle.find(NodeSteps)
    if known is None or known.profile is not profile or known.skipped is not cycle.skip_filter:
        steps = tuple(step for step in profile.filter if step.name not in cycle.skip_filter)
        within = all(step.filter_node is not None and step.scope_for(pod) in WITHIN_NODE for step in steps)
        about_pods = tuple(step for step in steps if step.scope_for(pod) is not Scope.NODE)
        known = NodeSteps(profile, cycle.skip_filter, steps if within else None, about_pods)
        cycle.put(known)
    return known
