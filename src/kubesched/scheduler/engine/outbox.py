"""What the loop waits for: answers to effects on their way out, and binding cycles that wait for somebody else.

A volume controller or a device driver may have to do its part first. What is waited for shows in the objects that
informers bring, so nothing has to be asked outside: the wait is looked at again when such an object changes, when a
second has passed, and when its time is over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from kubesched.framework.effects import Done, Effect, Failed, FindOut, WaitUntil
from kubesched.k8s.model.meta import KubeObject

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


WaitEnded = tuple[str, object]
"""(uid of the pod, answer): its binding cycle goes on."""

_LOOK_EVERY_S = 1.0
_DEADLINE_EXCEEDED = Failed("context deadline exceeded")


@dataclass(frozen=True, slots=True)
class WaitBroke:
    """In place of an answer: `is_settled` raised this."""

    bug: Exception


@dataclass(slots=True)
class _Wait:
    pod_name: str
    action: WaitUntil
    until_s: float
    look_at_s: float


class Waits:
    """Tells which waits have ended, one by one: what follows from one end may end others too."""

    def __init__(self) -> None:
        self.by_uid: dict[str, _Wait] = {}

    def add(self, uid: str, pod_name: str, action: WaitUntil, now_s: float) -> object:
        """A pod's binding cycle waits, unless there is an answer at once."""
        until_s = now_s + action.timeout_s
        self.by_uid[uid] = _Wait(pod_name, action, until_s, min(now_s + _LOOK_EVERY_S, until_s))
        return self._look(uid, now_s) if action.looks_at_once else None

    def due(self, now_s: float) -> Iterator[WaitEnded]:
        """Time has passed."""
        return self._ended([uid for uid, wait in self.by_uid.items() if wait.look_at_s <= now_s], now_s)

    def watching(self, item: KubeObject, now_s: float) -> Iterator[WaitEnded]:
        """The object was added, changed or deleted."""
        return self._ended([uid for uid, wait in self.by_uid.items() if isinstance(item, wait.action.watched)], now_s)

    def pod_deleted(self, uid: str) -> Iterator[WaitEnded]:
        wait = self.by_uid.pop(uid, None)
        if wait is not None:
            yield uid, Failed(f'pod does not exist any more: pod "{wait.pod_name}" not found', is_gone=True)

    def forget(self, uid: str) -> None:
        """The binding cycle is over."""
        self.by_uid.pop(uid, None)

    def __contains__(self, uid: str) -> bool:
        return uid in self.by_uid

    def next_deadline_s(self) -> float | None:
        return min((wait.look_at_s for wait in self.by_uid.values()), default=None)

    def _ended(self, uids: Sequence[str], now_s: float) -> Iterator[WaitEnded]:
        for uid in uids:
            answer = self._look(uid, now_s)
            if answer is not None:
                yield uid, answer

    def _look(self, uid: str, now_s: float) -> object:
        """What the wait came to, and is over with; None if it goes on, or another one's end ended it too."""
        wait = self.by_uid.get(uid)
        if wait is None:
            return None
        answer: object
        try:
            is_settled = wait.action.is_settled()
        except Exception as bug:  # noqa: BLE001  whatever it is, the plugin that asked is blamed for it
            answer = WaitBroke(bug)
        else:
            if not is_settled and wait.until_s > now_s:
                wait.look_at_s = min(now_s + _LOOK_EVERY_S, wait.until_s)
                return None
            answer = Done() if is_settled else _DEADLINE_EXCEEDED
        del self.by_uid[uid]
        return answer
