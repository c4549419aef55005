"""How many pods of a group fit on each node, counted without placing them one by one.

That can be done where all pods of the group are alike and every filter looks at nothing but the node's object and its
amounts: then it does not matter which node is chosen for which pod, and as many of them fit into a set of nodes as fit
on each of its nodes together. What becomes of the group follows from how many fit: of many racks, or of many pods that
may stay or have to leave, only one of each number needs to be tried.

It is kept up to date as pods are taken off nodes and brought back.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kubesched.framework.caching import Scope
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import IntArray, RowArray
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import PluginFault
from kubesched.framework.verdicts import BoolArray
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.view import NodeRow
from kubesched.scheduler.engine.cycle import ProfileScheduler
from kubesched.scheduler.engine.filter import ask
from kubesched.scheduler.engine.plugin_call import PluginError
from kubesched.scheduler.engine.prefilter import run_pre_filter
from kubesched.scheduler.engine.profile import FilterStep
from kubesched.scheduler.engine.row_check import ImaginedNode, check_node, nominated_pods_on


def fit_counts(cluster: Cluster, scheduler: ProfileScheduler, pods: Sequence[PodInfo]) -> FitCounts | None:
    """None if it takes a trial to find out."""
    first = pods[0]
    if not scheduler.has_only_in_tree_plugins or len(cluster.nodes) == 0:
        return None
    if len(cluster.nominations) and any(cluster.nominations.node_for(pod) for pod in pods):
        return None
    if first.pin or first.spec.resource_claims or any(pod.signature is not first.signature for pod in pods):
        return None
    cycle = CycleState()
    try:
        prefilter = run_pre_filter(scheduler.profile, cycle, first, cluster.nodes)
        if not prefilter.status.is_success or prefilter.node_names is not None:
            return None
        steps = [step for step in scheduler.profile.filter if step.name not in cycle.skip_filter]
        by_scope: dict[Scope, list[FilterStep]] = {Scope.NODE: [], Scope.AMOUNTS: []}
        for step in steps:
            scope = step.scope_for(first)
            if scope not in by_scope or step.filter_node is None:
                return None
            by_scope[scope].append(step)
        return FitCounts(cluster, cycle, pods, by_scope[Scope.NODE], by_scope[Scope.AMOUNTS])
    except (PluginError, PluginFault):
        return None


class FitCounts:
    def __init__(
        self,
        cluster: Cluster,
        cycle: CycleState,
        pods: Sequence[PodInfo],
        node_steps: Sequence[FilterStep],
        amount_steps: Sequence[FilterStep],
    ) -> None:
        self._cluster = cluster
        self._cycle = cycle
        self._pods = pods
        self._steps = amount_steps
        self._by_code: dict[int, int] = {}
        self._nominated = self._nominated_pods()
        self._open = self._let_in(node_steps)
        self._place = cluster.table.journal.pods.end
        self._counts: IntArray = np.zeros(len(self._open), dtype=np.int64)
        self._count(np.flatnonzero(self._open))

    def within(self, rows: RowArray | None = None) -> int:
        """How many pods of the group fit on these rows, or on all; not more than there are."""
        self._catch_up()
        counts = self._counts if rows is None else self._counts[rows]
        return min(int(counts.sum()), len(self._pods))

    def _let_in(self, steps: Sequence[FilterStep]) -> BoolArray:
        """(n_nodes,) whose node's object is no obstacle."""
        nodes = self._cluster.nodes
        found = np.ones(len(nodes), dtype=np.bool_)
        for step in steps:
            verdicts = ask(step, self._cycle, self._pods[0], nodes)
            if verdicts.errors:
                raise PluginError(step.name, "a node cannot be judged")
            if len(verdicts.rejected):
                found &= ~verdicts.rejected
        return found

    def _nominated_pods(self) -> dict[int, list[PodInfo]]:
        """By row, the pods of others that are nominated there, and that those of the group must not overtake."""
        cluster = self._cluster
        rows = cluster.table.rows
        found = {
            rows[name]: nominated_pods_on(cluster, self._pods[0], name)
            for name in cluster.nominations.node_names()
            if name in rows
        }
        return {row: pods for row, pods in found.items() if pods}

    def _catch_up(self) -> None:
        log = self._cluster.table.journal.pods
        if self._place == log.end:
            return
        if log.since(self._place) is None:
            rows = np.flatnonzero(self._open)
        else:
            rows = np.unique(log.rows_since(self._place))
            rows = rows[self._open[rows]]
        self._place = log.end
        self._count(rows)

    def _count(self, rows: RowArray) -> None:
        codes = self._cluster.table.amount_codes
        for row in rows.tolist():
            if row in self._nominated:
                self._counts[row] = self._fitting(row)
                continue
            code = codes.code(row)
            known = self._by_code.get(code)
            if known is None:
                known = self._by_code[code] = self._fitting(row)
            self._counts[row] = known

    def _fitting(self, row: int) -> int:
        """On one node, by imagining one after another there."""
        node = ImaginedNode(NodeRow(self._cluster.table, row))
        for other in self._nominated.get(row, ()):
            node.bring(other)
        for n, pod in enumerate(self._pods):
            if not check_node(self._steps, self._cycle, pod, node).is_success:
                return n
            node.bring(pod)
        return len(self._pods)
