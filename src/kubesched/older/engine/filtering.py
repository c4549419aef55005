"""Filters asked node by node; a node that breaks one does not hide the others, and one may be asked of all.

Next: `scheduler`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Code, Status
from kubesched.older.config import Generation
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.view import NodeRow, TableView
from kubesched.scheduler.engine.filter import FilterOutcome, change_state
from kubesched.scheduler.engine.metrics.timing import timed_extension_point
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.engine.row_check import nominated_pods_on


@dataclass(slots=True)
class RejectionsByNode:
    """Kept in the cycle: everything that was said against each node, by position."""

    found: dict[int, tuple[Status, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NodeByNode:
    """Asks the filters of a profile as a version did."""

    cluster: Cluster
    profile: Profile
    generation: Generation
    checks_all: bool

    def run(self, cycle: CycleState, pod: PodInfo, nodes: TableView) -> FilterOutcome:
        return _ask_everywhere(self.profile, self, cycle, pod, nodes)

    def on_row(self, cycle: CycleState, pod: PodInfo, row: int) -> tuple[Status, ...]:
        """What speaks against the node: first beside the pods that are nominated to it, then as it is."""
        nominated_pods = nominated_pods_on(self.cluster, pod, self.cluster.table.names[row])
        if nominated_pods:
            beside = cycle.fork()
            with self.cluster.with_pods(nominated_pods, row):
                for nominated_pod in nominated_pods:
                    change_state(self.profile, beside, pod, nominated_pod, self.cluster, row, adding=True)
                found = self._ask(beside, pod, row)
            if found:
                return found
        return self._ask(cycle, pod, row)

    def _ask(self, cycle: CycleState, pod: PodInfo, row: int) -> tuple[Status, ...]:
        node = NodeRow(self.cluster.table, row)
        found: list[Status] = []
        for step in self.profile.filter:
            assert step.filter_node is not None
            status = step.filter_node(cycle, pod, node)
            if status.is_success:
                continue
            if status.code is Code.ERROR:
                text = self.generation.filter_error.format(plugin=step.name, pod=pod.name, message=status.message)
                return (Status.error(text).by(step.name),)
            found.append(status.by(step.name))
            if not self.checks_all:
                break
        return tuple(found)


@timed_extension_point("Filter")
def _ask_everywhere(
    _profile: Profile, asking: NodeByNode, cycle: CycleState, pod: PodInfo, nodes: TableView
) -> FilterOutcome:
    n = len(nodes)
    outcome = FilterOutcome(nodes, np.ones(n, dtype=np.bool_), np.zeros(n, dtype=np.bool_))
    rejections = RejectionsByNode()
    cycle.put(rejections)
    for position, row in enumerate(nodes.rows.tolist()):
        found = asking.on_row(cycle, pod, row)
        if found:
            rejections.found[position] = found
            status = merged(found)
            outcome.fits[position] = False
            outcome.unresolvable[position] = status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
            outcome.overrides[position] = status
    return outcome


def merged(statuses: tuple[Status, ...]) -> Status:
    """One status for a node: the first plugin, the worst code, all reasons."""
    if len(statuses) == 1:
        return statuses[0]
    codes = {status.code for status in statuses}
    final = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    code = final if final in codes else Code.UNSCHEDULABLE
    return Status(code, tuple(reason for status in statuses for reason in status.reasons), statuses[0].plugin)
