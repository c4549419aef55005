"""What the plugins say of the cluster as it is now, for a pod whose cycle may pause.

A cycle that waited looks again: nodes may have come, gone or filled up. Nodes are kept by name across a pause, as rows
move when a node leaves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import RowArray
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Status
from kubesched.scheduler.cluster.view import TableView
from kubesched.scheduler.engine.cycle import Decision, ProfileScheduler
from kubesched.scheduler.engine.extender.diagnosis import ExtendedDiagnosis
from kubesched.scheduler.engine.prefilter import run_pre_filter


@dataclass(slots=True)
class Look:
    """A decision under way, and the nodes it may choose from."""

    decision: Decision
    nodes: TableView
    feasible: RowArray = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    searched: frozenset[str] | None = None
    """The nodes that were looked at, if the search was cut short: nothing is known of the others."""

    @property
    def names(self) -> list[str]:
        """Of the feasible nodes."""
        names = self.decision.node_names
        return [names[row] for row in self.feasible.tolist()]

    def keep(self, names: Collection[str]) -> None:
        """Leaves only these of the feasible nodes."""
        kept = set(names)
        known = self.decision.node_names
        self.feasible = np.array([row for row in self.feasible.tolist() if known[row] in kept], dtype=np.intp)

    def diagnosis(self, extended: Mapping[str, Status], *, dropped_nodes: bool) -> ExtendedDiagnosis:
        prefilter = self.decision.prefilter
        assert prefilter is not None
        return ExtendedDiagnosis(
            self.nodes, prefilter, self.decision.filtered, extended=extended, dropped_nodes=dropped_nodes
        )


def look_at_all(scheduler: ProfileScheduler, pod: PodInfo) -> Look:
    """A search as any pod's: in a large cluster it ends when enough nodes are found."""
    look = look_at(scheduler, pod, None)
    filtered = look.decision.filtered
    if filtered is None or not filtered.fits.any():
        return look
    assert look.decision.prefilter is not None
    is_whole = look.decision.prefilter.node_names is None
    start = scheduler.next_start
    look.feasible, look.decision.n_evaluated = scheduler.feasible_rows(filtered, whole_search=is_whole, complete=False)
    if len(look.feasible) < np.count_nonzero(filtered.fits):
        order = np.roll(scheduler.cluster.rows_in_order, -start) if is_whole else filtered.nodes.rows
        end = int(np.flatnonzero(order == look.feasible[-1])[0]) + 1
        look.searched = frozenset(look.decision.node_names[row] for row in order[:end].tolist())
    return look


def look_at(scheduler: ProfileScheduler, pod: PodInfo, names: Collection[str] | None) -> Look:
    """All nodes, or these as far as they are there: which of them let the pod in?"""
    cluster = scheduler.cluster
    nodes = cluster.nodes
    decision = Decision(pod, CycleState(), cluster.table.names)
    look = Look(decision, nodes)
    if len(nodes) == 0:
        return look
    decision.prefilter = run_pre_filter(scheduler.profile, decision.cycle, pod, nodes)
    if not decision.prefilter.status.is_success:
        return look
    wanted = decision.prefilter.node_names
    if wanted is None or names is None:
        wanted = wanted if names is None else frozenset(names)
    else:
        wanted = wanted & frozenset(names)
    searched = nodes if wanted is None else nodes.take(_rows(nodes, sorted(wanted)))
    filtered = scheduler.filter_nodes(decision.cycle, pod, searched)
    decision.filtered = filtered
    decision.n_evaluated = len(searched)
    look.feasible = filtered.nodes.rows[filtered.fits]
    return look


def _rows(nodes: TableView, names: Sequence[str]) -> RowArray:
    return np.array([row for name in names if (row := nodes.row_of(name)) is not None], dtype=np.intp)
