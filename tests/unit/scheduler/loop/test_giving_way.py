"""A gang whose turn has come lets pods that come in that moment go first, as long as it fits all the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from group_worlds import ALPHA, GANGS, TOPOLOGY, add, bound, group, group_world, members, node, pod, shown

from kubesched.framework.effects import BindPod
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import PodKey
from kubesched.scheduler.engine.self_check import AnswerLimit
from kubesched.testing.world import World

_ANTI = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}


def _gang_whose_turn_comes(world: World, n_nodes: int = 4, rack: str = "") -> None:
    """Of three pods; each node takes two. A plain pod was there before, which tells that others may wait."""
    add(world, *(node(f"n{i}", cpu="2", rack=f"r{i // 2}") for i in range(n_nodes)))
    add(world, group(gang=3, rack=rack), pod("before", cpu="0"))
    world.run(for_s=0.5)
    add(world, *members())
    world.loop.schedule_one(world.now_s)


def _order(world: World) -> list[str]:
    """The pods that are bound after the gang's turn has come, and another has come a millisecond later."""
    found = []
    while world.loop.schedule_one(world.now_s):
        found += [str(effect.action.pod) for effect in world.loop.outbox.to_send if isinstance(effect.action, BindPod)]
        world.settle()
    return [key.removeprefix("d/") for key in found]


def _comes(world: World, item: Pod) -> None:
    world.now_s += 0.001
    add(world, item)


@pytest.mark.parametrize(("gates", "gang"), [(GANGS, ""), (TOPOLOGY, "rack")], ids=["plain", "racks"])
def test_a_pod_that_comes_in_that_moment_goes_first(gates: tuple[str, ...], gang: str) -> None:
    world = group_world(*gates)
    _gang_whose_turn_comes(world, rack=gang)
    assert world.loop.is_giving_way
    assert world.loop.should_send_first()
    _comes(world, pod("p"))
    assert _order(world) == ["p", "g-0", "g-1", "g-2"]
    assert not world.loop.is_giving_way


def test_what_was_decided_beside_it_leaves_before_its_trial() -> None:
    world = group_world(*GANGS)
    _gang_whose_turn_comes(world)
    _comes(world, pod("p"))
    world.loop.schedule_one(world.now_s)
    assert not world.loop.is_giving_way
    assert world.loop.should_send_first()
    world.settle()
    assert not world.loop.should_send_first()


def test_not_more_go_first_than_it_can_spare() -> None:
    """One node of three can be full, and three pods fit on the others."""
    world = group_world(*GANGS)
    _gang_whose_turn_comes(world, n_nodes=3)
    for i in range(3):
        _comes(world, pod(f"p-{i}", cpu="2"))
    world.run(for_s=0.5)
    assert set(bound(world)) == {"before", "g-0", "g-1", "g-2", "p-0"}


@pytest.mark.parametrize(
    "item",
    [
        pytest.param(pod("p", affinity=_ANTI), id="it may keep others away from many nodes"),
        pytest.param(pod("h-0", "h"), id="of another group"),
    ],
)
def test_who_does_not_go_first(item: Pod) -> None:
    world = group_world(*GANGS)
    add(world, group("h"))
    _gang_whose_turn_comes(world)
    _comes(world, item)
    assert _order(world) == ["g-0", "g-1", "g-2", item.name]


def test_pods_that_came_with_the_gang_do_not_go_first() -> None:
    world = group_world(*GANGS)
    _gang_whose_turn_comes(world)
    add(world, pod("p"))
    assert _order(world) == ["g-0", "g-1", "g-2", "p"]


def _no_room_to_spare(world: World) -> None:
    _gang_whose_turn_comes(world, n_nodes=2)


def _one_rack_only(world: World) -> None:
    _gang_whose_turn_comes(world, n_nodes=3, rack="rack")


def _nobody_lately(world: World) -> None:
    add(world, *(node(f"n{i}") for i in range(4)), group(gang=3), *members())
    world.loop.schedule_one(world.now_s)


@pytest.mark.parametrize(
    ("gates", "emulate", "arrange"),
    [
        pytest.param(GANGS, None, _no_room_to_spare, id="no room to spare"),
        pytest.param(TOPOLOGY, None, _one_rack_only, id="one rack has room for all"),
        pytest.param(GANGS, None, _nobody_lately, id="nobody else comes"),
        pytest.param(GANGS, ALPHA, _gang_whose_turn_comes, id="v1.36"),
    ],
)
def test_when_it_is_tried_at_once(
    gates: tuple[str, ...], emulate: str | None, arrange: Callable[[World], None]
) -> None:
    world = group_world(*gates, emulate=emulate)
    arrange(world)
    assert not world.loop.is_giving_way


def test_what_is_heard_meanwhile_counts() -> None:
    """A pod of it is deleted: it is incomplete now."""
    world = group_world(*GANGS)
    _gang_whose_turn_comes(world)
    world.delete(world.pods[PodKey("d/g-1")])
    world.run(for_s=0.5)
    assert set(bound(world)) == {"before"}
    assert shown(world)[:2] == ("False", "Unschedulable")


def test_nothing_is_left_of_a_gang_whose_pods_are_all_gone() -> None:
    world = group_world(*GANGS)
    _gang_whose_turn_comes(world)
    for i in range(3):
        world.delete(world.pods[PodKey(f"d/g-{i}")])
    world.run(for_s=0.5)
    assert not world.loop.queue.n_in_flight
    assert world.loop.groups is not None
    assert not world.loop.groups.uids()


def test_the_self_check_knows_where_its_pods_are() -> None:
    world = group_world(*GANGS, answer_limit=AnswerLimit())
    _gang_whose_turn_comes(world)
    world.now_s += 10.0
    world.loop.tick(world.now_s)
    assert world.loop.check is not None
    assert not world.loop.check.totals
    world.run(for_s=0.5)
    assert len(bound(world)) == 4
