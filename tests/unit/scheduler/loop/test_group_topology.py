"""Groups that have to stay in one rack: which one is chosen, and what becomes of those that fit in none.

Nodes have 2 CPU, pods ask for 1 unless said otherwise; a rack is written as its number of nodes.
"""

from __future__ import annotations

from typing import Any

import pytest
from group_worlds import TOPOLOGY, add, bound, group, group_world, members, node, pod, shown, told

from kubesched.k8s.model.core import Node
from kubesched.testing.world import World

_FULL = "2"


def _racks(*sizes: int, zone: int = 0) -> list[Node]:
    """Racks r1, r2 …"""
    return [
        node(f"r{rack}-{i}", cpu="2", rack=f"r{rack}", zone=f"z{(rack + 1) // 2}" if zone else "z")
        for rack, n_nodes in enumerate(sizes, 1)
        for i in range(n_nodes)
    ]


def _world(*sizes: int, used: dict[str, int] | None = None, **settings: Any) -> World:
    """With so many CPUs used on some nodes."""
    world = group_world(*TOPOLOGY, **settings)
    add(world, *_racks(*sizes))
    for name, n in (used or {}).items():
        add(world, *(pod(f"used-{name}-{i}", nodeName=name) for i in range(n)))
    return world


def _used_racks(world: World, name: str = "g") -> set[str]:
    nodes = world.objects.of(Node)
    return {nodes[where].labels["rack"] for who, where in bound(world).items() if who.startswith(f"{name}-")}


def _come(world: World, name: str = "g", gang: int = 3, n: int = 3, rack: str = "rack", **fields: Any) -> None:
    add(world, group(name, gang=gang, rack=rack), *members(name, n=n, **fields))
    world.run(for_s=15)


@pytest.mark.parametrize(
    ("sizes", "used", "rack"),
    [
        pytest.param((3, 2, 1), {"r2-0": 1, "r2-1": 1}, "r1", id="the only one with room"),
        pytest.param((2, 3, 1), {}, "r1", id="the fuller one: 3 of 4 before 3 of 6"),
        pytest.param((2, 3, 3, 1), {"r1-0": 2, "r2-0": 2, "r3-0": 1}, "r2", id="what runs there counts"),
    ],
)
def test_a_gang_goes_to_one_rack(sizes: tuple[int, ...], used: dict[str, int], rack: str) -> None:
    world = _world(*sizes, used=used)
    _come(world)
    assert _used_racks(world) == {rack}
    assert shown(world) == ("True", "Scheduled", "")


def test_a_gang_that_fits_in_no_rack_waits() -> None:
    world = _world(2, 1, 1)
    _come(world, cpu=_FULL)
    assert bound(world) == {}
    message = "0/3 placements are available, first placement status: pod group is unschedulable"
    assert shown(world) == ("False", "Unschedulable", message)
    assert {told(world, f"g-{i}")[:30] for i in range(3)} == {
        "pod group is unschedulable, wa",
        "0/2 nodes are available: 2 Ins",
    }


def test_no_node_has_the_label() -> None:
    world = _world(2)
    _come(world, rack="row")
    assert {told(world, f"g-{i}") for i in range(3)} == {"no feasible placements found"}
    assert shown(world) == ("False", "Unschedulable", "no feasible placements found")


def test_a_gang_is_bound_once_a_node_is_free() -> None:
    world = _world(3, used={"r1-0": 2, "r1-1": 2})
    _come(world)
    assert _used_racks(world) == set()
    world.delete(world.pods["d/used-r1-0-0"])  # type: ignore[index]
    world.run(for_s=20)
    assert _used_racks(world) == {"r1"}


def test_two_gangs_go_where_they_fit() -> None:
    world = _world(3, 2)
    _come(world, "a", cpu=_FULL)
    _come(world, "b", gang=2, n=2, cpu=_FULL)
    assert (_used_racks(world, "a"), _used_racks(world, "b")) == ({"r1"}, {"r2"})


def test_two_gangs_share_a_rack() -> None:
    world = _world(3)
    _come(world, "a")
    _come(world, "b")
    assert (_used_racks(world, "a"), _used_racks(world, "b")) == ({"r1"}, {"r1"})


def test_the_second_gang_does_not_fit() -> None:
    world = _world(2, 1)
    _come(world, "a")
    _come(world, "b")
    assert (_used_racks(world, "a"), _used_racks(world, "b")) == ({"r1"}, set())


def test_one_gang_by_rack_and_one_by_zone() -> None:
    world = group_world(*TOPOLOGY)
    add(world, *_racks(1, 1, 1, zone=1))
    _come(world, "a", gang=2, n=2, rack="rack")
    _come(world, "b", gang=2, n=2, rack="zone")
    nodes = world.objects.of(Node)
    zones = {nodes[where].labels["zone"] for who, where in bound(world).items() if who.startswith("b-")}
    assert (len(_used_racks(world, "a")), len(zones)) == (1, 1)


def test_more_pods_than_the_gang_needs_stay_together() -> None:
    world = _world(1, 2)
    _come(world, gang=2, n=3)
    assert _used_racks(world) == {"r2"}
    assert len(bound(world)) == 3


def test_pods_with_a_node_pin_the_rack() -> None:
    world = _world(3, 2)
    _come(world)
    assert _used_racks(world) == {"r2"}
    add(world, pod("g-3", "g"))
    world.run(for_s=15)
    assert _used_racks(world) == {"r2"}
    add(world, pod("g-4", "g"))
    world.run(for_s=15)
    assert "g-4" not in bound(world)
    assert len(bound(world)) == 4


