"""A pod's cycle with extenders: the same steps as without, with pauses in which extenders are asked.

    filter → extenders filter → (more than one node left) extenders prioritize → score → select
      └─ no node fits → postfilter → extenders look at the victims

While it pauses, other pods are scheduled. So after every pause the plugins are asked again, on the cluster as it is
then (`look_at`), and only nodes that both they and the extenders accept are taken; if others took all of these in the
meantime, the cycle starts over. It resumes when its answers are there; only so many cycles are under way at once
(`PausedCycles`): a pod that comes later stands in line, by the order of the queue, and begins when one of them ends.
All of them are in flight for the queue.

An extender's reason for a node stands beside those of the plugins (`ExtendedDiagnosis`); a node that it dropped without
a reason counts as one that was not evaluated.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush

import numpy as np

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.effects import CallExtender
from kubesched.framework.groups import GroupCycle
from kubesched.framework.nodes import RowArray
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Code, Status
from kubesched.scheduler.cluster.view import TableView
from kubesched.scheduler.engine.cycle import Decision, ProfileScheduler
from kubesched.scheduler.engine.extender.http_extender import EXTENDER, Consultation, ExtenderError, HTTPExtender
from kubesched.scheduler.engine.extender.verbs import (
    ExtenderScores,
    add_scores,
    ask_to_filter,
    ask_to_preempt,
    ask_to_prioritize,
)
from kubesched.scheduler.engine.failure import FailureHandler
from kubesched.scheduler.engine.observations import PluginBroke
from kubesched.scheduler.engine.outbox import Outbox
from kubesched.scheduler.engine.plugin_call import PluginError, SearchError
from kubesched.scheduler.engine.postfilter import Diagnosis, run_post_filter
from kubesched.scheduler.engine.preemption import CandidateReview
from kubesched.scheduler.engine.prefilter import run_pre_filter
from kubesched.scheduler.engine.score import run_scores
from kubesched.scheduler.queue import QueuedPodInfo


@dataclass(slots=True)
class ExtendedDiagnosis(Diagnosis):
    extended: Mapping[str, Status] = field(default_factory=dict)
    """By node name; such a node need not exist."""
    dropped_nodes: bool = False
    """Whether extenders left fewer nodes than they were asked about."""

    def status_of(self, node_name: str) -> Status:
        if node_name in self.extended:
            return self.extended[node_name]
        status = Diagnosis.status_of(self, node_name)
        return self.absent if status.is_success else status

    def explicit(self) -> Mapping[str, Status]:
        return {**Diagnosis.explicit(self), **self.extended}

    def resolvable_rows(self) -> RowArray:
        hopeful = np.zeros(len(self.cluster_nodes), dtype=np.bool_)
        hopeful[Diagnosis.resolvable_rows(self)] = True
        for name, status in self.extended.items():
            row = self.cluster_nodes.row_of(name)
            if row is not None:
                hopeful[row] = status.code is Code.UNSCHEDULABLE
        return np.flatnonzero(hopeful)

    def unschedulable_plugins(self) -> frozenset[str]:
        found = Diagnosis.unschedulable_plugins(self)
        return found | {EXTENDER} if self.dropped_nodes else found

    def _reason_counts(self, n_nodes: int) -> dict[str, int]:
        explicit = self.explicit()
        counts = Counter(reason for status in explicit.values() for reason in status.reasons)
        if len(explicit) < n_nodes:
            for reason in self.absent.reasons:
                counts[reason] += n_nodes - len(explicit)
        return counts


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


def look_at_all(scheduler: ProfileScheduler, pod: PodInfo, group: GroupCycle | None = None) -> Look:
    """A search as any pod's: in a large cluster it ends when enough nodes are found."""
    look = look_at(scheduler, pod, None, group)
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


def look_at(
    scheduler: ProfileScheduler, pod: PodInfo, names: Collection[str] | None, group: GroupCycle | None = None
) -> Look:
    """All nodes, or these as far as they are there: which of them let the pod in?"""
    cluster = scheduler.cluster
    nodes = cluster.nodes
    decision = Decision(pod, CycleState(), cluster.table.names)
    if group is not None:
        decision.cycle.put(group)
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


