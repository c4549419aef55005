"""One pod's cycle, from the queue's door to the choice of a node.

    pre_enqueue → prefilter → (nominated node first) filter → score → select
                                        └─ no node fits → postfilter: make room by preemption

Beside this file stands one file per stage. Reserving, permitting and binding what was decided belong to the loop that
runs cycles one after another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kubesched.cluster import Cluster
from kubesched.cluster.view import TableView
from kubesched.engine.diagnosis import Diagnosis, absent_status
from kubesched.engine.filter import FilterOutcome
from kubesched.engine.handle import EngineHandle
from kubesched.engine.nominated import run_filters_with_nominated
from kubesched.engine.plugin_call import PluginError
from kubesched.engine.postfilter import run_post_filter
from kubesched.engine.preemption import Preemption
from kubesched.engine.prefilter import PreFilterOutcome, run_pre_filter
from kubesched.engine.profile import Profile
from kubesched.engine.row_check import check_row_with_nominated
from kubesched.engine.sampling import cut_search, feasible_nodes_to_find
from kubesched.engine.score import ScoreOutcome, run_scores
from kubesched.engine.select import TieBreak
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import RowArray
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import PostFilterResult
from kubesched.framework.status import Status

NO_NODES = "no nodes available to schedule pods"


@dataclass(slots=True)
class Decision:
    """What was decided for a pod, with everything it was decided on."""

    pod: PodInfo
    cycle: Cycle
    node_name: str = ""
    """Where the pod goes; empty if nowhere."""
    prefilter: PreFilterOutcome | None = None
    filtered: FilterOutcome | None = None
    scored: ScoreOutcome | None = None
    best: tuple[str, ...] = ()
    """The nodes that are equally good; `node_name` is one of them."""
    nominated: bool = False
    """The pod took the node it was nominated to, without looking further."""
    diagnosis: Diagnosis | None = None
    post_filter: PostFilterResult | None = None
    error: str = ""
    """A plugin broke, and this is what it said."""
    n_feasible: int = 0

    @property
    def message(self) -> str:
        """Why the pod goes nowhere; empty if it goes somewhere."""
        if self.error:
            return self.error
        if self.diagnosis is not None:
            return self.diagnosis.message()
        return "" if self.node_name else NO_NODES

    def diagnosis_of_absent(self) -> Status:
        """The status of the nodes that the search left out."""
        assert self.prefilter is not None
        return absent_status(self.prefilter)

    @property
    def preemption(self) -> Preemption | None:
        """How room can be made, if preemption found a way."""
        return self.cycle.find(Preemption)


class Scheduler:
    """Decides for pods of one profile, on one cluster. Remembers only where the last search ended."""

    def __init__(
        self,
        cluster: Cluster,
        profile: Profile,
        tie_break: TieBreak,
        percentage: int,
        handle: EngineHandle | None = None,
    ) -> None:
        self.cluster = cluster
        self.profile = profile
        self.handle = handle
        """What the profile's plugins were built with."""
        self.tie_break = tie_break
        self._percentage = percentage
        self._next_start = 0

    def decide(self, pod: PodInfo, *, complete: bool = False) -> Decision:
        """Where the pod goes, or why nowhere. `complete` looks at every node and scores even a single one, so that
        the answer can be explained; what is chosen is the same."""
        decision = Decision(pod, Cycle())
        try:
            self._decide(decision, complete)
        except PluginError as bug:
            decision.error = bug.message
        return decision

    def _decide(self, decision: Decision, complete: bool) -> None:
        cluster, pod, cycle = self.cluster, decision.pod, decision.cycle
        nodes = cluster.nodes
        if len(nodes) == 0:
            return
        decision.prefilter = run_pre_filter(self.profile, cycle, pod, nodes)
        if not decision.prefilter.status.is_success:
            self._make_room(decision, Diagnosis(nodes, decision.prefilter))
            return
        if self._take_nominated(decision, nodes) and not complete:
            return
        searched = self._searched(decision.prefilter, nodes)
        filtered = run_filters_with_nominated(cluster, self.profile, cycle, pod, searched)
        decision.filtered = filtered
        feasible = self._feasible_rows(filtered, whole_search=searched is nodes, complete=complete)
        decision.n_feasible = len(feasible)
        if len(feasible) == 0:
            self._make_room(decision, Diagnosis(nodes, decision.prefilter, filtered))
            return
        self._choose(decision, feasible, complete)

    def _take_nominated(self, decision: Decision, nodes: TableView) -> bool:
        """The node that was freed for this pod comes first, before any search."""
        row = nodes.row_of(decision.pod.pod.status.nominated_node_name)
        if row is None:
            return False
        status = check_row_with_nominated(self.cluster, self.profile, decision.cycle, decision.pod, row)
        if not status.is_success:
            return False
        decision.nominated = True
        decision.node_name = self.cluster.table.names[row]
        decision.best = (decision.node_name,)
        decision.n_feasible = 1
        return True

    def _searched(self, prefilter: PreFilterOutcome, nodes: TableView) -> TableView:
        if prefilter.node_names is None:
            return nodes
        rows = (nodes.row_of(name) for name in sorted(prefilter.node_names))
        return nodes.take(np.array([row for row in rows if row is not None], dtype=np.intp))

    def _feasible_rows(self, filtered: FilterOutcome, *, whole_search: bool, complete: bool) -> RowArray:
        rows = filtered.nodes.rows
        if complete:
            return rows[filtered.fits]
        enough = feasible_nodes_to_find(self._percentage, len(rows)) if self.profile.score else 1
        if not whole_search or enough >= len(rows):
            return rows[filtered.fits][:enough]
        found, n_looked_at = cut_search(self.cluster.rows_in_order, filtered.fits, self._next_start, enough)
        self._next_start = (self._next_start + n_looked_at) % len(rows)
        return found

    def _choose(self, decision: Decision, feasible: RowArray, complete: bool) -> None:
        nodes = TableView(self.cluster.table, feasible)
        if len(feasible) == 1 and not complete:
            decision.node_name = nodes.names[0]
            decision.best = (decision.node_name,)
            return
        scored = decision.scored = run_scores(self.profile, decision.cycle, decision.pod, nodes)
        if decision.nominated:
            return
        top = feasible[scored.total == scored.total.max()]
        names = self.cluster.table.names
        decision.best = tuple(sorted(names[row] for row in top.tolist()))
        decision.node_name = self.tie_break.choose(decision.best)

    def _make_room(self, decision: Decision, diagnosis: Diagnosis) -> None:
        decision.diagnosis = diagnosis
        if not self.profile.post_filter:
            return
        result = run_post_filter(self.profile, decision.cycle, decision.pod, diagnosis)
        decision.post_filter = result
        diagnosis.post_filter_message = result.status.message
