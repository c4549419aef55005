"""Answers find whoever waits for them, also when it was asked in the meantime what became of the effect."""

from __future__ import annotations

from kubesched.framework.effects import Done, Failed, FindOut
from kubesched.scheduler.engine.outbox import Outbox

NOW_S = 7.0


class Asker:
    """Sends one effect, and keeps what it is answered."""

    def __init__(self) -> None:
        self.outbox = Outbox()
        self.answers: list[object] = []
        self.number = self.outbox.send("write", lambda answer, now_s: self.answers.append(answer))

    def find_out(self) -> int:
        """The number of the question."""
        (effect,) = self.outbox.unanswered_before(self.outbox.next_number)
        asked = self.outbox.find_out(effect)
        assert asked == FindOut(self.number, "write")
        return self.outbox.next_number - 1

    def answer(self, number: int, answer: object) -> None:
        self.outbox.answer(number, answer, NOW_S)


def test_a_late_answer_counts_and_makes_the_question_needless() -> None:
    asker = Asker()
    question = asker.find_out()
    asker.answer(asker.number, Done())
    assert asker.answers == [Done()]
    assert asker.number not in asker.outbox and asker.outbox.n_unanswered == 0
    asker.answer(question, Failed("no answer"))
    assert asker.answers == [Done()]


def test_a_late_failure_is_left_to_reading() -> None:
    """Who gives up on a write does not know whether it came about."""
    asker = Asker()
    question = asker.find_out()
    asker.answer(asker.number, Failed("cancelled"))
    assert asker.answers == [] and asker.number in asker.outbox
    asker.answer(question, Done())
    assert asker.answers == [Done()]


def test_the_answer_to_an_earlier_question_counts_too() -> None:
    asker = Asker()
    first, second = asker.find_out(), asker.find_out()
    assert asker.number in asker.outbox and first in asker.outbox
    asker.answer(first, Done())
    asker.answer(second, Done())
    asker.answer(asker.number, Done())
    assert asker.answers == [Done()]
