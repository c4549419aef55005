"""The loop finds what nobody would ever tell it, says so, and settles it by reading."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kubesched.framework.effects import BindPod, Done, EvictPod, Failed, FindOut
from kubesched.k8s.model import manifests
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config import default
from kubesched.scheduler.engine.bind import PodBinding
from kubesched.scheduler.engine.binding_cycles import BindingCycles
from kubesched.scheduler.engine.metrics.exposition import render
from kubesched.scheduler.engine.metrics.loop_metrics import collect
from kubesched.scheduler.engine.observations import AnswerMissing
from kubesched.scheduler.engine.score import ByName
from kubesched.scheduler.engine.self_check import LOOK_EVERY_S, AnswerLimit
from kubesched.testing import make
from kubesched.testing.world import World, listen_for

LIMIT = AnswerLimit(base_s=60.0)


class DeafWorld(World):
    """Some effects are never answered; asked what became of them, it looks."""

    def __init__(self, is_lost: Callable[[object], bool], *, carries_out: bool, limit: AnswerLimit = LIMIT) -> None:
        super().__init__(build_loop(default(), ByName(), answer_limit=limit))
        self._is_lost = is_lost
        self._carries_out = carries_out
        self.asked: list[object] = []

    def put(self, *items: make.Manifest) -> None:
        self.add(*manifests.from_dicts(items).objects)

    def carry_out(self, action: object) -> object:
        if isinstance(action, FindOut):
            self.asked.append(action.action)
            return self.find_out(action.action)
        if self._is_lost(action):
            if self._carries_out:
                super().carry_out(action)
            return None
        return super().carry_out(action)

    def find_out(self, action: object) -> object:
        if isinstance(action, BindPod):
            return Done() if self.bound.get(action.pod) == action.node_name else Failed("it has not come about")
        assert isinstance(action, EvictPod)
        return Done() if action.pod not in self.pods else Failed("it has not come about")


def once(kind: type) -> Callable[[object], bool]:
    """The first action of its kind."""
    lost: list[object] = []

    def is_lost(action: object) -> bool:
        if isinstance(action, kind) and not lost:
            lost.append(action)
            return True
        return False

    return is_lost


@pytest.mark.parametrize("carries_out", [False, True], ids=["not done", "done"])
def test_a_binding_that_is_never_answered_is_found_told_and_settled(carries_out: bool) -> None:
    world = DeafWorld(once(BindPod), carries_out=carries_out)
    missing = listen_for(world.loop, AnswerMissing)
    world.put(make.node("a", cpu=1), make.pod("p", cpu=1))
    world.run(for_s=50)
    assert len(world.loop.bindings) == 1 and world.asked == []
    world.run(for_s=60)
    assert world.bound == {"default/p": "a"}
    assert world.loop.bindings == {} and world.loop.outbox.n_unanswered == 0
    assert [type(action) for action in world.asked] == [BindPod]
    check = world.loop.check
    assert check is not None and check.n_unsettled == 0
    stray = missing.pop().stray
    assert (stray.what, stray.about, stray.tries) == ("BindPod", "default/p", 1)
    assert stray.waited_s >= LIMIT.base_s
    assert missing == []
    assert 'scheduler_strays_total{kind="BindPod"} 1' in render(collect(world.loop))


@pytest.mark.parametrize("carries_out", [False, True], ids=["not done", "done"])
def test_an_eviction_that_is_never_answered_does_not_hold_the_preemptor_for_ever(carries_out: bool) -> None:
    world = DeafWorld(once(EvictPod), carries_out=carries_out)
    world.put(make.node("a", cpu=1), make.pod("victim", on="a", cpu=1), make.pod("p", cpu=1, priority=5))
    world.run(for_s=200)
    assert world.bound == {"default/p": "a"}
    assert [type(action) for action in world.asked] == [EvictPod]


def test_what_reading_does_not_tell_either_is_asked_again_and_makes_unhealthy() -> None:
    class StoneDeaf(DeafWorld):
        hears = False

        def find_out(self, action: object) -> object:
            return super().find_out(action) if self.hears else None

    world = StoneDeaf(once(BindPod), carries_out=False)
    missing = listen_for(world.loop, AnswerMissing)
    world.put(make.node("a", cpu=1), make.pod("p", cpu=1))
    world.run(for_s=100)
    check = world.loop.check
    assert check is not None and check.n_unsettled == 0
    world.run(for_s=200)
    assert check.n_unsettled == 1
    assert [seen.stray.tries for seen in missing][:4] == [1, 2, 3, 4]
    world.hears = True
    world.run(for_s=100)
    assert check.n_unsettled == 0
    assert world.bound == {"default/p": "a"}


@pytest.mark.parametrize("jump_s", [300.0, 1e6, -300.0], ids=["a pause", "years", "a clock set back"])
def test_time_in_which_the_loop_did_not_run_does_not_count(jump_s: float) -> None:
    """The answer may be there, and only not be read yet."""
    world = DeafWorld(once(BindPod), carries_out=True)
    world.put(make.node("a", cpu=1), make.pod("p", cpu=1))
    world.run(for_s=30)
    world.now_s += jump_s
    world.loop.tick(world.now_s)
    world.settle()
    world.run(for_s=15)
    assert world.asked == [] and len(world.loop.bindings) == 1
    world.run(for_s=60)
    assert len(world.asked) == 1 and world.loop.bindings == {}


def test_a_long_line_may_take_longer() -> None:
    world = DeafWorld(lambda action: isinstance(action, BindPod), carries_out=True, limit=AnswerLimit(60.0, 1.0))
    world.put(make.node("a", cpu=100), *(make.pod(f"p{i}", cpu=1) for i in range(50)))
    world.run(for_s=60 + 40)
    assert world.asked == []
    world.run(for_s=30)
    assert len(world.asked) == 50


def test_a_binding_that_broke_half_way_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug in the loop itself: the answer came, and nobody went on with it."""
    answered = BindingCycles._answered
    is_missed = iter([True])

    def broken(self: BindingCycles, binding: PodBinding, answer: object, now_s: float) -> None:
        if not next(is_missed, False):
            answered(self, binding, answer, now_s)

    monkeypatch.setattr(BindingCycles, "_answered", broken)
    world = DeafWorld(lambda action: False, carries_out=True)
    world.put(make.node("a", cpu=1), make.pod("p", cpu=1))
    world.run(for_s=3 * LOOK_EVERY_S)
    assert world.loop.bindings == {} and world.bound == {"default/p": "a"}
    assert world.loop.check is not None and world.loop.check.totals == {"binding": 1}


