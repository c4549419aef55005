"""Pod groups on a whole loop: gangs and basic groups come, wait, are bound together, compete and preempt."""

from __future__ import annotations

import pytest
from group_worlds import (
    GANGS,
    PREEMPTION,
    TOPOLOGY,
    add,
    bound,
    condition,
    group,
    group_world,
    members,
    node,
    pod,
    shown,
    told,
)
from msgspec.structs import replace

from kubesched.k8s.model.scheduling import PodGroup
from kubesched.scheduler.engine.observations import GroupAttemptBegan
from kubesched.testing.world import World, listen_for

_WAITS = (
    "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, "
    "one or more plugins asked to wait and no plugin rejected pod"
)
_SCHEDULED = ("True", "Scheduled", "")
_UNSCHEDULABLE = ("False", "Unschedulable", "pod group is unschedulable")

with_and_without_topology = pytest.mark.parametrize("gates", [GANGS, TOPOLOGY], ids=["gangs", "topology"])


@with_and_without_topology
def test_a_gang_that_fits_is_bound_at_once(gates: tuple[str, ...]) -> None:
    world = group_world(*gates)
    add(world, node(), group(gang=3), *members())
    world.run()
    assert set(bound(world)) == {"g-0", "g-1", "g-2"}
    assert shown(world) == _SCHEDULED
    found = condition(world)
    assert found is not None
    assert found.observed_generation == 1


@with_and_without_topology
def test_a_gang_waits_for_its_last_pod(gates: tuple[str, ...]) -> None:
    world = group_world(*gates)
    add(world, node(), group(gang=3), *members(n=2))
    world.run(for_s=20)
    assert bound(world) == {}
    assert told(world, "g-0") == "gated"
    assert condition(world) is None
    add(world, pod("g-2", "g"))
    world.run(for_s=1)
    assert len(bound(world)) == 3


@with_and_without_topology
def test_a_gang_waits_for_its_group_then_for_room(gates: tuple[str, ...]) -> None:
    world = group_world(*gates)
    blocker = pod("blocker", cpu="2")
    add(world, node(), blocker)
    world.run()
    add(world, *members())
    world.run(for_s=20)
    assert told(world, "g-0") == "gated"
    add(world, group(gang=3))
    world.run(for_s=20)
    assert set(bound(world)) == {"blocker"}
    suffix = f"first placement status: {_UNSCHEDULABLE[2]}"
    first = f"0/1 placements are available, {suffix}" if gates is TOPOLOGY else _UNSCHEDULABLE[2]
    assert shown(world) == (*_UNSCHEDULABLE[:2], first)
    assert (told(world, "g-0"), told(world, "g-1")) == (_WAITS, _WAITS)
    assert told(world, "g-2") == (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: "
        "0/1 nodes are available: 1 No preemption victims found for incoming pod."
    )
    world.delete(world.pods["d/blocker"])  # type: ignore[index]
    world.run(for_s=20)
    assert len(bound(world)) == 3
    assert shown(world) == _SCHEDULED


@with_and_without_topology
def test_a_pod_more_than_the_gang_needs_comes_when_there_is_room(gates: tuple[str, ...]) -> None:
    world = group_world(*gates)
    add(world, node(), pod("blocker"))
    world.run()
    add(world, *members(n=4), group(gang=3))
    world.run(for_s=5)
    assert len(bound(world)) == 4  # three, and the blocker
    assert shown(world) == _SCHEDULED
    world.delete(world.pods["d/blocker"])  # type: ignore[index]
    world.run(for_s=20)
    assert len(bound(world)) == 4
    assert shown(world) == _SCHEDULED


@pytest.mark.parametrize("first", ["a", "b"])
@with_and_without_topology
def test_of_two_gangs_the_one_whose_pod_came_first_is_bound_whole(gates: tuple[str, ...], first: str) -> None:
    second = "b" if first == "a" else "a"
    world = group_world(*gates)
    add(world, node(), group("a", gang=3), group("b", gang=3))
    for one, other in zip(members(first), members(second), strict=True):
        world.now_s += 1
        add(world, one, other)
    world.run(for_s=5)
    assert set(bound(world)) == {f"{first}-{i}" for i in range(3)}
    assert (shown(world, first)[0], shown(world, second)[0]) == ("True", "False")