@pytest.mark.parametrize(
    ("sizes", "used", "racks", "n_bound"),
    [
        pytest.param((2,), {}, {"r1"}, 3, id="the only rack"),
        pytest.param((1, 1), {}, {"r1"}, 2, id="as many as fit into one"),
        pytest.param((2, 3), {}, {"r1"}, 3, id="the fuller one"),
        pytest.param((3, 3, 4), {"r1-0": 1, "r2-0": 2}, {"r2"}, 3, id="what runs there counts"),
    ],
)
def test_a_basic_group_goes_to_one_rack(
    sizes: tuple[int, ...], used: dict[str, int], racks: set[str], n_bound: int
) -> None:
    world = _world(*sizes, used=used)
    _come(world, gang=0)
    assert _used_racks(world) == racks
    assert len([name for name in bound(world) if name.startswith("g-")]) == n_bound


def test_a_basic_group_that_comes_one_by_one_is_pinned_by_the_first() -> None:
    world = _world(4, 1, used={"r1-0": 2})
    add(world, group(rack="rack"))
    for i in range(3):
        add(world, pod(f"g-{i}", "g"))
        world.run(for_s=5)
    assert _used_racks(world) == {"r2"}
    assert "g-2" not in bound(world)


def test_pods_on_two_racks_are_an_error() -> None:
    world = _world(2, 2)
    add(world, pod("g-0", "g", nodeName="r1-0"), pod("g-1", "g", nodeName="r2-0"))
    add(world, group(rack="rack"), pod("g-2", "g"))
    world.run(for_s=2)
    error = "cannot determine domain for already scheduled pods: more than 1 domain found for pod group: r1, r2"
    assert shown(world) == ("False", "SchedulerError", error)
    assert told(world, "g-2") == error


def test_pods_that_are_not_alike_are_tried_in_every_rack() -> None:
    world = _world(1, 2, 3)
    add(world, group(gang=3, rack="rack"), pod("g-0", "g", cpu="2"), pod("g-1", "g"), pod("g-2", "g", cpu="2"))
    world.run(for_s=5)
    assert _used_racks(world) == {"r3"}


def test_spreading_within_the_rack_is_respected() -> None:
    apart = [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "g"}},
            "nodeAffinityPolicy": "Honor",
        }
    ]
    world = _world(3)
    _come(world, labels={"app": "g"}, topologySpreadConstraints=apart)
    assert len(set(bound(world).values())) == 3


def test_a_basic_group_of_which_nothing_fits_waits() -> None:
    world = _world(1, 1)
    _come(world, gang=0, cpu="3")
    assert bound(world) == {}
    message = "0/2 placements are available, first placement status: pod group is unschedulable"
    assert shown(world) == ("False", "Unschedulable", message)


def test_one_pod_of_a_basic_group_fits() -> None:
    world = _world(1, 1)
    add(world, group(rack="rack"), pod("g-0", "g", cpu="3"), pod("g-1", "g", cpu="2"), pod("g-2", "g", cpu="3"))
    world.run(for_s=5)
    assert set(bound(world)) == {"g-1"}
    assert shown(world) == ("True", "Scheduled", "")


def test_a_basic_group_leaves_a_full_rack_alone() -> None:
    world = _world(2, 2, 2, used={"r2-0": 2, "r2-1": 1})
    _come(world, gang=0)
    assert len(_used_racks(world)) == 1
    assert _used_racks(world) != {"r2"}


def test_two_basic_groups_go_to_racks_of_their_own() -> None:
    world = _world(3, 1)
    _come(world, "a", gang=0, n=2)
    _come(world, "b", gang=0, n=3)
    assert (_used_racks(world, "a"), _used_racks(world, "b")) == ({"r2"}, {"r1"})


def test_two_basic_groups_share_the_only_rack() -> None:
    world = _world(3)
    _come(world, "a", gang=0)
    _come(world, "b", gang=0)
    assert (_used_racks(world, "a"), _used_racks(world, "b")) == ({"r1"}, {"r1"})


def test_one_basic_group_by_rack_and_one_by_zone() -> None:
    world = group_world(*TOPOLOGY)
    add(world, *_racks(1, 1, 1, zone=1))
    _come(world, "a", gang=0, n=2, rack="rack")
    _come(world, "b", gang=0, n=4, rack="zone")
    nodes = world.objects.of(Node)
    zones = {nodes[where].labels["zone"] for who, where in bound(world).items() if who.startswith("b-")}
    assert (len(_used_racks(world, "a")), len(zones)) == (1, 1)


def test_a_pod_that_finds_its_rack_full_waits_for_room_in_it() -> None:
    world = _world(1, 2)
    add(world, group("a", rack="rack"), *members("a", n=2))
    world.run(for_s=5)
    assert _used_racks(world, "a") == {"r1"}
    add(world, group("b", rack="rack"), *members("b", n=3))
    world.run(for_s=5)
    assert _used_racks(world, "b") == {"r2"}
    add(world, pod("a-2", "a"))
    world.run(for_s=15)
    assert "a-2" not in bound(world)
    world.delete(world.pods["d/a-0"])  # type: ignore[index]
    world.run(for_s=20)
    assert bound(world)["a-2"] == "r1-0"


def test_a_pod_of_a_basic_group_waits_for_somebody_to_leave_its_rack() -> None:
    world = _world(1, 1, used={"r1-0": 1})
    add(world, group(rack="rack"), pod("g-0", "g"))
    world.run(for_s=5)
    assert _used_racks(world) == {"r1"}  # 2 of 2 before 1 of 2
    add(world, pod("g-1", "g"))
    world.run(for_s=15)
    assert "g-1" not in bound(world)
    world.delete(world.pods["d/used-r1-0-0"])  # type: ignore[index]
    world.run(for_s=20)
    assert bound(world)["g-1"] == "r1-0"
