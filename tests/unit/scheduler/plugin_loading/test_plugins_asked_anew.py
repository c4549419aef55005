"""Plugins that do not say what they look at: asked about the pod itself, beside what is kept for its signature, with
the same decisions as without it."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import pytest
from outside_world import add, world_with

from kubesched.framework import OK, PreFilterResult, Scope, Status, Verdicts
from kubesched.testing import make
from kubesched.testing.world import World


def dice(*texts: str) -> int:
    return crc32("/".join(texts).encode())


class Moody:
    """Looks at the pod's own name, and at the pods that are there."""

    name = "Moody"
    n_asked = 0

    def filter_node(self, cycle: Any, pod: Any, node: Any) -> Status:
        type(self).n_asked += 1
        return Status.unschedulable("moody") if dice(pod.name, node.name) % 3 == 0 else OK

    def score_node(self, cycle: Any, pod: Any, node: Any) -> int:
        return int((dice(pod.name, node.name) + 7 * node.pod_count) % 101)


class MoodyTable:
    name = "MoodyTable"

    def filter(self, cycle: Any, pod: Any, nodes: Any) -> Verdicts:
        mask: Any = [dice(pod.name, name) % 3 == 0 for name in nodes.names]  # a list will do
        return Verdicts.reject(mask, "moody")

    def score(self, cycle: Any, pod: Any, nodes: Any) -> Any:
        return [dice(pod.name, name) % 1000 for name in nodes.names]

    def normalize_score(self, cycle: Any, pod: Any, nodes: Any, scores: Any) -> Any:
        return scores * 100 // max(int(scores.max()), 1)


class OnlyScores:
    name = "OnlyScores"

    def score_node(self, cycle: Any, pod: Any, node: Any) -> int:
        return dice(pod.name, node.name) % 101


class Prepares(Moody):
    name = "Prepares"

    def pre_filter(self, cycle: Any, pod: Any, nodes: Any) -> PreFilterResult:
        cycle.put(self)
        return PreFilterResult()

    def score_node(self, cycle: Any, pod: Any, node: Any) -> int:
        assert cycle.get(type(self)) is self
        return 1


class SometimesSilent(Moody):
    name = "SometimesSilent"

    def filter_scope_for(self, pod: Any) -> Scope | None:
        return None

    def score_scope_for(self, pod: Any) -> Scope | None:
        return None


class Fails(Moody):
    """Breaks over some pods on some nodes."""

    name = "Fails"

    def score_node(self, cycle: Any, pod: Any, node: Any) -> int:
        return 101 if dice(pod.name) % 5 == 0 else 3


def run(plugin: type, n_nodes: int, *, keeps_classes: bool) -> World:
    world = world_with(plugin, config={"percentageOfNodesToScore": 20}, keeps_classes=keeps_classes)
    add(world, *(make.node(f"n{i:03}", cpu=2) for i in range(n_nodes)))
    for batch in range(5):
        add(world, *(make.pod(f"p{batch}-{i}", cpu=1, labels={"app": "a"}) for i in range(12)))
        add(world, make.node(f"late-{batch}", cpu=3))
        world.run(for_s=1)
    return world


@pytest.mark.parametrize("n_nodes", [7, 130, 300])
@pytest.mark.parametrize("plugin", [Moody, MoodyTable, OnlyScores, Prepares, SometimesSilent, Fails])
def test_they_decide_the_same_with_the_class_cache(plugin: type, n_nodes: int) -> None:
    with_classes, without = (run(plugin, n_nodes, keeps_classes=kept) for kept in (True, False))
    assert with_classes.bound == without.bound
    assert [event.note for event in with_classes.events] == [event.note for event in without.events]
    scheduler = with_classes.loop.schedulers["default-scheduler"]
    assert (scheduler.n_decided_by_class > 0) == (plugin is not Prepares)


def test_they_are_asked_about_no_more_nodes_than_it_takes() -> None:
    world = world_with(Moody, config={"percentageOfNodesToScore": 20})
    add(world, *(make.node(f"n{i:03}") for i in range(600)))
    add(world, *(make.pod(f"p{i}", cpu=1) for i in range(3)))
    world.run()
    Moody.n_asked = 0
    add(world, make.pod("one-more", cpu=1))
    world.run()
    assert 120 < Moody.n_asked < 300


class Follower(Moody):
    """Says that it follows pods, and breaks over some of what it is told, or over saying it."""

    name = "Follower"
    filter_scope = score_scope = Scope.CLUSTER

    def pods_changed(self, cycle: Any, pod: Any, changes: Any) -> bool:
        if len(changes) > 1 or dice(changes[0][1].name) % 4 == 0:
            raise KeyError("lost")
        return True

    def filter_node(self, cycle: Any, pod: Any, node: Any) -> Status:
        return OK if node.pod_count < 2 else Status.unschedulable("crowded")

    def score_node(self, cycle: Any, pod: Any, node: Any) -> int:
        return int(10 * node.pod_count)


def test_one_that_cannot_follow_is_prepared_anew() -> None:
    with_classes, without = (run(Follower, 130, keeps_classes=kept) for kept in (True, False))
    assert with_classes.bound == without.bound
    assert with_classes.loop.schedulers["default-scheduler"].n_decided_by_class > 0