@with_and_without_topology
@pytest.mark.parametrize("gang", [4, 0], ids=["gang", "basic"])
def test_a_group_preempts_pod_by_pod(gates: tuple[str, ...], gang: int) -> None:
    world = group_world(*gates)
    add(world, node(), pod("low", cpu="2", priority=10))
    world.run()
    add(world, group(gang=gang), *members(n=4))
    world.run(for_s=30)
    assert world.evicted == ["d/low"]
    assert len(bound(world)) == 4
    assert shown(world) == _SCHEDULED


@with_and_without_topology
def test_a_basic_group_takes_what_it_gets(gates: tuple[str, ...]) -> None:
    world = group_world(*gates)
    add(world, node(cpu="2"), group(), *members())
    world.run(for_s=20)
    assert len(bound(world)) == 2
    assert told(world, "g-2").startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert shown(world) == _SCHEDULED


def test_without_gang_scheduling_every_group_is_basic_and_needs_no_object() -> None:
    world = group_world("GenericWorkload")
    add(world, node(cpu="2"), *members())
    world.run(for_s=5)
    assert len(bound(world)) == 2


def test_with_gates_off_a_pod_of_a_group_is_a_pod() -> None:
    world = group_world()
    add(world, node(cpu="2"), group(gang=3), *members())
    world.run(for_s=5)
    assert len(bound(world)) == 2
    assert condition(world) is None


def test_members_of_different_schedulers_are_an_error() -> None:
    two = {"profiles": [{"schedulerName": "default-scheduler"}, {"schedulerName": "other"}]}
    world = group_world(*GANGS, config=two)
    add(world, node(), group(gang=2), pod("g-0", "g"), pod("g-1", "g", schedulerName="other"))
    world.run(for_s=1)
    assert bound(world) == {}
    assert told(world, "g-0") == (
        'all pods in a single pod group should have the same .spec.schedulerName set, got: "other" and '
        '"default-scheduler"'
    )
    assert condition(world) is None


def test_a_group_that_disappears_holds_its_pods_back_again() -> None:
    world = group_world(*GANGS)
    add(world, node(cpu="2"), group(gang=3), *members())
    world.run(for_s=3)
    world.delete(world.objects.of(PodGroup)["d/g"])
    add(world, node("more"))
    world.run(for_s=60)
    assert bound(world) == {}


def test_a_pod_that_is_being_deleted_does_not_count_as_tried() -> None:
    world = group_world(*GANGS)
    add(world, node(), group(gang=3), *members(finalizers=None))
    going = world.pods["d/g-2"]  # type: ignore[index]
    world.objects.write(going, metadata=replace(going.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
    world.run(for_s=3)
    assert bound(world) == {}
    assert told(world, "g-0") == _WAITS


def test_anti_affinity_between_members_is_seen() -> None:
    world = group_world(*GANGS)
    apart = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "b"}}}
            ]
        }
    }
    add(world, node("n1"), node("n2"), group(gang=2))
    add(world, pod("g-0", "g", labels={"app": "a"}, affinity=apart), pod("g-1", "g", labels={"app": "b"}))
    world.run(for_s=3)
    assert len(set(bound(world).values())) == 2
    alone = group_world(*GANGS)
    add(alone, node("n1"), group(gang=2))
    add(alone, pod("g-0", "g", labels={"app": "a"}, affinity=apart), pod("g-1", "g", labels={"app": "b"}))
    alone.run(for_s=3)
    assert bound(alone) == {}


def _counted(world: World) -> dict[str, tuple[set[str], set[str]]]:
    states = world.loop.cluster.groups
    assert states is not None
    found = {key: states.get(key) for key in sorted(states.names())}
    return {key: (set(one.unscheduled), set(one.scheduled)) for key, one in found.items() if one is not None}


