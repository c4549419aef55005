"""One pod's cycle, from the queue's door to the choice of a node.

    pre_enqueue → prefilter → (nominated node first) filter → score → select
                                        └─ no node fits → postfilter: preemption

Beside this file stands one file per extension point. Reserving, permitting and binding what was decided belong to the
loop that runs cycles one after another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.groups import GroupCycle
from kubesched.framework.nodes import RowArray
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import PostFilterResult, Scores
from kubesched.framework.status import PluginFault, Status
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.view import TableView
from kubesched.scheduler.engine.class_cache import ClassCache
from kubesched.scheduler.engine.class_cache.asked_anew import AskingSearch
from kubesched.scheduler.engine.class_cache.failed_class import FailedClass
from kubesched.scheduler.engine.class_cache.pod_class import PodClass
from kubesched.scheduler.engine.filter import FilterOutcome, cut_search, feasible_nodes_to_find
from kubesched.scheduler.engine.observations import ClassMisses, Observe, PluginBroke
from kubesched.scheduler.engine.plugin_call import PluginError
from kubesched.scheduler.engine.postfilter import Diagnosis, absent_status, run_post_filter
from kubesched.scheduler.engine.preemption import Preemption
from kubesched.scheduler.engine.prefilter import PreFilterOutcome, run_pre_filter
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.engine.row_check import (
    check_row_beside,
    check_row_with_nominated,
    nominated_pods_on,
    run_filters_with_nominated,
)
from kubesched.scheduler.engine.score import ScoreOutcome, TieBreak, run_scores

if TYPE_CHECKING:
    from kubesched.scheduler.engine.handle import EngineHandle

NO_NODES = "no nodes available to schedule pods"

_NOT_BEGUN = CycleState()
"""Until a class gives its own, or plugins are asked: most decisions come from a class."""

_MISSES_TO_TELL = 1000
_STORM = 0.9
"""From this share of decisions that no class could make, a warning is due."""


@dataclass(frozen=True, slots=True)
class MemberTrial:
    """What is different for a pod that is placed for trial, as one of a group."""

    group: GroupCycle
    within: RowArray | None = None
    """Only these nodes count, in the order in which they are searched; None: all."""
    post_filter: bool = True
    """Whether PostFilter runs where no node fits."""
    reasons: bool = True
    """Whether anybody asks why no node fits."""


@dataclass(slots=True, repr=False)
class Decision:
    """What was decided for a pod, with everything it was decided on."""

    pod: PodInfo
    cycle: CycleState
    node_names: Sequence[str]
    """Of all nodes, by row."""
    node_name: str = ""
    """Where the pod goes; empty if nowhere."""
    prefilter: PreFilterOutcome | None = None
    filtered: FilterOutcome | None = None
    scored: ScoreOutcome | None = None
    ranked: tuple[RowArray, Scores] | None = None
    """Feasible rows and their totals, where a class decided; `scored` has them otherwise."""
    best_rows: RowArray | None = None
    """The nodes that are equally good; the chosen one is among them."""
    nominated: bool = False
    """The pod took the node it was nominated to, without looking further."""
    diagnosis: Diagnosis | None = None
    post_filter: PostFilterResult | None = None
    error: str = ""
    """A plugin broke, and this is what it said."""
    n_evaluated: int = 0
    """How many nodes were looked at."""
    n_feasible: int = 0
    needs_reserve: bool = True
    """Plugins may have something to reserve, or to do before the pod is bound."""

    def __repr__(self) -> str:
        return f"<Decision: {self.pod.key} -> {self.node_name or 'no node'}>"

    @property
    def best(self) -> tuple[str, ...]:
        """The names of the nodes that are equally good, sorted."""
        return () if self.best_rows is None else tuple(sorted(self.node_names[row] for row in self.best_rows.tolist()))

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
        """Whom to evict where, if preemption found a way."""
        return self.cycle.find(Preemption)


class ProfileScheduler:
    """Decides for pods of one profile, on one cluster. Remembers only where the last search ended."""

    def __init__(
        self,
        cluster: Cluster,
        profile: Profile,
        tie_break: TieBreak,
        percentage: int,
        handle: EngineHandle | None = None,
        *,
        keeps_classes: bool = False,
    ) -> None:
        self.cluster = cluster
        self.profile = profile
        self.handle = handle
        """What the profile's plugins were built with."""
        self.tie_break = tie_break
        self.percentage = percentage
        """Of the nodes, to find before they are scored; 0 is for the size of the cluster to say."""
        self.next_start = 0
        """Where the next search begins, if it is cut short."""
        self.has_only_in_tree_plugins = False
        """Whether it is known of every plugin what it looks at."""
        self.compares_nodes = bool(profile.score)
        """Whether a search goes on after the first feasible node: a plugin scores nodes, or an extender filters."""
        self._classes = ClassCache(cluster, profile) if keeps_classes else None
        self.n_decided_by_class = 0
        """How many decisions came from what was kept for pods with the same signature."""
        self._n_missed = 0
        self._n_by_class_then = 0
        """Decisions that no class could make, and those that one could when these were last counted from nothing."""

    def take_profile(self, profile: Profile) -> None:
        """Plugins were replaced: nothing that the others said counts any more."""
        self.profile = profile
        self.has_only_in_tree_plugins = False
        self.compares_nodes |= bool(profile.score)
        if self._classes is not None:
            self._classes = ClassCache(self.cluster, profile)

    def class_of(self, pod: PodInfo) -> PodClass | None:
        """What is kept for pods with this signature, prepared now if it was not; None if nothing can be."""
        return None if self._classes is None else self._classes.find(pod, at_once=True)

    def decide(self, pod: PodInfo, *, complete: bool = False) -> Decision:
        """Where the pod goes, or why nowhere. `complete` looks at every node and scores even a single one, so that
        the answer can be explained; what is chosen is the same."""
        return self._decided(pod, complete, None)

    def decide_in_trial(self, pod: PodInfo, trial: MemberTrial) -> Decision:
        """The same for one of a group."""
        return self._decided(pod, False, trial)

    def _decided(self, pod: PodInfo, complete: bool, trial: MemberTrial | None) -> Decision:
        decision = Decision(pod, _NOT_BEGUN, self.cluster.table.names)
        start = self.next_start
        observers = self.profile.observers
        classes = None if complete or observers.wants_scores else self._classes
        try:
            if classes is not None and self._decide_by_class(decision, classes, trial):
                if trial is not None and decision.node_name:
                    decision.cycle.put(trial.group)
                return decision
        except (PluginError, PluginFault):
            decision = self._without_class(pod, start)
        decision.cycle = CycleState()
        if trial is not None:
            decision.cycle.put(trial.group)
        try:
            self._decide(decision, complete, trial)
        except PluginError as bug:
            decision.error = bug.message
            if observers.trouble is not None:
                observers.trouble(PluginBroke(bug, pod))
        if classes is not None and observers.trouble is not None:
            self._count_miss(observers.trouble)
        return decision

    def _count_miss(self, tell: Observe) -> None:
        """Now and then a class does not answer; if nearly none does, that is worth a warning."""
        self._n_missed += 1
        if self._n_missed < _MISSES_TO_TELL:
            return
        n_decided = self._n_missed + self.n_decided_by_class - self._n_by_class_then
        if n_decided * _STORM <= self._n_missed:
            tell(ClassMisses(self.profile.scheduler_name, self._n_missed, n_decided))
        self._n_missed, self._n_by_class_then = 0, self.n_decided_by_class

    def _without_class(self, pod: PodInfo, start: int) -> Decision:
        """A plugin broke over what is kept for its signature, where nodes are asked about that this pod need not be:
        what becomes of the pod is to be found out without it."""
        assert self._classes is not None
        self._classes.forget(pod)
        self.next_start = start
        return Decision(pod, _NOT_BEGUN, self.cluster.table.names)

    def filter_nodes(self, cycle: CycleState, pod: PodInfo, nodes: TableView) -> FilterOutcome:
        """Which of these nodes let the pod in, after PreFilter. Errors are raised."""
        return run_filters_with_nominated(self.cluster, self.profile, cycle, pod, nodes)

    def _decide(self, decision: Decision, complete: bool, trial: MemberTrial | None) -> None:
        cluster, pod, cycle = self.cluster, decision.pod, decision.cycle
        nodes = cluster.nodes
        within = None if trial is None else trial.within
        if len(nodes) == 0:
            return
        decision.prefilter = run_pre_filter(self.profile, cycle, pod, nodes)
        if not decision.prefilter.status.is_success:
            self._run_post_filter(decision, Diagnosis(nodes, decision.prefilter, within=within), trial)
            return
        if self._take_nominated(decision, nodes, within) and not complete:
            return
        searched = self._searched(decision.prefilter, nodes, within)
        if len(searched) == 1 and not complete and self._take_only(decision, int(searched.rows[0])):
            return
        filtered = self.filter_nodes(cycle, pod, searched)
        decision.filtered = filtered
        whole_search = searched is nodes or (within is not None and decision.prefilter.node_names is None)
        feasible, decision.n_evaluated = self.feasible_rows(
            filtered, whole_search=whole_search, complete=complete, within=within
        )
        decision.n_feasible = len(feasible)
        if len(feasible) == 0:
            if self._classes is not None and not complete and within is None:
                failed = self._classes.keep_failed(pod, cycle, decision.prefilter, filtered)
                if failed is not None:
                    cycle.put(failed.plans)
            self._run_post_filter(decision, Diagnosis(nodes, decision.prefilter, filtered, within=within), trial)
            return
        self._choose(decision, feasible, complete)

    def _take_nominated(self, decision: Decision, nodes: TableView, within: RowArray | None) -> bool:
        """The node that was freed for this pod comes first, before any search."""
        row = nodes.row_of(self.cluster.nominations.node_for(decision.pod))
        if row is None or (within is not None and row not in within):
            return False
        return self._takes(decision, row)

    def _takes(self, decision: Decision, row: int) -> bool:
        """Whether the node that was freed for the pod lets it in; then that is the decision."""
        status = check_row_with_nominated(self.cluster, self.profile, decision.cycle, decision.pod, row)
        if not status.is_success:
            return False
        decision.nominated = True
        decision.node_name = self.cluster.table.names[row]
        decision.best_rows = np.array([row])
        decision.n_evaluated = decision.n_feasible = 1
        return True

    def _take_only(self, decision: Decision, row: int) -> bool:
        """The search is about a single node (a daemon's pod, say): asked directly, it needs no table."""
        if not check_row_with_nominated(self.cluster, self.profile, decision.cycle, decision.pod, row).is_success:
            return False
        decision.n_evaluated = decision.n_feasible = 1
        self.choose_among(decision, np.array([row]))
        return True

    def _searched(self, prefilter: PreFilterOutcome, nodes: TableView, within: RowArray | None) -> TableView:
        if prefilter.node_names is None:
            return nodes if within is None else nodes.take(np.sort(within))
        rows = (nodes.row_of(name) for name in sorted(prefilter.node_names))
        found = np.array([row for row in rows if row is not None], dtype=np.intp)
        return nodes.take(found if within is None else found[np.isin(found, within)])

    def feasible_rows(
        self, filtered: FilterOutcome, *, whole_search: bool, complete: bool, within: RowArray | None = None
    ) -> tuple[RowArray, int]:
        """The rows to choose from, and how many were looked at to find them."""
        rows = filtered.nodes.rows
        if complete:
            return rows[filtered.fits], len(rows)
        enough = feasible_nodes_to_find(self.percentage, len(rows)) if self.compares_nodes else 1
        if not whole_search:
            return rows[filtered.fits][:enough], len(rows)
        order, fits = self.cluster.rows_in_order, filtered.fits
        if within is not None:
            order = within
            fits = np.zeros(len(self.cluster.nodes), dtype=np.bool_)
            fits[rows] = filtered.fits
        if enough >= len(rows):
            return order[fits[order]], len(rows)
        found, n_looked_at = cut_search(order, fits, self.next_start, enough)
        self.next_start = (self.next_start + n_looked_at) % len(rows)
        return found, n_looked_at

    def _choose(self, decision: Decision, feasible: RowArray, complete: bool) -> None:
        nodes = TableView(self.cluster.table, feasible)
        if len(feasible) == 1 and not complete:
            self.choose_among(decision, feasible)
            return
        scored = decision.scored = run_scores(self.profile, decision.cycle, decision.pod, nodes)
        if decision.nominated:
            return
        self.choose_among(decision, feasible[scored.total == scored.total.max()])

    def choose_among(self, decision: Decision, top: RowArray) -> None:
        names = self.cluster.table.names
        row = top.item(0) if len(top) == 1 else self.tie_break.choose_row(top, names)
        decision.node_name = names[row]
        decision.best_rows = top

    def _decide_by_class(self, decision: Decision, classes: ClassCache, trial: MemberTrial | None) -> bool:
        """Decides from what is kept for the pod's signature; False if that does not answer: nothing kept or fitting."""
        pod, nominations = decision.pod, self.cluster.nominations
        within = None if trial is None else trial.within
        nominated_node = nominations.node_for(pod)
        if nominated_node:
            return within is None and self._take_nominated_by_class(decision, classes, nominated_node)
        failed = classes.find_failed(pod) if within is None else None
        if failed is not None:
            n_open = len(failed.open_rows)
            if n_open == 0:
                self._fail_by_class(decision, failed, trial)
                return True
            if n_open == 1:
                self._take_open_row(decision, failed)
                return True
        known = classes.find(pod)
        if known is None or (within is not None and (known.has_fresh or pod.pin)):
            return False
        if pod.pin:
            return self._take_pinned(decision, known)
        n = len(known.order) if within is None else len(within)
        enough = feasible_nodes_to_find(self.percentage, n) if self.compares_nodes else 1
        start = self.next_start % n if enough < n else 0
        asked: PodClass | AskingSearch = known
        if known.has_fresh:
            asked = AskingSearch(known, pod)
            if trial is not None:
                asked.cycle.put(trial.group)
            if not asked.prepare():
                return False
        closed = self._places_of_nominated_pods(known, asked.cycle, pod) if nominations.node_by_uid else ()
        if isinstance(asked, PodClass):
            rows, n_looked_at = asked.search(start, enough, closed, within)
        else:
            rows, n_looked_at = asked.search(start, enough, closed)
        n_found = len(rows)
        if n_found == 0:
            return trial is not None and not trial.reasons and not trial.post_filter
        if enough < n:
            self.next_start = (start + n_looked_at) % n
        self.n_decided_by_class += 1
        decision.cycle = known.cycle.fork() if asked is known else asked.cycle
        decision.n_evaluated, decision.n_feasible = n_looked_at, n_found
        decision.needs_reserve = known.needs_reserve
        if n_found > 1:
            totals = asked.totals(rows)
            decision.ranked = rows, totals
            rows = rows.compress(totals == totals.item(totals.argmax()))
        self.choose_among(decision, rows)
        return True

    def _take_nominated_by_class(self, decision: Decision, classes: ClassCache, node_name: str) -> bool:
        """Its class fits nowhere: what was prepared for that serves to ask the node that was freed for this pod."""
        row = self.cluster.table.rows.get(node_name)
        failed = None if row is None else classes.find_failed_signature(decision.pod)
        if row is None or failed is None:
            return False
        decision.cycle = failed.cycle.fork()
        if self._takes(decision, row):
            self.n_decided_by_class += 1
            decision.prefilter = failed.prefilter
            return True
        return False

    def _take_pinned(self, decision: Decision, known: PodClass) -> bool:
        """The search is about the one node that the pod names; False if it does not fit there, or if what is known of
        pods with the same signature does not tell."""
        row = self.cluster.table.rows.get(decision.pod.pin)
        if row is None or known.looks_at_cluster or not known.lets_in(row):
            return False
        if nominated_pods_on(self.cluster, decision.pod, decision.pod.pin):
            return False
        self.n_decided_by_class += 1
        decision.cycle = known.cycle.fork()
        decision.n_evaluated = decision.n_feasible = 1
        decision.needs_reserve = known.needs_reserve
        decision.node_name = decision.pod.pin
        decision.best_rows = np.array([row])
        return True

    def _fail_by_class(self, decision: Decision, failed: FailedClass, trial: MemberTrial | None) -> None:
        """Its class fits nowhere, and still do not: for the same reasons."""
        self.n_decided_by_class += 1
        decision.prefilter = failed.prefilter
        if failed.told is not None and trial is None and self._nobody_watches():
            decision.cycle = failed.cycle
            decision.diagnosis, decision.post_filter = failed.told
            if failed.plans.draw is not None:
                failed.plans.draw()
            return
        decision.cycle = failed.cycle.fork()
        if trial is not None:
            decision.cycle.put(trial.group)
        decision.cycle.put(failed.plans)
        rejections = failed.rejections
        diagnosis = Diagnosis(self.cluster.nodes, failed.prefilter, rejections, messages=rejections.messages)
        self._run_post_filter(decision, diagnosis, trial)
        result = decision.post_filter
        if trial is None and result is not None and result.lasts:
            failed.told = diagnosis, result

    def _nobody_watches(self) -> bool:
        """Whether single steps are neither followed nor measured: then steps that change nothing can be skipped."""
        profile = self.profile
        return profile.watch is None and profile.observers.steps is None

    def _take_open_row(self, decision: Decision, failed: FailedClass) -> None:
        """Only one node has let pods of the class in since it fitted nowhere: there is nothing to compare."""
        (row,) = failed.open_rows
        self.n_decided_by_class += 1
        decision.cycle = failed.cycle.fork()
        decision.n_evaluated, decision.n_feasible = len(self.cluster.nodes), 1
        decision.needs_reserve = failed.needs_reserve
        decision.node_name = self.cluster.table.names[row]
        decision.best_rows = np.array([row])

    def _places_of_nominated_pods(self, known: PodClass, cycle: CycleState, pod: PodInfo) -> Sequence[int]:
        """The rows that are nominated to others beside whom the pod would not fit."""
        closed = []
        for node_name in self.cluster.nominations.node_names():
            row = self.cluster.table.rows.get(node_name)
            if row is None or not known.lets_in(row):
                continue
            nominated_pods = nominated_pods_on(self.cluster, pod, node_name)
            if nominated_pods:
                status = check_row_beside(self.cluster, self.profile, cycle, pod, row, nominated_pods)
                if not status.is_success:
                    closed.append(row)
        return closed

    def _run_post_filter(self, decision: Decision, diagnosis: Diagnosis, trial: MemberTrial | None = None) -> None:
        decision.diagnosis = diagnosis
        if not self.profile.post_filter or (trial is not None and not trial.post_filter):
            return
        result = run_post_filter(self.profile, decision.cycle, decision.pod, diagnosis)
        decision.post_filter = result
        diagnosis.post_filter_message = result.status.message
