"""Cycles that pause for extenders. The loop goes on with other pods; a cycle resumes when its answers are there.

Only so many cycles are under way at once: a pod that comes later stands in line, by the order of the queue, and begins
when one of them ends. All of them are in flight for the queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from typing import Protocol

from kubesched.framework.effects import CallExtender
from kubesched.scheduler.engine.cycle import Decision, ProfileScheduler
from kubesched.scheduler.engine.extender.cycle import ExtendedCycle
from kubesched.scheduler.engine.extender.http_extender import Consultation, HTTPExtender
from kubesched.scheduler.engine.outbox import Outbox
from kubesched.scheduler.queue import QueuedPodInfo

MOST_AT_ONCE = 16


class DecisionTaker(Protocol):
    """Who runs the cycles: the loop."""

    def is_still_wanted(self, queued: QueuedPodInfo) -> bool:
        """Brings the pod up to date. If it is gone, or going, its attempt is over, and this says False."""
        ...

    def decided(
        self, queued: QueuedPodInfo, scheduler: ProfileScheduler, decision: Decision, started_s: float, now_s: float
    ) -> None: ...


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
        taker: DecisionTaker,
        most_at_once: int = MOST_AT_ONCE,
    ) -> None:
        self._extenders = [extender for extender in extenders if extender.decides]
        self._prioritize_verbs = {extender.index: extender.config.prioritize_verb for extender in extenders}
        self._outbox = outbox
        self._taker = taker
        self._most_at_once = most_at_once
        self._under_way: dict[str, _Pause] = {}
        self._line: list[_Pause] = []
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

    def takes(self, queued: QueuedPodInfo, scheduler: ProfileScheduler, started_s: float, now_s: float) -> bool:
        """Whether the pod interests an extender; then its cycle is here, and its decision is told when it is made."""
        interested = [extender for extender in self._extenders if extender.is_interested(queued.info)]
        if not interested:
            return False
        self._n_arrived += 1
        order = queued.profile.sort_key(queued)
        cycle = ExtendedCycle(scheduler, interested, queued.info)
        pause = _Pause(order, self._n_arrived, queued, scheduler, cycle, cycle.decide(), started_s)
        heappush(self._line, pause)
        self._begin(now_s)
        return True

    def _begin(self, now_s: float) -> None:
        """Lets those in line begin, as far as there is room."""
        while self._line and len(self._under_way) < self._most_at_once:
            pause = heappop(self._line)
            self._under_way[pause.queued.uid] = pause
            self._advance(pause, None, now_s)

    def _advance(self, pause: _Pause, answers: Sequence[object] | None, now_s: float) -> None:
        """The cycle up to its next pause. A pod that is gone by now is not decided upon."""
        if not self._taker.is_still_wanted(pause.queued):
            self._under_way.pop(pause.queued.uid)
            pause.steps.close()
            return
        pause.cycle.pod = pause.queued.info
        try:
            calls = next(pause.steps) if answers is None else pause.steps.send(answers)
        except StopIteration as end:
            self._under_way.pop(pause.queued.uid)
            self._taker.decided(pause.queued, pause.scheduler, end.value, pause.started_s, now_s)
        else:
            self._ask(pause, calls)

    def _ask(self, pause: _Pause, calls: Sequence[CallExtender]) -> None:
        answers: list[object] = [None] * len(calls)
        missing = set(range(len(calls)))
        n_prioritizing = sum(call.verb == self._prioritize_verbs[call.extender] for call in calls)
        self.n_prioritizing += n_prioritizing

        def answered(index: int, answer: object, now_s: float) -> None:
            answers[index] = answer
            missing.remove(index)
            if not missing:
                self.n_prioritizing -= n_prioritizing
                self._advance(pause, answers, now_s)
                self._begin(now_s)

        for index, call in enumerate(calls):
            self._outbox.send(call, partial(answered, index))
