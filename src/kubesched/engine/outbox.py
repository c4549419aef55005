"""Effects on their way out, and who waits for which answer."""

from __future__ import annotations

from collections.abc import Callable

from kubesched.framework.effects import Effect

Answered = Callable[[object, float], None]
"""(answer, now) -> None"""


class Outbox:
    """Numbers effects, and brings answers to whoever asked. An answer that nobody waits for is dropped."""

    def __init__(self) -> None:
        self._next_id = 1
        self._effects: list[Effect] = []
        self._waiting: dict[int, Answered] = {}

    def send(self, action: object, answered: Answered | None = None) -> int:
        effect = Effect(self._next_id, action)
        self._next_id += 1
        self._effects.append(effect)
        if answered is not None:
            self._waiting[effect.id] = answered
        return effect.id

    def take(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects

    def answer(self, effect_id: int, answer: object, now_s: float) -> None:
        answered = self._waiting.pop(effect_id, None)
        if answered is not None:
            answered(answer, now_s)

    @property
    def n_unanswered(self) -> int:
        return len(self._waiting)