class ExtendedCycle:
    """The cycle of one pod and the extenders that it interests. `pod` is replaced if it changed during a pause."""

    def __init__(self, scheduler: ProfileScheduler, extenders: Sequence[HTTPExtender], pod: PodInfo) -> None:
        self.pod = pod
        self._scheduler = scheduler
        self._cluster = scheduler.cluster
        self._extenders = extenders

    def decide(self) -> Consultation[Decision]:
        """As `ProfileScheduler.decide`, with pauses."""
        decision: Decision | None = None
        while decision is None:
            try:
                decision = yield from self._attempt()
            except (PluginError, SearchError, ExtenderError) as failure:
                decision = Decision(self.pod, CycleState(), self._cluster.table.names)
                decision.error = failure.message
                tell = self._scheduler.profile.observers.trouble
                if tell is not None and isinstance(failure, PluginError):
                    tell(PluginBroke(failure, self.pod))
        return decision

    def _attempt(self) -> Consultation[Decision | None]:
        """None if what was found is no longer true."""
        decision = yield from self._take_nominated()
        if decision is not None:
            return decision
        look = look_at_all(self._scheduler, self.pod)
        if look.decision.prefilter is None:
            return look.decision  # there are no nodes
        if not len(look.feasible):
            return (yield from self._preempt(look, {}, dropped_nodes=False))
        asked = look.names
        passed = yield from ask_to_filter(self._extenders, self._cluster, self.pod, asked)
        dropped = len(passed.names) != len(asked)
        if passed.was_asked:
            look = self._look_again(look)
        if not passed.names:
            return (yield from self._preempt(look, passed.statuses, dropped_nodes=dropped))
        look.keep(passed.names)
        return (yield from self._choose(look))

    def _take_nominated(self) -> Consultation[Decision | None]:
        """The node that was freed for this pod comes first; an extender that fails here is asked again later."""
        name = self._cluster.nominations.node_for(self.pod)
        if not name:
            return None
        look = look_at(self._scheduler, self.pod, (name,))
        if not len(look.feasible):
            return None
        try:
            passed = yield from ask_to_filter(self._extenders, self._cluster, self.pod, (name,))
        except ExtenderError:
            return None
        if passed.was_asked:
            look = look_at(self._scheduler, self.pod, (name,))
        look.keep(passed.names)
        if not len(look.feasible):
            return None
        look.decision.nominated = True
        return self._taken(look)

    def _choose(self, look: Look) -> Consultation[Decision | None]:
        given: list[ExtenderScores] = []
        if len(look.feasible) > 1:
            names = look.names
            given = yield from ask_to_prioritize(self._extenders, self._cluster, self.pod, names)
            if any(extender.config.prioritize_verb for extender in self._extenders):
                look = self._look_again(look)
                look.keep(names)
        if len(look.feasible) <= 1:
            return self._taken(look) if len(look.feasible) else None
        decision = look.decision
        nodes = TableView(self._cluster.table, look.feasible)
        scored = add_scores(run_scores(self._scheduler.profile, decision.cycle, self.pod, nodes), given)
        decision.scored = scored
        decision.n_feasible = len(look.feasible)
        self._scheduler.choose_among(decision, look.feasible[scored.total == scored.total.max()])
        return decision

    def _taken(self, look: Look) -> Decision:
        """The only node that is left."""
        look.decision.n_feasible = 1
        self._scheduler.choose_among(look.decision, look.feasible)
        return look.decision

    def _preempt(
        self, look: Look, statuses: Mapping[str, Status], *, dropped_nodes: bool
    ) -> Consultation[Decision | None]:
        """Preemption; where extenders have a say in it, it is worked out, shown to them, and taken as they leave it."""
        review = CandidateReview()
        if any(extender.config.preempt_verb for extender in self._extenders):
            look.decision.cycle.put(review)
        self._run_post_filter(look, statuses, dropped_nodes)
        if not review.candidates:
            return look.decision
        review.answer = yield from ask_to_preempt(self._extenders, self._cluster, self.pod, review.candidates)
        look = self._look_again(look)
        if len(look.feasible) and not dropped_nodes:
            return None  # it fits now, without any eviction
        look.decision.cycle.put(review)
        self._run_post_filter(look, statuses, dropped_nodes)
        return look.decision

    def _run_post_filter(self, look: Look, statuses: Mapping[str, Status], dropped_nodes: bool) -> None:
        decision = look.decision
        diagnosis = decision.diagnosis = look.diagnosis(statuses, dropped_nodes=dropped_nodes)
        profile = self._scheduler.profile
        if profile.post_filter:
            result = decision.post_filter = run_post_filter(profile, decision.cycle, self.pod, diagnosis)
            diagnosis.post_filter_message = result.status.message

    def _look_again(self, before: Look) -> Look:
        look = look_at(self._scheduler, self.pod, before.searched)
        look.searched = before.searched
        return look


