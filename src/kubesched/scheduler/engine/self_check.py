"""The loop's look at itself: does it wait for something that will never come?

Every effect is answered by whoever carries it out, so nothing should be found. If something is, a component outside
has a bug, or something in here broke half way; and a pod would wait forever, its room taken, without a word. So every
few seconds it looks for

- effects that have waited longer than any answer can take: they are sent once more as `FindOut`, which reads what
  became of them;
- bindings that wait for nothing at all: their pods are looked up in the same way;
- pods that were taken out of the queue and are nowhere: they go back.

Whatever is found is logged and counted. Time in which the loop did not run at all, or by which the clock was
set, does not count: the answers may be there, and only not be read yet.

Next: `loop`, which looks at every tick.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Protocol

from kubesched.framework.status import Status
from kubesched.scheduler.engine.bind import Bindings
from kubesched.scheduler.engine.binding_cycles import BindingCycles
from kubesched.scheduler.engine.failure import FailureHandler
from kubesched.scheduler.engine.observations import AnswerMissing, Observers
from kubesched.scheduler.engine.outbox import Outbox
from kubesched.scheduler.queue import SchedulingQueue

LOOK_EVERY_S = 5.0
_BROKE_OFF = Status.error("the attempt broke off")


class HoldsPods(Protocol):
    def uids(self) -> set[str]:
        """Of the pods that wait there, and will go on."""
        ...


@dataclass(frozen=True, slots=True)
class AnswerLimit:
    """How long an answer can take: `base_s`, and `each_s` more for every effect that is under way with it."""

    base_s: float = 120.0
    each_s: float = 0.0

    def for_s(self, n_under_way: int) -> float:
        return self.base_s + self.each_s * n_under_way


@dataclass(frozen=True, slots=True)
class Stray:
    """Something that the loop would never have heard of. `what` is the action's name, or the pod's state."""

    what: str
    about: str
    waited_s: float
    """At least."""
    tries: int = 1
    """How often it was found. What is found again was not even answered by reading."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """All effects before number `before` have left by `at_s`, and should be answered by `until_s`."""

    before: int
    at_s: float
    until_s: float


class SelfCheck:
    """Which effects wait for too long. Its times are those in which the loop was awake."""

    def __init__(
        self,
        limit: AnswerLimit,
        queue: SchedulingQueue,
        outbox: Outbox,
        bindings: Bindings,
        binding_cycles: BindingCycles,
        paused: Sequence[HoldsPods],
        failures: FailureHandler,
        observers: Observers,
    ) -> None:
        self._queue = queue
        self._outbox = outbox
        self._bindings = bindings
        self._binding_cycles = binding_cycles
        self._paused = paused
        self._failures = failures
        self._observers = observers
        self._limit = limit
        self._looked_at_s = -inf
        self._awake_s = 0.0
        self._marks: deque[_Mark] = deque()
        self._tries: dict[int, int] = {}
        """By number of an effect, how often it was asked what became of it."""
        self.totals: Counter[str] = Counter()

    # -- to look at ----------------------------------------------------------------------------------------------------

    @property
    def n_unsettled(self) -> int:
        """Effects of which not even reading told what became of them, in the time that this may take."""
        return sum(1 for number, tries in self._tries.items() if tries > 1 and number in self._outbox)

    # -- looking -------------------------------------------------------------------------------------------------------

    def look(self, now_s: float) -> None:
        """At every tick; most of the time it is too early."""
        looked_at_s = self._looked_at_s
        if looked_at_s <= now_s < looked_at_s + LOOK_EVERY_S:
            return
        self._awake_s += min(max(now_s - looked_at_s, 0.0), 2 * LOOK_EVERY_S)
        self._looked_at_s = now_s
        self._ask_about_overdue()
        for binding in self._binding_cycles.waiting_for_nothing():
            self._binding_cycles.find_out(binding)
            self._found("binding", binding.assumed.key, 0.0)
        if self._queue.n_in_flight:
            under_way = self._bindings.keys() | {uid for paused in self._paused for uid in paused.uids()}
            for queued in self._queue.contents.in_flight:
                if queued.uid not in under_way:
                    self._failures.attempt_broke(queued, _BROKE_OFF, now_s)
                    self._found("pod in flight", queued.key, 0.0)

    def next_deadline_s(self) -> float | None:
        """None if the loop waits for nothing."""
        waits = self._outbox.n_unanswered or self._bindings or self._queue.n_in_flight
        return self._looked_at_s + LOOK_EVERY_S if waits else None

    def _ask_about_overdue(self) -> None:
        """Sends what has waited for too long once more, to find out."""
        outbox, awake_s, marks = self._outbox, self._awake_s, self._marks
        before, since_s = 0, awake_s
        while marks and marks[0].until_s <= awake_s:
            before, since_s = marks[0].before, marks[0].at_s
            marks.popleft()
        for effect in outbox.unanswered_before(before):
            asked = outbox.find_out(effect)
            tries = self._tries[asked.number] = self._tries.get(asked.number, 0) + 1
            self._found(type(asked.action).__name__, _about(asked.action), awake_s - since_s, tries)
        if self._tries:
            self._tries = {number: tries for number, tries in self._tries.items() if number in outbox}
        if not outbox.n_unanswered:
            marks.clear()
            return
        until_s = awake_s + self._limit.for_s(outbox.n_unanswered)
        if marks:
            until_s = max(until_s, marks[-1].until_s)
        marks.append(_Mark(outbox.first_to_send, awake_s, until_s))

    def _found(self, what: str, about: str, waited_s: float, tries: int = 1) -> None:
        self.totals[what] += 1
        if self._observers.trouble is not None:
            self._observers.trouble(AnswerMissing(Stray(what, about, waited_s, tries)))


def _about(action: object) -> str:
    return str(getattr(action, "pod", "") or getattr(action, "key", "") or getattr(action, "url", ""))
