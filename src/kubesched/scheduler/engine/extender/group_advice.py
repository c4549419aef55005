"""Pod groups and extenders: extenders filter for a group's pods before the group is tried.

A trial happens between two facts and cannot wait for an answer. So extenders are asked beforehand, about every pod that
interests them and all nodes that let it in as the cluster is then; about all pods at once. When the answers are there,
the group is tried on the cluster as it is by now, and its pods go only to nodes that extenders accept. If a pod could
then go to nodes that were not filtered by extenders, because of a mate's place or of evictions, extenders filter these,
too, and the group is tried again.

Other pods are scheduled in the meantime. Victims are not shown to extenders.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.effects import CallExtender
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Status
from kubesched.scheduler.cluster.view import TableView
from kubesched.scheduler.engine.cycle import Decision, MemberTrial, ProfileScheduler
from kubesched.scheduler.engine.extender.cycle import Look, look_at, look_at_all
from kubesched.scheduler.engine.extender.http_extender import Consultation, ExtenderError, HTTPExtender
from kubesched.scheduler.engine.extender.verbs import ExtenderScores, add_scores, ask_to_filter, ask_to_prioritize
from kubesched.scheduler.engine.outbox import Outbox
from kubesched.scheduler.engine.plugin_call import PluginError, SearchError
from kubesched.scheduler.engine.postfilter import run_post_filter
from kubesched.scheduler.engine.score import run_scores
from kubesched.scheduler.queue import QueuedPodInfo


class MissingAdviceError(Exception):
    """A pod could go to nodes that extenders were not asked about."""

    def __init__(self, names: Collection[str]) -> None:
        super().__init__(f"extenders were not asked about {len(names)} nodes")
        self.names = names


@dataclass(slots=True)
class _PodAdvice:
    """What extenders said of one pod."""

    extenders: Sequence[HTTPExtender]
    asked: set[str] = field(default_factory=set)
    passed: set[str] = field(default_factory=set)
    statuses: dict[str, Status] = field(default_factory=dict)
    scores: list[ExtenderScores] = field(default_factory=list)
    error: str = ""


class GroupAdvice:
    """What extenders said of the pods of one group that interest them."""

    def __init__(self, scheduler: ProfileScheduler, extenders: Sequence[HTTPExtender], pods: Iterable[PodInfo]) -> None:
        self._scheduler = scheduler
        self._by_uid: dict[str, _PodAdvice] = {}
        for pod in pods:
            interested = [extender for extender in extenders if extender.is_interested(pod)]
            if interested:
                self._by_uid[pod.uid] = _PodAdvice(interested)

    def __bool__(self) -> bool:
        return bool(self._by_uid)

    # -- asking --------------------------------------------------------------------------------------------------------

    def ask(self, pods: Sequence[PodInfo], more: Collection[str] = ()) -> Consultation[None]:
        """About all nodes that let a pod in now, and about these."""
        return _together([self._ask_about(pod, more) for pod in pods if pod.uid in self._by_uid])

    def _ask_about(self, pod: PodInfo, more: Collection[str]) -> Consultation[None]:
        advice, cluster = self._by_uid[pod.uid], self._scheduler.cluster
        try:
            fitting = look_at(self._scheduler, pod, None).names
            names = [name for name in dict.fromkeys((*fitting, *more)) if name not in advice.asked]
            if not names:
                return
            found = yield from ask_to_filter(advice.extenders, cluster, pod, names)
            advice.asked.update(names)
            advice.passed.update(found.names)
            advice.statuses.update(found.statuses)
            if found.names:
                advice.scores += yield from ask_to_prioritize(advice.extenders, cluster, pod, found.names)
        except (PluginError, SearchError, ExtenderError) as failure:
            advice.error = failure.message

    # -- deciding ------------------------------------------------------------------------------------------------------

    def decide(self, pod: PodInfo, trial: MemberTrial) -> Decision:
        """As `ProfileScheduler.decide_in_trial`. Raises MissingAdviceError."""
        advice = self._by_uid.get(pod.uid)
        if advice is None:
            return self._scheduler.decide_in_trial(pod, trial)
        try:
            if advice.error:
                raise ExtenderError(advice.error)
            return self._decided(pod, trial, advice)
        except (PluginError, SearchError, ExtenderError) as failure:
            decision = Decision(pod, CycleState(), self._scheduler.cluster.table.names)
            decision.error = failure.message
            return decision

    def _decided(self, pod: PodInfo, trial: MemberTrial, advice: _PodAdvice) -> Decision:
        scheduler, cluster = self._scheduler, self._scheduler.cluster
        names = None if trial.within is None else [cluster.table.names[row] for row in trial.within.tolist()]
        nominated = cluster.nominations.node_for(pod)
        if nominated and (names is None or nominated in names):
            look = look_at(scheduler, pod, (nominated,), trial.group)
            look.keep(advice.passed)
            if len(look.feasible):
                look.decision.nominated = True
                return self._chosen(look, advice)
        if names is None:
            look = look_at_all(scheduler, pod, trial.group)
        else:
            look = look_at(scheduler, pod, names, trial.group)
        missing = set(look.names) - advice.asked
        if missing:
            raise MissingAdviceError(missing)
        n_fitting = len(look.feasible)
        look.keep(advice.passed)
        if len(look.feasible):
            return self._chosen(look, advice)
        if look.decision.prefilter is not None:
            self._rejected(look, trial, advice, dropped_nodes=n_fitting > 0)
        return look.decision

    def _chosen(self, look: Look, advice: _PodAdvice) -> Decision:
        decision, scheduler, feasible = look.decision, self._scheduler, look.feasible
        decision.n_feasible = len(feasible)
        if len(feasible) > 1:
            nodes = TableView(scheduler.cluster.table, feasible)
            scored = add_scores(run_scores(scheduler.profile, decision.cycle, decision.pod, nodes), advice.scores)
            decision.scored = scored
            feasible = feasible[scored.total == scored.total.max()]
        scheduler.choose_among(decision, feasible)
        return decision

    def _rejected(self, look: Look, trial: MemberTrial, advice: _PodAdvice, *, dropped_nodes: bool) -> None:
        decision, profile = look.decision, self._scheduler.profile
        diagnosis = decision.diagnosis = look.diagnosis(advice.statuses, dropped_nodes=dropped_nodes)
        shows_victims = any(extender.config.preempt_verb for extender in advice.extenders)
        if trial.post_filter and profile.post_filter and not shows_victims:
            result = decision.post_filter = run_post_filter(profile, decision.cycle, decision.pod, diagnosis)
            diagnosis.post_filter_message = result.status.message


def _together(consultations: Sequence[Consultation[None]]) -> Consultation[None]:
    """Goes on with all of them at once."""
    answers: dict[int, Sequence[object] | None] = dict.fromkeys(range(len(consultations)))
    while True:
        calls: dict[int, Sequence[CallExtender]] = {}
        for number, given in answers.items():
            try:
                steps = consultations[number]
                calls[number] = next(steps) if given is None else steps.send(given)
            except StopIteration:
                continue
        if not calls:
            return
        found = yield [call for asked in calls.values() for call in asked]
        answers, end = {}, 0
        for number, asked in calls.items():
            answers[number] = found[end : end + len(asked)]
            end += len(asked)


@dataclass(slots=True)
class PausedGroup:
    """A group whose pods interest extenders."""

    key: str
    queued: list[QueuedPodInfo]
    scheduler: ProfileScheduler
    advice: GroupAdvice
    started_s: float


class GroupPauses:
    """The groups that wait for extenders."""

    def __init__(self, extenders: Sequence[HTTPExtender], outbox: Outbox) -> None:
        self._extenders = [extender for extender in extenders if extender.decides]
        self._outbox = outbox
        self._waiting: dict[int, PausedGroup] = {}
        self._ready: deque[PausedGroup] = deque()

    def uids(self) -> set[str]:
        """Of the pods that wait."""
        return {member.uid for paused in (*self._waiting.values(), *self._ready) for member in paused.queued}

    def advice_for(self, scheduler: ProfileScheduler, pods: Iterable[PodInfo]) -> GroupAdvice:
        return GroupAdvice(scheduler, self._extenders, pods)

    def ask(self, paused: PausedGroup, more: Collection[str] = ()) -> None:
        """The group is ready once all answers are there."""
        self._waiting[id(paused)] = paused
        self._go_on(paused, paused.advice.ask([member.info for member in paused.queued], more), None)

    def take_ready(self) -> PausedGroup | None:
        return self._ready.popleft() if self._ready else None

    def _go_on(self, paused: PausedGroup, steps: Consultation[None], answers: Sequence[object] | None) -> None:
        try:
            calls = next(steps) if answers is None else steps.send(answers)
        except StopIteration:
            self._ready.append(self._waiting.pop(id(paused)))
            return
        given: list[object] = [None] * len(calls)
        missing = set(range(len(calls)))

        def answered(index: int, answer: object, _now_s: float) -> None:
            given[index] = answer
            missing.remove(index)
            if not missing:
                self._go_on(paused, steps, given)

        for index, call in enumerate(calls):
            self._outbox.send(call, partial(answered, index))
