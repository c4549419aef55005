"""Extenders that have a say in who is evicted."""

from __future__ import annotations

from typing import Any

import pytest
from fake_extender import URL, ExtendedWorld, FakeExtender, Json, Serve, accept_all

from kubesched.testing import make


def _world(*extenders: FakeExtender) -> ExtendedWorld:
    """Without extenders, the victim would be the one of least priority, on a."""
    world = ExtendedWorld(*extenders)
    world.put(
        make.node("a", cpu=2),
        make.node("b", cpu=2),
        make.pod("on-a", on="a", cpu=2, priority=1),
        make.pod("on-b", on="b", cpu=1, priority=2),
        make.pod("also-on-b", on="b", cpu=1, priority=2),
        make.pod("p", cpu=1, priority=10),
    )
    return world


def _keep(*names: str) -> Serve:
    return lambda said: {
        "NodeNameToMetaVictims": {k: v for k, v in said["NodeNameToMetaVictims"].items() if k in names}
    }


def _victims(**by_node: list[str]) -> Json:
    return {
        "NodeNameToMetaVictims": {
            node: {"Pods": [{"UID": f"uid-default-{name}"} for name in names], "NumPDBViolations": 0}
            for node, names in by_node.items()
        }
    }


def test_without_an_objection_the_least_harmful_node_is_taken() -> None:
    extender = FakeExtender(preempt=_keep("a", "b"))
    world = _world(extender)
    world.run(for_s=5)
    assert world.evicted == ["default/on-a"]
    assert world.bound == {"default/p": "a"}
    ((_, said),) = extender.asked
    assert said["NodeNameToMetaVictims"] == {
        "a": {"Pods": [{"UID": "uid-default-on-a"}], "NumPDBViolations": 0},
        "b": {"Pods": [{"UID": "uid-default-also-on-b"}], "NumPDBViolations": 0},
    }


@pytest.mark.parametrize(
    ("serve", "evicted"),
    [
        pytest.param(_keep("b"), ["default/also-on-b"], id="a node is dropped"),
        pytest.param(lambda _: _victims(b=["on-b"]), ["default/on-b"], id="another victim is named"),
        pytest.param(
            lambda _: _victims(b=["on-b", "also-on-b"]), ["default/also-on-b", "default/on-b"], id="more are named"
        ),
    ],
)
def test_what_the_extender_says_is_done(serve: Serve, evicted: list[str]) -> None:
    world = _world(FakeExtender(preempt=serve))
    world.run(for_s=5)
    assert sorted(world.evicted) == evicted
    assert world.bound == {"default/p": "b"}


def test_extenders_are_asked_one_after_another_about_what_is_left() -> None:
    second = FakeExtender(preempt=_keep("a", "b"))
    _world(FakeExtender(preempt=_keep("b")), second).run()
    assert list(second.asked[0][1]["NodeNameToMetaVictims"]) == ["b"]


def test_an_extender_without_node_cache_gets_victims_in_full() -> None:
    def only_b(said: Json) -> Json:
        assert said["NodeNameToMetaVictims"] is None
        uids = [pod["metadata"]["uid"] for pod in said["NodeNameToVictims"]["b"]["Pods"]]
        return {"NodeNameToMetaVictims": {"b": {"Pods": [{"UID": uid} for uid in uids]}}}

    world = _world(FakeExtender(preempt=only_b, options={"nodeCacheCapable": False}))
    world.run(for_s=5)
    assert world.evicted == ["default/also-on-b"]


_FIT = "0/2 nodes are available: 2 Insufficient cpu. "


@pytest.mark.parametrize(
    ("serve", "options", "message"),
    [
        pytest.param(
            _keep(),
            {},
            "no new claims to deallocate, preemption: no candidate node for preemption",
            id="every node is dropped",
        ),
        pytest.param(
            lambda _: 500,
            {},
            f"preemption: failed preempt with extender at URL {URL}0/preempt, code 500",
            id="the extender fails",
        ),
        pytest.param(
            lambda _: _victims(a=["on-b"]),
            {},
            f"preemption: extender: {URL}0 claims to preempt pod (UID: &{{uid-default-on-b}}) on node: a, but the pod "
            "is not found on that node",
            id="a victim is elsewhere",
        ),
        pytest.param(
            lambda _: _victims(x=["on-b"]),
            {},
            'preemption: nodeinfo not found for node name "x"',
            id="a node is unknown",
        ),
        pytest.param(
            lambda _: _victims(a=[]),
            {},
            'preemption: expected at least one victim pod on node "a"',
            id="a node has no victims",
        ),
        pytest.param(
            lambda _: _victims(a=[]),
            {"ignorable": True},
            "no new claims to deallocate, preemption: no candidate node for preemption",
            id="a node has no victims, by an extender that can be done without",
        ),
    ],
)
def test_when_nothing_is_left_nobody_is_evicted(serve: Serve, options: Json, message: str) -> None:
    world = _world(FakeExtender(preempt=serve, options=options))
    world.run()
    assert world.evicted == []
    assert world.notes()[0] == _FIT + message


def test_an_extender_that_can_be_done_without_and_fails_has_no_say() -> None:
    world = _world(FakeExtender(preempt=lambda _: 500, options={"ignorable": True}))
    world.run(for_s=5)
    assert world.evicted == ["default/on-a"]


def test_nobody_is_evicted_from_a_node_that_only_the_extender_finds_full() -> None:
    """It may be freed by preemption as far as the extender says, but the plugins see no victim there."""

    def full(said: Json) -> Json:
        return {"NodeNames": [], "FailedNodes": dict.fromkeys(said["NodeNames"], "no device left")}

    world = ExtendedWorld(FakeExtender(filter=full, preempt=_keep("a")))
    world.put(make.node("a", cpu=4), make.pod("on-a", on="a", cpu=1), make.pod("p", cpu=1, priority=5))
    world.run()
    assert world.evicted == []
    assert world.notes()[0] == (
        '0/1 nodes are available: 1 no device left. preemption: expected at least one victim pod on node "a"'
    )


def test_room_is_made_on_nodes_that_extenders_reject_but_not_for_good() -> None:
    extender = FakeExtender(
        filter=lambda said: {"NodeNames": [], "FailedNodes": {"b": "later"}, "FailedAndUnresolvableNodes": {"c": "no"}},
        preempt=_keep("a", "b", "c"),
    )
    world = ExtendedWorld(extender)
    world.put(*(make.node(name, cpu=1) for name in ("a", "b", "c")), make.pod("on-a", on="a", cpu=1))
    world.put(make.pod("p", cpu=1, priority=5))
    world.run()
    assert list(extender.asked[1][1]["NodeNameToMetaVictims"]) == ["a"]
    assert world.evicted == ["default/on-a"]


@pytest.mark.parametrize(
    ("gone", "evicted"),
    [
        pytest.param(["default/on-a"], [], id="a victim goes by itself: its place is free"),
        pytest.param([], ["default/on-a"], id="nothing happens"),
    ],
)
def test_what_happens_while_the_extender_thinks_counts(gone: list[Any], evicted: list[str]) -> None:
    world = _world(FakeExtender(preempt=_keep("a"), filter=accept_all))
    world.is_slow = True
    world.run()
    assert [effect.action.verb for effect in world.waiting] == ["preempt"]  # type: ignore[attr-defined]
    for key in gone:
        world.delete(world.pods[key])
    world.is_slow = False
    world.catch_up()
    world.run(for_s=5)
    assert world.evicted == evicted
    assert world.bound == {"default/p": "a"}