def test_the_state_of_a_group_is_as_if_it_had_been_counted_anew() -> None:
    world = group_world(*PREEMPTION)
    add(world, node(), group(gang=3), *members(n=5))
    world.run(for_s=10)
    world.delete(world.pods["d/g-0"])  # type: ignore[index]
    world.run(for_s=10)
    kept = _counted(world)
    world.loop.cluster.track_groups({"default-scheduler"})
    assert kept == _counted(world)
    assert kept == {"d/g": (set(), {f"d/g-{i}" for i in range(1, 5)})}


@with_and_without_topology
def test_a_basic_group_comes_pod_by_pod(gates: tuple[str, ...]) -> None:
    world = group_world(*gates)
    add(world, node(), group(), pod("g-0", "g"))
    world.run(for_s=1)
    assert set(bound(world)) == {"g-0"}
    add(world, pod("g-1", "g"), pod("g-2", "g"))
    world.run(for_s=1)
    assert len(bound(world)) == 3


@with_and_without_topology
def test_a_basic_group_waits_for_its_group_then_takes_what_it_gets(gates: tuple[str, ...]) -> None:
    world = group_world(*gates)
    add(world, node(), pod("blocker", cpu="2"))
    world.run()
    add(world, *members())
    world.run(for_s=20)
    assert told(world, "g-0") == "gated"
    add(world, group())
    world.run(for_s=5)
    assert len(bound(world)) == 3  # two, and the blocker
    assert shown(world) == _SCHEDULED
    world.delete(world.pods["d/blocker"])  # type: ignore[index]
    world.run(for_s=20)
    assert len(bound(world)) == 3


def _order_of_the_first_try(world: World) -> list[str]:
    began = listen_for(world.loop, GroupAttemptBegan)
    world.run(for_s=0.5)
    return [info.name for info in began[0].pods]


def test_members_are_tried_by_priority_then_by_when_they_were_first_tried() -> None:
    world = group_world(*GANGS)
    add(world, group(gang=2), node(cpu="1"), pod("p3", "g", priority=10), pod("p1", "g", priority=10))
    while world.loop.schedule_one(world.now_s):
        world.settle()
    world.now_s += 1
    world.loop.tick(world.now_s)
    add(world, pod("p2", "g", priority=30), pod("p4", "g", priority=20), pod("p0", "g", priority=10))
    assert _order_of_the_first_try(world) == ["p2", "p4", "p1", "p3", "p0"]


def test_members_that_are_held_back_are_not_tried() -> None:
    world = group_world(*GANGS)
    add(world, node(), group(gang=2), *members(n=2), pod("g-2", "g", schedulingGates=[{"name": "later"}]))
    assert _order_of_the_first_try(world) == ["g-0", "g-1"]
    assert set(bound(world)) == {"g-0", "g-1"}


def test_members_that_are_being_bound_are_not_tried_again() -> None:
    world = group_world(*GANGS)
    add(world, node(), group(gang=2), *members(n=2))
    world.loop.schedule_one(world.now_s)  # nobody answers yet
    assert len(world.loop.bindings) == 2
    add(world, pod("g-2", "g"))
    assert _order_of_the_first_try(world) == ["g-2"]
    assert set(bound(world)) == {"g-0", "g-1", "g-2"}


@pytest.mark.parametrize("is_known", [False, True], ids=["at once", "after it waited"])
def test_a_pod_that_somebody_else_has_bound_completes_a_gang(is_known: bool) -> None:
    world = group_world(*GANGS)
    add(world, node(), group(gang=2), pod("g-0", "g"))
    other = pod("g-1", "g", schedulerName="other")
    if is_known:
        add(world, other)
    world.run(for_s=1)
    assert told(world, "g-0") == "gated"
    if is_known:
        known = world.pods["d/g-1"]  # type: ignore[index]
        world.objects.write(known, spec=replace(known.spec, node_name="n"))
    else:
        add(world, pod("g-1", "g", schedulerName="other", nodeName="n"))
    world.run(for_s=1)
    assert set(bound(world)) == {"g-0", "g-1"}
