"""Extenders that score nodes."""

from __future__ import annotations

from typing import Any

import pytest
from fake_extender import ExtendedWorld, FakeExtender, Serve, accept

from kubesched.testing import make


def _scores(**by_node: Any) -> Serve:
    return lambda _: [{"Host": host, "Score": score} for host, score in by_node.items()]


def _world(*extenders: FakeExtender) -> ExtendedWorld:
    """The plugins prefer b, which has more room, by less than 100 points."""
    world = ExtendedWorld(*extenders)
    world.put(make.node("a", cpu=4), make.node("b", cpu=8), make.pod("p", cpu=2))
    world.run()
    return world


@pytest.mark.parametrize(
    ("extenders", "node"),
    [
        pytest.param([FakeExtender(prioritize=_scores())], "b", id="no scores change nothing"),
        pytest.param([FakeExtender(prioritize=_scores(a=10))], "a", id="ten points of ten outweigh a plugin"),
        pytest.param([FakeExtender(prioritize=_scores(a=1))], "b", id="a point does not"),
        pytest.param([FakeExtender(prioritize=_scores(a=1), options={"weight": 10})], "a", id="but with its weight"),
        pytest.param(
            [FakeExtender(prioritize=_scores(a=8)), FakeExtender(prioritize=_scores(b=8))], "b", id="scores add up"
        ),
        pytest.param([FakeExtender(prioritize=lambda _: 500)], "b", id="an extender that fails gives no score"),
        pytest.param([FakeExtender(prioritize=_scores(a="x"))], "b", id="nor does one that cannot be understood"),
        pytest.param([FakeExtender(prioritize=_scores(nowhere=10, a=10))], "a", id="unknown nodes do not matter"),
        pytest.param(
            [FakeExtender(prioritize=_scores(a=2**63 - 1), options={"weight": 100})], "a", id="huge scores do not wrap"
        ),
    ],
)
def test_scores_of_extenders_count_beside_those_of_plugins(extenders: list[FakeExtender], node: str) -> None:
    assert _world(*extenders).bound == {"default/p": node}


def test_all_extenders_are_asked_at_once_about_the_same_nodes() -> None:
    first, second = FakeExtender(prioritize=_scores(a=5)), FakeExtender(prioritize=_scores(a=5))
    world = ExtendedWorld(first, second)
    world.is_slow = True
    world.put(make.node("a"), make.node("b"), make.pod("p"))
    world.run()
    assert len(world.waiting) == 2
    assert world.loop.paused is not None and world.loop.paused.n_prioritizing == 2
    world.catch_up(1)
    assert world.bound == {}
    world.catch_up()
    assert world.bound == {"default/p": "a"}
    assert world.loop.paused.n_prioritizing == 0


def test_the_only_node_left_needs_no_score() -> None:
    extender = FakeExtender(filter=accept("b"), prioritize=_scores(a=10))
    assert _world(extender).bound == {"default/p": "b"}
    assert extender.verbs() == ["filter"]


def test_only_nodes_that_passed_all_filters_are_scored() -> None:
    extender = FakeExtender(filter=accept("a", "b"), prioritize=_scores(c=10))
    world = ExtendedWorld(extender)
    world.put(*(make.node(name) for name in ("a", "b", "c")), make.pod("p"))
    world.run()
    assert extender.asked[1][1]["NodeNames"] == ["a", "b"]
    assert world.bound == {"default/p": "a"}