def test_a_pod_whose_attempt_broke_off_goes_back_to_the_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = BindingCycles.begin
    breaks = iter([True])

    def broken(self: BindingCycles, *attempt: object) -> None:
        if next(breaks, False):
            self._cluster.assume(attempt[0].info, "a")  # type: ignore[attr-defined]
        else:
            begin(self, *attempt)  # type: ignore[arg-type]

    monkeypatch.setattr(BindingCycles, "begin", broken)
    world = DeafWorld(lambda action: False, carries_out=True)
    world.put(make.node("a", cpu=1), make.pod("p", cpu=1))
    world.run(for_s=30)
    assert world.bound == {"default/p": "a"}
    assert world.loop.check is not None and world.loop.check.totals == {"pod in flight": 1}


def test_who_is_answered_is_never_asked_about() -> None:
    world = DeafWorld(lambda action: False, carries_out=True)
    world.put(make.node("a", cpu=10), *(make.pod(f"p{i}", cpu=1) for i in range(10)))
    world.run(for_s=1000)
    assert world.asked == [] and world.loop.check is not None and not world.loop.check.totals


def test_what_has_not_left_the_loop_is_not_waited_for() -> None:
    """A shell that may not write at the moment leaves effects where they are."""
    world = DeafWorld(lambda action: False, carries_out=True)
    world.put(make.node("a", cpu=1), make.pod("p", cpu=1))
    assert world.loop.schedule_one(0.0)
    for now_s in range(0, 600, 5):
        world.loop.tick(float(now_s))
    world.now_s = 600.0
    world.run(for_s=30)
    assert world.asked == [] and world.bound == {"default/p": "a"}
