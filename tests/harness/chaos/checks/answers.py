"""Every effect is answered: what the loop waits for is on its way, or somebody swallowed it on purpose.

The loop finds out about those that were swallowed, and about those that take longer than any answer can, but asks about
nothing before: time in which it stood still does not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.chaos.checks.violation import Violation
from kubesched.framework.effects import Effect, FindOut
from kubesched.scheduler.engine.self_check import AnswerLimit

if TYPE_CHECKING:
    from harness.chaos.simulation import Simulation

ANSWERED = "every effect is answered"
PATIENT = "nothing is asked about before its time"

LIMIT = AnswerLimit(40.0)
_ROUNDING_S = 1e-6


class AnswersSeen:
    def __init__(self) -> None:
        self._swallowed: set[int] = set()
        self._sent_s: dict[int, float] = {}
        """By number of the effect, when it was sent, by the time that the loop was awake."""

    def restarted(self) -> None:
        self._swallowed.clear()
        self._sent_s.clear()

    def swallowed(self, number: int) -> None:
        self._swallowed.add(number)

    def sent(self, effect: Effect, awake_s: float) -> None:
        self._sent_s[effect.id] = awake_s
        if isinstance(effect.action, FindOut):
            for_s = awake_s - self._sent_s.get(effect.action.number, awake_s)
            if for_s < LIMIT.base_s - _ROUNDING_S:
                raise Violation(PATIENT, f"{effect.action.action} was asked about after {for_s} s")

    def check(self, sim: Simulation) -> None:
        if not sim.shell.is_leading:
            return
        outbox = sim.shell.loop.outbox
        on_the_way = {request.effect.id for request in sim.wire.requests if request.answer is not None}
        on_the_way.update(effect.id for effect in outbox.to_send)
        for effect in outbox.unanswered_before(outbox.next_number):
            if effect.id not in on_the_way and effect.id not in self._swallowed:
                raise Violation(ANSWERED, f"{effect.action} is nowhere, and nobody was answered")
