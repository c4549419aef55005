"""A pod's cycle with extenders: the same steps as without, with pauses in which extenders are asked.

    filter → extenders filter → (more than one node left) extenders prioritize → score → select
      └─ no node fits → postfilter → extenders look at the victims

While it pauses, other pods are scheduled. So after every pause the plugins are asked again, on the cluster as it is
then, and only nodes that both they and the extenders accept are taken; if others took all of these in the meantime, the
cycle begins anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Status
from kubesched.scheduler.cluster.view import TableView
from kubesched.scheduler.engine.cycle import Decision, ProfileScheduler
from kubesched.scheduler.engine.extender.filtering import ask_to_filter
from kubesched.scheduler.engine.extender.http_extender import Consultation, ExtenderError, HTTPExtender
from kubesched.scheduler.engine.extender.look import Look, look_at, look_at_all
from kubesched.scheduler.engine.extender.preempting import ask_to_preempt
from kubesched.scheduler.engine.extender.prioritizing import ExtenderScores, add_scores, ask_to_prioritize
from kubesched.scheduler.engine.observations import PluginBroke
from kubesched.scheduler.engine.plugin_call import PluginError, SearchError
from kubesched.scheduler.engine.postfilter import run_post_filter
from kubesched.scheduler.engine.preemption import CandidateReview
from kubesched.scheduler.engine.score import run_scores


class ExtendedCycle:
    """The cycle of one pod and the extenders that it interests. `pod` is set anew when it changed during a pause."""

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
