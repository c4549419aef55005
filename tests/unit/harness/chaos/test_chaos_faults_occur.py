"""Every kind of fault that the simulation is there for happens, within few seeds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.chaos.checks import Checks
from harness.chaos.extender import binding_in
from harness.chaos.run import run_seed
from harness.chaos.simulation import Simulation
from harness.chaos.trace import ChaosStep
from harness.chaos.wire import WireRequest
from kubesched.framework.effects import Failed, FindOut

MOST_SEEDS = 150

FAULTS = frozenset(
    {
        "a watch event is dropped",
        "a watch event is told twice",
        "watch events are reordered",
        "a watch lists anew after 410",
        "a list comes from a server that lags",
        "409 on bind",
        "404 on bind",
        "a bind times out, and was written",
        "a bind times out, and is written later",
        "a bind times out, and is never written",
        "an extender is slow",
        "an extender times out",
        "a node vanishes",
        "a node vanishes in mid-binding",
        "leadership is lost in mid-binding",
        "a restart",
        "a restart in mid-binding",
        "the scheduler is paused",
        "the scheduler is paused, and its requests time out",
        "the API server is paused",
        "the network is paused",
        "the clock is set forward",
        "the clock is set back",
        "a lease is suspended, and regained",
        "a lease is suspended, and lost",
        "a write is withheld",
        "an answer never comes",
        "an answer takes longer than any can",
    }
)


class FaultsSeen:
    """Looks at each step before it is taken, and at each answer."""

    def __init__(self) -> None:
        self.kinds: set[str] = set()
        self._seen_first: dict[int, tuple[WireRequest, float]] = {}
        """By identity, requests and when each was first seen."""

    def before(self, sim: Simulation, step: ChaosStep) -> None:
        self.kinds.update(
            _of_watch(sim, step), self._of_request(sim, step), _of_process(sim, step), _of_pause(sim, step)
        )

    def bind_answered(self, answer: object) -> None:
        if isinstance(answer, Failed) and answer.is_gone:
            self.kinds.add("404 on bind")

    def _of_request(self, sim: Simulation, step: ChaosStep) -> Iterator[str]:
        for request in sim.wire.requests:
            _, sent_at_s = self._seen_first.setdefault(id(request), (request, sim.shell.now_s))
            if "-call/" in request.name and request.answer is not None and sim.shell.now_s > sent_at_s + 1:
                yield "an extender is slow"
        meant = _meant(sim, step)
        if meant is None:
            return
        if "-call/" in meant.name and step.verb == "timeout":
            yield "an extender times out"
        if binding_in(meant.effect.action) is not None:
            yield from _of_binding(meant, step)


def _meant(sim: Simulation, step: ChaosStep) -> WireRequest | None:
    """The request that a step is about, where only one can be."""
    named = [request for request in sim.wire.requests if step.names and request.name == step.names[0]]
    return named[0] if len(named) == 1 else None


def _of_binding(request: WireRequest, step: ChaosStep) -> Iterator[str]:
    is_given_up = request.answer is None
    if step.verb == "refuse" and step.get("with") == "409":
        yield "409 on bind"
    elif step.verb == "timeout" and request.has_landed and not isinstance(request.result, Failed):
        yield "a bind times out, and was written"
    elif step.verb == "land" and is_given_up:
        yield "a bind times out, and is written later"
    elif step.verb == "lose":
        yield "a bind times out, and is never written"


def _of_watch(sim: Simulation, step: ChaosStep) -> Iterator[str]:
    if step.verb == "repeat":
        yield "a watch event is told twice"
    if step.verb == "deliver" and len(step.names) == 2:
        waiting = sim.shell.informers[step.names[0]].waiting
        if step.names[1] in waiting[1:]:
            yield "watch events are reordered"
    if step.verb == "relist":
        informer = sim.shell.informers[step.names[0]]
        if informer.is_down:
            yield "a watch lists anew after 410"
            if informer._position < len(informer._log):
                yield "a watch event is dropped"
        if step.number("lag"):
            yield "a list comes from a server that lags"


def _of_process(sim: Simulation, step: ChaosStep) -> Iterator[str]:
    bindings = sim.shell.loop.bindings.values()
    if step.verb == "drop" and step.names[0] == "node":
        yield "a node vanishes"
        if any(binding.decision.node_name == step.names[1] for binding in bindings):
            yield "a node vanishes in mid-binding"
    if step.verb == "lose-lease" and bindings:
        yield "leadership is lost in mid-binding"
    if step.verb == "restart":
        yield "a restart"
        if bindings:
            yield "a restart in mid-binding"


def _of_pause(sim: Simulation, step: ChaosStep) -> Iterator[str]:
    if step.verb == "pause" and any(request.answer is not None for request in sim.wire.requests):
        yield "the scheduler is paused, and its requests time out" if step.get("late") else "the scheduler is paused"
    if step.verb == "freeze":
        yield {"server": "the API server is paused", "network": "the network is paused"}[step.names[0]]
    if step.verb == "clock":
        yield "the clock is set back" if step.get("by").startswith("-") else "the clock is set forward"
    if sim.shell.is_suspended and step.verb in ("regain-lease", "lose-lease"):
        yield "a lease is suspended, and " + ("regained" if step.verb == "regain-lease" else "lost")
    if step.verb == "withhold" and any(request.answer and not request.has_landed for request in sim.wire.requests):
        yield "a write is withheld"
    if step.verb == "swallow":
        yield "an answer never comes"
    asked = {r.effect.action.number for r in sim.wire.requests if isinstance(r.effect.action, FindOut)}
    if any(request.effect.id in asked and request.answer is not None for request in sim.wire.requests):
        yield "an answer takes longer than any can"


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> FaultsSeen:
    """Checks are left out, for they take their time."""
    seen = FaultsSeen()
    answered = Simulation.answered

    def see_answer(self: Simulation, effect_id: int, answer: object) -> None:
        if effect_id in self.checks.bindings._open:
            seen.bind_answered(answer)
        answered(self, effect_id, answer)

    monkeypatch.setattr(Checks, "before", lambda _self, sim, step: seen.before(sim, step))
    monkeypatch.setattr(Checks, "after", lambda _self, _sim, _step: None)
    monkeypatch.setattr(Simulation, "answered", see_answer)
    return seen


def test_every_kind_of_fault_occurs(seen: FaultsSeen) -> None:
    for seed in range(1, MOST_SEEDS + 1):
        run_seed(seed)
        if seen.kinds >= FAULTS:
            return
    pytest.fail(f"not in {MOST_SEEDS} seeds: {sorted(FAULTS - seen.kinds)}")


def test_everything_is_checked_after_every_step_that_did_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[ChaosStep] = []
    unchecked: list[ChaosStep] = []
    apply, after = Simulation.apply, Checks.after

    def see_apply(self: Simulation, step: ChaosStep) -> bool:
        n_checked = len(checked)
        did = apply(self, step)
        if did and step not in checked[n_checked:]:
            unchecked.append(step)
        return did

    def see_after(self: Checks, sim: Simulation, step: ChaosStep) -> None:
        checked.append(step)
        after(self, sim, step)

    monkeypatch.setattr(Simulation, "apply", see_apply)
    monkeypatch.setattr(Checks, "after", see_after)
    assert run_seed(5).failure is None
    assert checked
    assert unchecked == []
