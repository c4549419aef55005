"""Effects on their way out, and who waits for which answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile

from kubesched.framework.effects import Effect, Failed, FindOut

Answered = Callable[[object, float], None]
"""(answer, now) -> None"""


class Outbox:
    """Numbers effects, and brings answers to whoever asked. An answer that nobody waits for is dropped."""

    def __init__(self) -> None:
        self.next_number = 1
        self._effects: list[Effect] = []
        self._waiting: dict[int, tuple[Effect, Answered]] = {}
        """By number, and so in the order in which they were sent."""
        self._asked_as: dict[int, int] = {}
        """By number of an effect of which it was asked what became of it, or of an earlier question, the number of the
        last question."""

    def send(self, action: object, answered: Answered | None = None) -> int:
        number = self.next_number
        self.next_number = number + 1
        effect = Effect(number, action)
        self._effects.append(effect)
        if answered is not None:
            self._waiting[number] = effect, answered
        return number

    def take(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects

    def answer(self, number: int, answer: object, now_s: float) -> None:
        waiting = self._waiting.pop(number, None)
        if waiting is None and number in self._asked_as and not isinstance(answer, Failed):
            # It came about after all, and the answer was late. Of what failed, reading knows more.
            waiting = self._waiting.pop(self._asked_as[number], None)
        if waiting is not None:
            waiting[1](answer, now_s)

    @property
    def to_send(self) -> Sequence[Effect]:
        """What was not taken yet."""
        return self._effects

    @property
    def first_to_send(self) -> int:
        """All effects before this number have left."""
        return self._effects[0].id if self._effects else self.next_number

    @property
    def n_unanswered(self) -> int:
        return len(self._waiting)

    def __contains__(self, number: int) -> bool:
        """Whether the effect of this number is still to be answered, be it by finding out."""
        return number in self._waiting or self._asked_as.get(number) in self._waiting

    def unanswered_before(self, number: int) -> list[Effect]:
        return [self._waiting[before][0] for before in takewhile(lambda before: before < number, self._waiting)]

    def find_out(self, effect: Effect) -> FindOut:
        """Asks what became of an effect; whoever waits for its answer waits for this one instead."""
        _, answered = self._waiting.pop(effect.id)
        asked = effect.action if isinstance(effect.action, FindOut) else FindOut(effect.id, effect.action)
        question = self.send(asked, answered)
        before = [one for one, as_ in self._asked_as.items() if as_ == effect.id]
        self._asked_as = {one: as_ for one, as_ in self._asked_as.items() if as_ in self._waiting}
        self._asked_as.update(dict.fromkeys((*before, effect.id, asked.number), question))
        return asked