MOST_AT_ONCE = 16

PausedDecision = tuple[QueuedPodInfo, ProfileScheduler, Decision, float]
"""(pod, its scheduler, what was decided, when the attempt began)"""


@dataclass(slots=True, order=True)
class _Pause:
    """One pod's cycle, ordered as the queue would order the pods."""

    order: tuple[float, ...]
    arrival: int
    queued: QueuedPodInfo = field(compare=False)
    scheduler: ProfileScheduler = field(compare=False)
    cycle: ExtendedCycle = field(compare=False)
    steps: Consultation[Decision] = field(compare=False)
    started_s: float = field(compare=False)


class PausedCycles:
    """`started_s` is when an attempt began, by the clock of whoever measures; it is only passed on."""

    def __init__(
        self,
        extenders: Sequence[HTTPExtender],
        outbox: Outbox,
        failures: FailureHandler,
        most_at_once: int = MOST_AT_ONCE,
    ) -> None:
        self._extenders = [extender for extender in extenders if extender.decides]
        self._prioritize_verbs = {extender.index: extender.config.prioritize_verb for extender in extenders}
        self._outbox = outbox
        self._failures = failures
        self._most_at_once = most_at_once
        self._under_way: dict[str, _Pause] = {}
        self._line: list[_Pause] = []
        self._answered: deque[tuple[_Pause, Sequence[object]]] = deque()
        self._n_arrived = 0
        self.n_prioritizing = 0
        """Prioritize calls that are not answered yet."""

    def __len__(self) -> int:
        """Pods whose cycle has begun, or stands in line."""
        return len(self._under_way) + len(self._line)

    def __contains__(self, uid: str) -> bool:
        return uid in self._under_way or any(pause.queued.uid == uid for pause in self._line)

    def uids(self) -> set[str]:
        return {*self._under_way, *(pause.queued.uid for pause in self._line)}

    def takes(self, queued: QueuedPodInfo, scheduler: ProfileScheduler, started_s: float) -> bool:
        """Whether the pod interests an extender; then its cycle is here, and its decision is one of `decisions`."""
        interested = [extender for extender in self._extenders if extender.is_interested(queued.info)]
        if not interested:
            return False
        self._n_arrived += 1
        order = queued.profile.sort_key(queued)
        cycle = ExtendedCycle(scheduler, interested, queued.info)
        heappush(self._line, _Pause(order, self._n_arrived, queued, scheduler, cycle, cycle.decide(), started_s))
        return True

    def decisions(self) -> Iterator[PausedDecision]:
        """Lets those go on whose answers are there, and those in line begin, as far as there is room; gives what they
        come to, each before the next one goes on."""
        while True:
            if self._answered:
                pause, answers = self._answered.popleft()
            elif self._line and len(self._under_way) < self._most_at_once:
                pause, answers = heappop(self._line), None
                self._under_way[pause.queued.uid] = pause
            else:
                return
            decision = self._advance(pause, answers)
            if decision is not None:
                yield pause.queued, pause.scheduler, decision, pause.started_s

    def _advance(self, pause: _Pause, answers: Sequence[object] | None) -> Decision | None:
        """The cycle up to its next pause, or to its end. A pod that is gone by now is not decided upon."""
        if not self._failures.is_still_wanted(pause.queued):
            self._under_way.pop(pause.queued.uid)
            pause.steps.close()
            return None
        pause.cycle.pod = pause.queued.info
        try:
            calls = next(pause.steps) if answers is None else pause.steps.send(answers)
        except StopIteration as end:
            self._under_way.pop(pause.queued.uid)
            decision: Decision = end.value
            return decision
        self._ask(pause, calls)
        return None

    def _ask(self, pause: _Pause, calls: Sequence[CallExtender]) -> None:
        answers: list[object] = [None] * len(calls)
        missing = set(range(len(calls)))
        n_prioritizing = sum(call.verb == self._prioritize_verbs[call.extender] for call in calls)
        self.n_prioritizing += n_prioritizing

        def answered(index: int, answer: object, _now_s: float) -> None:
            answers[index] = answer
            missing.remove(index)
            if not missing:
                self.n_prioritizing -= n_prioritizing
                self._answered.append((pause, answers))

        for index, call in enumerate(calls):
            self._outbox.send(call, partial(answered, index))
