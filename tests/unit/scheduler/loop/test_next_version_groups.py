"""Pod groups as v1.37 schedules them, on a whole loop."""

from __future__ import annotations

from typing import Any

import pytest
from group_worlds import add, bound, group, group_world, members, node, pod, told

from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import PodKey
from kubesched.k8s.model.scheduling import PodGroup
from kubesched.testing.world import World

_GATE = "GenericWorkload"
_TOPOLOGY = (_GATE, "TopologyAwareWorkloadScheduling")


def _world(*gates: str) -> World:
    return group_world(*(gates or (_GATE,)), emulate="1.37")


def _shown(world: World, name: str = "g") -> tuple[str, str, str]:
    found = world.objects.of(PodGroup)[f"d/{name}"].condition("PodGroupInitiallyScheduled")
    return ("", "", "") if found is None else (found.status, found.reason, found.message)


def _members(n: int = 3, name: str = "g", **fields: Any) -> list[Pod]:
    return members(name, n, **{"priority": 0, **fields})


@pytest.mark.parametrize("gates", [(_GATE,), _TOPOLOGY], ids=["gangs", "topology"])
def test_a_gang_that_fits_is_bound_and_gets_the_new_condition(gates: tuple[str, ...]) -> None:
    world = _world(*gates)
    add(world, node(), group(gang=3), *_members())
    world.run()
    assert set(bound(world)) == {"g-0", "g-1", "g-2"}
    assert _shown(world) == ("True", "Scheduled", "")
    assert world.objects.of(PodGroup)["d/g"].condition("PodGroupScheduled") is None


def test_a_gang_is_given_up_when_too_few_can_still_come() -> None:
    """The third pod is not tried any more: it has the group's words, those before have their own."""
    world = _world()
    add(world, node(cpu="1"), group(gang=3), *_members())
    world.run(for_s=1)
    assert bound(world) == {}
    short = "minCount (3) cannot be satisfied: 1 scheduled, 1 remaining"
    preemption = "pod group preemption: No preemption victims found for incoming preemptor"
    assert _shown(world) == ("False", "Unschedulable", f"{short}, {preemption}")
    assert told(world, "g-0") == f"pod group is unschedulable, {short}, {preemption}"
    assert told(world, "g-1") == "0/1 nodes are available: 1 Insufficient cpu."
    assert told(world, "g-2") == short


def test_a_gang_may_be_larger_than_it_must_be() -> None:
    world = _world()
    add(world, node(cpu="2"), group(gang=2), *_members())
    world.run(for_s=1)
    assert set(bound(world)) == {"g-0", "g-1"}
    assert _shown(world) == ("True", "Scheduled", "")
    assert told(world, "g-2") == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_basic_group_needs_one_pod() -> None:
    world = _world()
    add(world, node(cpu="1"), group(), *_members(2, cpu="2"))
    world.run(for_s=1)
    assert _shown(world)[2].startswith("minCount (1) cannot be satisfied: 0 scheduled, 0 remaining")
    add(world, node("large", "2"))
    world.run(for_s=30)
    assert len(bound(world)) == 1
    assert _shown(world) == ("True", "Scheduled", "")


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        pytest.param(
            {"priority": 7},
            "all pods in a single pod group should have the same priority as the pod group's priority, got 7 and 0",
            id="priority",
        ),
        pytest.param(
            {"preemptionPolicy": "Never"},
            "all pods in a single pod group should have the same preemption policy, got Never and PreemptLowerPriority",
            id="preemption policy",
        ),
    ],
)
def test_pods_of_a_group_that_do_not_go_together_are_refused(changed: dict[str, Any], problem: str) -> None:
    world = _world()
    odd = pod("g-9", "g", **{"priority": 0, **changed})
    add(world, node(), group(gang=2), *_members(1), odd)
    world.run(for_s=1)
    assert bound(world) == {}
    assert told(world, "g-0") == told(world, "g-9") == problem
    assert _shown(world)[:2] == ("False", "SchedulerError")


def test_a_group_evicts_whoever_must_leave_and_is_nominated_to_the_room() -> None:
    world = _world()
    add(world, node("a", "2"), node("b", "2"))
    add(world, *(pod(f"low-{name}", cpu="2", priority=0, nodeName=name) for name in "ab"))
    world.run()
    add(world, group(gang=2, priority=50), *_members(2, cpu="1", priority=50))
    world.run(for_s=0.1)
    nominated = {name: world.pods[PodKey(f"d/{name}")].status.nominated_node_name for name in ("g-0", "g-1")}
    assert len(set(nominated.values()) - {None, ""}) >= 1
    assert "pod group preemption: found a placement for podgroup, preempting " in _shown(world)[2]
    world.run(for_s=60)
    assert set(bound(world)) >= {"g-0", "g-1"}
    assert _shown(world)[0] == "True"


def test_a_group_with_a_topology_preempts_too() -> None:
    world = _world(*_TOPOLOGY)
    add(world, node("a", "2", rack="r"), node("b", "1", rack="s"))
    add(world, pod("low", cpu="2", priority=0, nodeName="a"))
    world.run()
    add(world, group(gang=2, rack="rack", priority=50), *_members(2, priority=50))
    world.run(for_s=60)
    assert bound(world) == {"g-0": "a", "g-1": "a"}


def test_no_placement_fits() -> None:
    world = _world(*_TOPOLOGY)
    add(world, node("a", "1", rack="r"), node("b", "1", rack="s"), group(gang=2, rack="rack"), *_members(2))
    world.run(for_s=1)
    first = "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining"
    text = f"0/2 placements are available, first placement status: {first}"
    assert _shown(world)[2].startswith(f"pod group is unschedulable, {text}, pod group preemption: ")


def test_a_group_that_may_preempt_nobody_hears_of_its_claims_first() -> None:
    """As v1.37.0-rc.1 says it, whether there are claims or not."""
    world = _world()
    add(world, node(cpu="1"), group(gang=2), *_members(2, preemptionPolicy="Never"))
    world.run(for_s=1)
    freed = "deallocation and deletion of ResourceClaims completed"
    refused = "pod group preemption: not eligible due to preemptionPolicy=Never."
    assert _shown(world)[2].endswith(f", {freed}, {refused}")


def test_pods_that_were_tried_more_often_come_first() -> None:
    """v1.36 asks who could be tried first, and then, with us, the name."""
    world = _world()
    add(world, node(cpu="1"), pod("blocker", priority=0, nodeName="n"), group(gang=1), *_members(1))
    world.run(for_s=5)
    add(world, pod("early", "g", priority=0))
    world.delete(world.pods[PodKey("d/blocker")])
    world.run(for_s=60)
    assert set(bound(world)) == {"g-0"}
