"""Groups of groups as v1.37 schedules them, on a whole loop."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from group_worlds import add, bound, group_world, members, node, pod, told
from msgspec.structs import replace

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.scheduling import CompositePodGroup, PodGroup
from kubesched.scheduler.newer.queue import INCOMPLETE
from kubesched.scheduler.queue.sub_queues import GATED
from kubesched.testing.world import World

_GATES = ("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup")
_NO_VICTIMS = "pod group preemption: No preemption victims found for incoming preemptor"


def _world(*more: str) -> World:
    return group_world(*_GATES, *more, emulate="1.37")


def _composite(name: str = "a", least: int = 0, parent: str = "", **spec: Any) -> CompositePodGroup:
    manifest = {
        "metadata": {"name": name, "namespace": "d"},
        "spec": {
            "schedulingPolicy": {"gang": {"minGroupCount": least}} if least else {"basic": {}},
            **({"parentCompositePodGroupName": parent} if parent else {}),
            **spec,
        },
    }
    return msgspec.convert(manifest, CompositePodGroup)


def _leaf(name: str, least: int = 0, parent: str = "a", **spec: Any) -> PodGroup:
    policy = {"gang": {"minCount": least}} if least else {"basic": {}}
    manifest = {
        "metadata": {"name": name, "namespace": "d"},
        "spec": {"schedulingPolicy": policy, "parentCompositePodGroupName": parent, **spec},
    }
    return msgspec.convert(manifest, PodGroup)


def _gang(name: str, n: int, parent: str = "a", **fields: Any) -> list[Pod | PodGroup]:
    return [_leaf(name, n, parent), *_pods(name, n, **fields)]


def _pods(name: str, n: int, **fields: Any) -> list[Pod]:
    return members(name, n, **{"priority": 0, **fields})


def _shown(world: World, name: str) -> tuple[str, str, str]:
    found = world.objects.of(PodGroup)[f"d/{name}"].condition("PodGroupInitiallyScheduled")
    return ("", "", "") if found is None else (found.status, found.reason, found.message)


def _waiting(world: World) -> dict[str, int]:
    counts = world.loop.queue.contents.pending_pods()
    return {place: n for place, n in counts.items() if n}


def _topology(key: str) -> dict[str, Any]:
    return {"schedulingConstraints": {"topology": [{"key": key}]}}


def test_all_gangs_below_are_bound_together() -> None:
    world = _world()
    add(world, node(), _composite(least=2), *_gang("x", 2), *_gang("y", 2))
    world.run()
    assert set(bound(world)) == {"x-0", "x-1", "y-0", "y-1"}
    assert _shown(world, "x") == _shown(world, "y") == ("True", "Scheduled", "")
    assert world.objects.of(CompositePodGroup)["d/a"].status.conditions is None


def test_a_gang_of_groups_is_bound_as_a_whole_or_not_at_all() -> None:
    """What fits is told what its parent came to, and v1.37 says twice what preemption found."""
    world = _world()
    add(world, node(cpu="3"), _composite(least=2), *_gang("x", 2), *_gang("y", 2))
    world.run(for_s=1)
    assert bound(world) == {}
    short = "pod group is unschedulable, 0/1 placements are available, first placement status"
    above = f"{short}: minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
    assert _shown(world, "x") == ("False", "Unschedulable", f"{above}, {_NO_VICTIMS}, {_NO_VICTIMS}")
    assert _shown(world, "y")[2] == f"{above}, {_NO_VICTIMS}"
    assert told(world, "x-0") == above
    assert told(world, "y-0") == f"pod group is unschedulable, {above}, {_NO_VICTIMS}"
    assert told(world, "y-1") == "0/1 nodes are available: 1 Insufficient cpu."
    add(world, node("more"))
    world.run(for_s=30)
    assert len(bound(world)) == 4


def test_a_basic_one_takes_the_groups_that_fit() -> None:
    world = _world()
    add(world, node(cpu="3"), _composite(), *_gang("x", 2), *_gang("y", 2), *_gang("z", 1))
    world.run(for_s=1)
    assert set(bound(world)) == {"x-0", "x-1", "z-0"}
    assert [_shown(world, name)[0] for name in "xyz"] == ["True", "False", "True"]


def test_it_waits_until_enough_groups_have_enough_pods() -> None:
    world = _world()
    add(world, node(), _composite(least=2), *_gang("x", 1), _leaf("y", 2), *_pods("y", 1))
    world.run(for_s=60)
    assert (bound(world), _waiting(world)) == ({}, {GATED: 2})
    add(world, pod("y-late", "y", priority=0))
    world.run(for_s=1)
    assert len(bound(world)) == 3


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_pods_wait_apart_until_every_group_above_is_there(depth: int) -> None:
    world = _world()
    names = [f"c{level}" for level in range(depth)]
    above = [_composite(name, 1, parent) for name, parent in zip(names, ["", *names], strict=False)]
    add(world, node(), *_gang("x", 2, names[-1]), *above[1:])
    world.run(for_s=1)
    assert _waiting(world) == {INCOMPLETE: 2}
    add(world, above[0])
    world.run(for_s=1)
    assert len(bound(world)) == 2


def test_groups_in_a_circle_wait_until_it_is_broken() -> None:
    world = _world()
    add(world, node(), _composite("a", 0, "b"), _composite("b", 0, "a"), *_gang("x", 2))
    world.run(for_s=60)
    assert (bound(world), _waiting(world)) == ({}, {INCOMPLETE: 2})
    world.objects.remove(world.objects.of(CompositePodGroup)["d/a"])
    add(world, _composite("a"))
    world.run(for_s=1)
    assert len(bound(world)) == 2


def test_a_parent_that_goes_takes_its_pods_out_of_the_queue() -> None:
    world = _world()
    add(world, node(cpu="1"), _composite(least=1), *_gang("x", 2))
    world.run(for_s=1)
    world.objects.remove(world.objects.of(CompositePodGroup)["d/a"])
    add(world, node("large"))
    world.run(for_s=60)
    assert (bound(world), _waiting(world)) == ({}, {INCOMPLETE: 2})
    add(world, _composite(least=1))
    world.run(for_s=1)
    assert len(bound(world)) == 2


def test_a_group_that_goes_leaves_the_others_in_the_queue() -> None:
    world = _world()
    add(world, node(cpu="2"), _composite(), *_gang("x", 3), *_gang("y", 3))
    world.run(for_s=1)
    world.objects.remove(world.objects.of(PodGroup)["d/x"])
    assert _waiting(world)[INCOMPLETE] == 3
    add(world, node("large", "3"))
    world.run(for_s=60)
    assert set(bound(world)) == {"y-0", "y-1", "y-2"}


def test_a_tree_is_called_when_the_group_of_the_pod_that_held_it_back_is_gone() -> None:
    world = _world()
    (gated,) = _pods("x", 1, schedulingGates=[{"name": "later"}])
    add(world, node(cpu="2"), _composite(), _leaf("x"), gated, _leaf("y"), *_pods("y", 1))
    world.run(for_s=1)
    assert _waiting(world)[GATED] == 2
    world.objects.remove(world.objects.of(PodGroup)["d/x"])
    world.run(for_s=1)
    assert set(bound(world)) == {"y-0"}
    assert _waiting(world) == {INCOMPLETE: 1}


def test_topology_is_kept_level_by_level() -> None:
    """One zone for all, and in it one rack for each group."""
    world = _world()
    for zone, racks in (("z0", ("r0",)), ("z1", ("r1", "r2"))):
        add(world, *(node(f"n-{rack}", "2", zone=zone, rack=rack) for rack in racks))
    gangs = [item for name in "xy" for item in (_leaf(name, 2, **_topology("rack")), *_pods(name, 2))]
    add(world, _composite(least=2, **_topology("zone")), *gangs)
    world.run()
    nodes = bound(world)
    assert len({nodes["x-0"], nodes["x-1"]}) == len({nodes["y-0"], nodes["y-1"]}) == 1
    assert set(nodes.values()) == {"n-r1", "n-r2"}


def test_the_zone_is_pinned_by_pods_of_any_group() -> None:
    world = _world()
    add(world, node("a", "2", zone="z0"), node("b", "8", zone="z1"))
    add(world, _composite(**_topology("zone")), _leaf("x"), *_pods("x", 1, nodeName="a"))
    add(world, _leaf("y"), *_pods("y", 3))
    world.run(for_s=5)
    assert set(bound(world).values()) <= {"a"}
    assert "y-2" not in bound(world)


def test_it_preempts_as_a_whole_and_is_nominated() -> None:
    world = _world()
    add(world, node("n", "2"), pod("low-0", priority=-5), pod("low-1", priority=-5))
    world.run()
    add(world, _composite(least=2), *_gang("x", 1), *_gang("y", 1))
    world.run(for_s=30)
    assert set(bound(world)) == {"x-0", "y-0"}
    assert sorted(world.evicted) == ["d/low-0", "d/low-1"]
    notes = {event.note for event in world.events if event.reason == "Preempted"}
    uid = world.objects.of(CompositePodGroup)["d/a"].metadata.uid
    assert notes == {f"Preempted by compositepodgroup {uid} on node cluster"}


@pytest.mark.parametrize(("mode", "gone"), [("single", 1), ("all", 2)])
def test_a_tree_may_have_to_leave_as_a_whole(mode: str, gone: int) -> None:
    world = _world()
    add(world, node("n", "2"), _composite(priority=-5, disruptionMode={mode: {}}))
    for name in "xy":
        add(world, _leaf(name, 1, priority=-5), *_pods(name, 1, priority=-5))
    world.run()
    add(world, _leaf("g", 1, ""), *_pods("g", 1))
    world.run(for_s=10)
    assert len(world.evicted) == gone


def test_all_pods_need_the_priority_of_the_topmost_group() -> None:
    world = _world()
    add(world, node(), _composite(priority=7), _leaf("x", priority=0), *_pods("x", 1), _leaf("y"))
    world.run(for_s=1)
    text = "all pods in a single pod group should have the same priority as the pod group's priority, got 0 and 7"
    assert _shown(world, "x") == _shown(world, "y") == ("False", "SchedulerError", text)
    assert told(world, "x-0") == text


@pytest.mark.parametrize("of_pods", ["Never", "PreemptLowerPriority"])
def test_with_its_gate_the_group_says_whether_it_preempts(of_pods: str) -> None:
    world = _world("PodGroupPreemptionPolicy")
    add(world, node("n", "1"), pod("low", priority=-5))
    world.run()
    never = _composite(preemptionPolicy="Never")
    add(world, never, _leaf("x", 1), *_pods("x", 1, preemptionPolicy=of_pods))
    world.run(for_s=10)
    assert world.evicted == []
    if of_pods == "Never":
        assert _shown(world, "x")[2].endswith("pod group preemption: not eligible due to preemptionPolicy=Never.")
    else:
        start = "all pods in a single pod group should have the same preemption policy as the pod group's preemption"
        assert _shown(world, "x")[2] == f"{start} policy, got PreemptLowerPriority and Never"


def test_late_pods_join_what_is_bound() -> None:
    world = _world()
    add(world, node(), _composite(least=2), *_gang("x", 1), *_gang("y", 1))
    world.run()
    add(world, pod("late", "x", priority=0))
    world.run(for_s=1)
    assert len(bound(world)) == 3


def test_without_its_gate_parents_do_not_count() -> None:
    world = group_world("GenericWorkload", emulate="1.37")
    add(world, node(), *_gang("x", 2))
    world.run(for_s=1)
    assert len(bound(world)) == 2


def test_a_parent_may_change_while_its_pods_wait() -> None:
    world = _world()
    add(world, node(), _composite(least=2), *_gang("x", 1))
    world.run(for_s=60)
    assert bound(world) == {}
    known = world.objects.of(CompositePodGroup)["d/a"]
    world.objects.update(replace(known, spec=_composite(least=1).spec))
    world.run(for_s=1)
    assert len(bound(world)) == 1
