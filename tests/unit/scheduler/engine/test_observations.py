"""Who listens is told, each what they asked for; who does not costs nothing, and nobody changes what is decided."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kubesched.k8s.model import manifests
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config import default
from kubesched.scheduler.engine import observations as seen
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.engine.score import ByName
from kubesched.testing import make
from kubesched.testing.world import World, listen_for

CYCLE_PAGE = Path(__file__).parents[4] / "docs" / "concepts" / "cycle.md"


def put(world: World, *items: make.Manifest) -> None:
    world.add(*manifests.from_dicts(items).objects)


def busy(loop: Scheduler) -> World:
    world = World(loop)
    put(world, make.node("a", cpu=4), make.node("b", cpu=4), *(make.pod(f"p{i}", cpu=1) for i in range(6)))
    put(world, make.pod("huge", cpu=9), make.pod("grand", cpu=3, priority=9))
    world.run(for_s=20)
    return world


def test_every_listener_is_told_in_turn() -> None:
    loop = build_loop(default(), ByName())
    told: list[str] = []
    loop.listen(lambda observation: told.append("first") if isinstance(observation, seen.PodBound) else None)
    loop.listen(lambda observation: told.append("second") if isinstance(observation, seen.PodBound) else None)
    world = World(loop)
    put(world, make.node("a"), make.pod("p"))
    world.run()
    assert told == ["first", "second"]


def test_who_wants_only_trouble_is_not_told_of_steps() -> None:
    loop = build_loop(default(), ByName())
    told: list[seen.Observation] = []
    loop.listen(told.append, steps=False)
    busy(loop)
    assert told == [] and loop.observers.steps is None


@pytest.mark.parametrize("scores", [False, True])
def test_listening_changes_no_decision(scores: bool) -> None:
    quiet, watched = build_loop(default(), ByName()), build_loop(default(), ByName())
    watched.listen(lambda observation: None, scores=scores)
    before, after = busy(quiet), busy(watched)
    assert (before.bound, before.evicted, before.events) == (after.bound, after.evicted, after.events)


def test_an_attempt_is_told_from_its_beginning_to_the_binding() -> None:
    loop = build_loop(default(), ByName())
    told = listen_for(loop, object)
    world = World(loop)
    put(world, make.node("a"), make.pod("p"))
    world.run()
    kinds = [type(observation).__name__ for observation in told]
    expected = ["AttemptBegan", "PodDecided", "PluginTurnBegan", "PluginTurnEnded", "PodBound"]
    assert [kind for kind in dict.fromkeys(kinds) if kind in expected] == expected


def test_pods_that_share_no_class_are_told_once_in_a_thousand() -> None:
    loop = build_loop(default(), ByName())
    misses = listen_for(loop, seen.ClassMisses)
    world = World(loop)
    put(world, make.node("a", cpu=64, pods=5000), *(make.pod(f"p{i:04}", labels={"n": str(i)}) for i in range(1500)))
    world.run()
    assert [(miss.profile, miss.n_missed) for miss in misses] == [("default-scheduler", 1000)]


def test_pods_alike_are_no_such_storm() -> None:
    loop = build_loop(default(), ByName())
    misses = listen_for(loop, seen.ClassMisses)
    world = World(loop)
    put(world, make.node("a", cpu=64, pods=5000), *(make.pod(f"p{i:04}", cpu="10m") for i in range(1500)))
    world.run()
    assert misses == []


def test_the_example_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", CYCLE_PAGE.read_text(), re.DOTALL)
    names: dict[str, Scheduler] = {}
    exec(code, names)
    world = World(names["loop"])
    put(world, make.node("a"), make.node("b"), make.pod("p"))
    world.run()
    assert capsys.readouterr().out == "default/p is on a: 2 of 2 nodes would have done\n"
