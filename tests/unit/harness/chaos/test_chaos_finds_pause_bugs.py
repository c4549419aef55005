"""Every kind of pause, jump and silence, alone, with a bug planted that it finds within 200 seeds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.chaos import draws, weather
from harness.chaos.checks import answers, bindings, content, places
from harness.chaos.many import try_seed
from harness.chaos.shell import ChaosShell
from harness.chaos.wire import Wire
from kubesched.framework.effects import Effect, FindOut, Withheld
from kubesched.scheduler.engine import self_check
from kubesched.scheduler.engine.failure import FailureHandler
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.engine.outbox import Outbox
from kubesched.scheduler.engine.self_check import SelfCheck

Plant = Callable[[pytest.MonkeyPatch], None]

MOST_SEEDS = 200


def withheld_writes_are_not_answered(patch: pytest.MonkeyPatch) -> None:
    """Who holds them back believes that nobody is there any more."""

    def withhold(self: Wire, name: str, answer: Withheld) -> bool:
        request = next((r for r in self.requests if r.name == name and not r.has_landed and r.answer), None)
        if request is not None:
            request.result, request.answer = answer, None
            self._clear()
        return request is not None

    patch.setattr(Wire, "withhold", withhold)


def withheld_pods_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FailureHandler, "put_back", lambda self, queued, now_s: self._queue.done(queued.uid))


def nobody_looks_for_answers(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SelfCheck, "_ask_about_overdue", lambda self: None)


def a_pause_counts_as_waiting(patch: pytest.MonkeyPatch) -> None:
    """Time passes for those who slept through it."""
    patch.setattr(self_check, "min", lambda passed_s, _most_s: passed_s, raising=False)


def time_only_grows(patch: pytest.MonkeyPatch) -> None:
    tick = Scheduler.tick
    latest: dict[int, float] = {}

    def sure(self: Scheduler, now_s: float) -> None:
        assert now_s >= latest.get(id(self.cluster), now_s), "time goes back"
        latest[id(self.cluster)] = now_s
        tick(self, now_s)

    patch.setattr(Scheduler, "tick", sure)


def who_asked_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """What takes longer than any answer can is asked about, and nobody waits for what comes of it."""

    def find_out(self: Outbox, effect: Effect) -> FindOut:
        del self._waiting[effect.id]
        asked = FindOut(effect.id, effect.action)
        self.send(asked)
        return asked

    patch.setattr(Outbox, "find_out", find_out)


def nothing_is_held_back_meanwhile(patch: pytest.MonkeyPatch) -> None:
    """A lease that may have run out is not looked at before sending."""

    def suspend_lease(self: ChaosShell) -> None:
        self.holds_lease = False

    patch.setattr(ChaosShell, "suspend_lease", suspend_lease)


def what_was_held_back_is_dropped(patch: pytest.MonkeyPatch) -> None:
    """Little is asked for while the lease is suspended, as no pod is tried: so that is drawn more often."""
    send_effects = ChaosShell.send_effects

    def send(self: ChaosShell) -> None:
        if self.is_suspended:
            self.loop.take_effects()
        send_effects(self)

    patch.setattr(ChaosShell, "send_effects", send)
    often, draw = draws.PAUSES["suspend-lease"]
    patch.setattr(weather, "PAUSES", {"suspend-lease": (6 * often, draw)})


@pytest.mark.parametrize(
    ("fault", "plant", "invariant"),
    [
        ("withhold", withheld_writes_are_not_answered, answers.ANSWERED),
        ("withhold", withheld_pods_are_forgotten, places.INVARIANT),
        ("swallow", nobody_looks_for_answers, content.LEFT),
        ("pause", a_pause_counts_as_waiting, answers.PATIENT),
        ("clock", time_only_grows, "no exception"),
        ("clock", a_pause_counts_as_waiting, answers.PATIENT),
        ("freeze", who_asked_is_forgotten, content.LEFT),
        ("suspend-lease", nothing_is_held_back_meanwhile, bindings.LEADING),
        ("suspend-lease", what_was_held_back_is_dropped, answers.ANSWERED),
        ("pause", nothing_is_held_back_meanwhile, bindings.LEADING),
    ],
    ids=lambda part: part.__name__ if callable(part) else part,
)
def test_a_planted_bug_is_found(fault: str, plant: Plant, invariant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weather, "PAUSES", {fault: draws.PAUSES[fault]})
    plant(monkeypatch)
    for seed in range(1, MOST_SEEDS + 1):
        found = try_seed(seed, shrinks=False).failure
        if found is not None and found.invariant == invariant:
            return
    pytest.fail(f"not found in {MOST_SEEDS} seeds")
