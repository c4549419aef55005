"""Preemption by and of whole groups: who is evicted so that a gang fits, and who is spared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from group_worlds import (
    ALPHA,
    GANGS,
    PREEMPTION,
    TOPOLOGY,
    add,
    bound,
    budget,
    group,
    group_world,
    members,
    node,
    pod,
    shown,
    told,
)

from kubesched.framework.results import PostFilterResult
from kubesched.framework.status import Status
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.scheduling import PodGroup
from kubesched.scheduler.plugins.registry import REGISTRY
from kubesched.testing.world import World

_CONSTRAINED = ", workload aware preemption is not supported for pod groups with scheduling constraints"
_LIMITED = "preemption: not eligible due to placement-based pod group scheduling limitation"
_REFUSED = "preemption: not eligible due to workload aware preemption enabled"
_WITHOUT_GENERATOR = {"profiles": [{"plugins": {"placementGenerate": {"disabled": [{"name": "*"}]}}}]}


def _settled(*objects: KubeObject, then: Sequence[KubeObject], **settings: Any) -> World:
    """What is there is bound first; then the others come."""
    world = group_world(*settings.pop("gates", PREEMPTION), **settings)
    add(world, *objects)
    world.run()
    add(world, *then)
    world.run(for_s=30)
    return world


def _gang(gang: int = 3, n: int | None = None, *, priority: int = 100, **fields: Any) -> list[KubeObject]:
    return [group(gang=gang, priority=priority), *members(n=gang if n is None else n, priority=priority, **fields)]


def _low(name: str = "low", n: int = 3, priority: int = 10, **fields: Any) -> list[Pod]:
    return [pod(f"{name}-{i}", priority=priority, **fields) for i in range(n)]


def _evicted(world: World) -> set[str]:
    return {key.partition("/")[2] for key in world.evicted}


@pytest.mark.parametrize("emulate", [None, ALPHA])
@pytest.mark.parametrize("gang", [3, 0], ids=["gang", "basic"])
def test_all_leave_for_a_group_that_needs_all_room(gang: int, emulate: str | None) -> None:
    then = [group(gang=gang, priority=100), *members(priority=100)]
    world = _settled(node(cpu="3"), *_low(), then=then, emulate=emulate)
    assert _evicted(world) == {"low-0", "low-1", "low-2"}
    assert set(bound(world)) == {"g-0", "g-1", "g-2"}
    assert shown(world) == ("True", "Scheduled", "")


def test_victims_and_group_are_told_about_each_other() -> None:
    world = group_world(*PREEMPTION)
    add(world, node(cpu="2"), *_low(n=2))
    world.run()
    add(world, *_gang(2))
    while not world.evicted:
        assert world.loop.schedule_one(world.now_s)
        world.settle()
    uid = world.objects.of(PodGroup)["d/g"].metadata.uid
    assert {event.note for event in world.events if event.reason == "Preempted"} == {
        f"Preempted by podgroup {uid} on node cluster"
    }
    assert shown(world) == ("False", "Unschedulable", "pod group is unschedulable")
    assert told(world, "g-0") == f"0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, {_REFUSED}"


def test_only_those_leave_who_are_in_the_way() -> None:
    nodes = node("n1", cpu="2"), node("n2", cpu="2")
    world = _settled(*nodes, pod("low-1", cpu="2", priority=10), pod("low-2", priority=10), then=_gang())
    assert _evicted(world) == {"low-1"}


def test_the_lowest_priority_leaves() -> None:
    world = _settled(node(), *_low(n=2, priority=5), *_low("mid", n=2), then=_gang(2, priority=50))
    assert _evicted(world) == {"low-0", "low-1"}


def test_nobody_leaves_if_that_does_not_help() -> None:
    world = _settled(node(cpu="3"), pod("mid", priority=500), *_low(n=2), then=_gang())
    assert world.evicted == []
    assert shown(world)[2] == "pod group is unschedulable, pod group is unschedulable"


def test_nobody_of_equal_priority_leaves() -> None:
    world = _settled(node(cpu="3"), *_low(priority=100), then=_gang())
    assert world.evicted == []
    assert shown(world)[2] == "pod group is unschedulable, No preemption victims found for incoming preemptor"


def test_a_member_that_never_preempts_keeps_the_group_from_it() -> None:
    world = _settled(node(cpu="3"), *_low(), then=_gang(preemptionPolicy="Never"))
    assert world.evicted == []
    assert shown(world)[2] == "pod group is unschedulable, not eligible due to preemptionPolicy=Never."


def test_a_budget_is_respected_where_that_is_possible() -> None:
    safe = [pod(f"safe-{i}", priority=10, labels={"app": "a"}) for i in range(2)]
    world = _settled(budget(0), node(cpu="3"), *safe, *_low(n=1), then=_gang(1))
    assert _evicted(world) == {"low-0"}


def test_a_group_of_mode_pod_group_leaves_whole() -> None:
    victims = [group("v", priority=10, disruptionMode="PodGroup"), *members("v", priority=10)]
    world = _settled(node(cpu="3"), *victims, then=_gang(1))
    assert _evicted(world) == {"v-0", "v-1", "v-2"}


def test_pods_of_a_group_of_mode_pod_leave_one_by_one() -> None:
    victims = [group("v", priority=10, disruptionMode="Pod"), *members("v", priority=10)]
    world = _settled(node(cpu="3"), *victims, then=_gang(1))
    assert len(world.evicted) == 1


def test_a_single_pod_leaves_before_a_group_of_the_same_priority() -> None:
    victims = [group("v", priority=10, disruptionMode="PodGroup"), *members("v", n=2, priority=10)]
    world = _settled(node(cpu="3"), *victims, *_low(n=1), then=_gang(1))
    assert _evicted(world) == {"low-0"}


def test_the_priority_of_the_group_counts_not_that_of_its_pods() -> None:
    victims = [group("v", priority=10, disruptionMode="PodGroup"), *members("v", n=2, priority=100)]
    then = [group(gang=2, priority=100), *members(n=2, priority=10)]
    assert _evicted(_settled(node(cpu="2"), *victims, then=then)) == {"v-0", "v-1"}
    victims = [group("v", priority=100, disruptionMode="PodGroup"), *members("v", n=2, priority=10)]
    then = [group(gang=2, priority=10), *members(n=2, priority=100)]
    assert _evicted(_settled(node(cpu="2"), *victims, then=then)) == set()


def test_a_pod_without_a_group_preempts_single_members() -> None:
    victims = [
        group("v", priority=10, disruptionMode="PodGroup"),
        *(pod(f"v-{i}", "v", priority=priority) for i, priority in enumerate((30, 20, 10))),
    ]
    world = _settled(node(cpu="3"), *victims, then=[pod("high", priority=1000)])
    assert _evicted(world) == {"v-2"}


def test_a_group_with_constraints_preempts_nobody() -> None:
    both = (*TOPOLOGY, "WorkloadAwarePreemption")
    for gates, reason in ((TOPOLOGY, ""), (both, _CONSTRAINED)):
        world = _settled(
            node(cpu="3", rack="r"),
            *_low(),
            then=[group(gang=3, rack="rack", priority=100), *members(priority=100)],
            gates=gates,
        )
        assert world.evicted == []
        first = "0/1 placements are available, first placement status: pod group is unschedulable"
        assert shown(world)[2] == first + reason
        assert told(world, "g-0").endswith(
            "preemption: not eligible due to placement-based pod group scheduling limitation"
        )


def test_without_the_preemption_plugin_the_group_is_told() -> None:
    config = {"profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "DefaultPreemption"}]}}}]}
    world = _settled(node(cpu="3"), *_low(), then=_gang(), config=config)
    reason = "default preemption plugin is not registered, workload aware preemption is disabled"
    assert shown(world)[2] == f"pod group is unschedulable, {reason}"


def test_other_postfilter_plugins_are_asked_once_for_each_pod() -> None:
    asked: list[str] = []

    class Before:
        name = "Before"

        def __init__(self, _args: object, _handle: object) -> None: ...

        def post_filter(self, _cycle: object, pod: Any, _statuses: object) -> Any:
            asked.append(pod.name)
            return PostFilterResult(Status.unschedulable())

    config = {"profiles": [{"plugins": {"postFilter": {"enabled": [{"name": "Before"}]}}}]}
    world = group_world(*PREEMPTION, config=config, registry=REGISTRY.merged_with({"Before": Before}))
    add(world, node(cpu="3"), *_low())
    world.run()
    add(world, *_gang())
    world.loop.schedule_one(world.now_s)
    assert sorted(asked) == ["g-0", "g-1", "g-2"]


@pytest.mark.parametrize("gang", [3, 0], ids=["gang", "basic"])
def test_the_lowest_of_two_nodes_leaves(gang: int) -> None:
    nodes = node("n1", cpu="3"), node("n2", cpu="3")
    there = [pod("low", priority=10, nodeName="n1"), pod("very-low", cpu="2", priority=5, nodeName="n2")]
    then = [group(gang=gang, priority=100), *members(n=5, priority=100)]
    world = _settled(*nodes, *there, then=then if gang == 0 else [group(gang=5, priority=100), *then[1:]])
    assert _evicted(world) == {"very-low"}


def test_all_leave_on_several_nodes() -> None:
    world = _settled(node("n1", cpu="2"), node("n2", cpu="2"), *_low(n=4), then=_gang(4))
    assert len(world.evicted) == 4
    assert len(bound(world)) == 4


def test_all_four_leave_for_four() -> None:
    world = _settled(node(), *_low(n=4), then=_gang(4))
    assert len(world.evicted) == 4
    assert shown(world) == ("True", "Scheduled", "")


def test_those_of_middle_priority_stay() -> None:
    world = _settled(node(cpu="3"), pod("mid", priority=50), *_low(n=2), then=_gang(2))
    assert _evicted(world) == {"low-0", "low-1"}


def test_a_single_pod_is_enough() -> None:
    world = _settled(node(cpu="1"), *_low(n=1), then=_gang(1))
    assert _evicted(world) == {"low-0"}


def test_no_more_leave_than_have_to() -> None:
    world = _settled(node(), *_low(n=4), then=_gang(2))
    assert len(world.evicted) == 2


def test_an_empty_node_that_is_too_small_has_no_victims() -> None:
    world = _settled(node(cpu="1"), then=_gang(2))
    assert shown(world)[2] == "pod group is unschedulable, No preemption victims found for incoming preemptor"


def _started(made: Pod, at: str) -> Pod:
    return msgspec.structs.replace(made, status=msgspec.structs.replace(made.status, start_time=at))


def test_of_a_group_of_mode_pod_the_last_that_started_leaves() -> None:
    there = [
        _started(pod(f"v-{i}", "v", priority=10, nodeName="n"), f"2026-01-0{day}T00:00:00Z")
        for i, day in enumerate((2, 3, 1))
    ]
    world = _settled(node(cpu="3"), group("v", priority=10), *there, then=_gang(1))
    assert _evicted(world) == {"v-1"}


def test_a_whole_group_leaves_from_all_of_its_nodes() -> None:
    nodes = [node(f"n{i}", cpu="1") for i in range(3)]
    victims = [group("v", gang=3, priority=10, disruptionMode="PodGroup"), *members("v", priority=10)]
    world = _settled(*nodes, *victims, then=_gang(1))
    assert _evicted(world) == {"v-0", "v-1", "v-2"}


def test_singles_leave_before_groups_and_groups_of_mode_pod_pod_by_pod() -> None:
    there = [
        group("whole", priority=10, disruptionMode="PodGroup"),
        *members("whole", n=2, priority=10),
        group("loose", priority=10),
        *members("loose", n=2, priority=10),
        *_low(n=1),
        pod("mid", priority=50),
    ]
    world = _settled(node(cpu="6"), *there, then=_gang(2))
    assert "low-0" in _evicted(world)
    assert len([name for name in _evicted(world) if name.startswith("loose")]) == 1
    assert len(world.evicted) == 2


def test_where_a_budget_has_to_be_broken_the_lower_priority_leaves() -> None:
    safe = [pod(f"safe-{i}", priority=10 * (i + 1), labels={"app": "a"}) for i in range(2)]
    world = _settled(budget(0), node(cpu="2"), *safe, then=_gang(1))
    assert _evicted(world) == {"safe-0"}


def test_two_halves_need_only_the_one_without_a_budget() -> None:
    safe = [pod(f"safe-{i}", priority=10, labels={"app": "a"}) for i in range(2)]
    then = [group(gang=2, priority=100), *members(n=2, cpu="500m", priority=100)]
    world = _settled(budget(0), node(cpu="3"), *safe, *_low(n=1), then=then)
    assert _evicted(world) == {"low-0"}
    assert {"g-0", "g-1"} <= set(bound(world))


def test_with_the_gate_off_pods_preempt_one_by_one() -> None:
    world = _settled(node(cpu="3"), *_low(), then=_gang(), gates=GANGS)
    assert len(world.evicted) == 3
    notes = {event.note.partition(" on node ")[0].rpartition(" ")[0] for event in world.events if event.related}
    assert notes == {"Preempted by pod"}


def test_a_group_that_is_gone_when_it_would_preempt_is_an_error() -> None:
    world = group_world(*PREEMPTION)
    add(world, node(cpu="1"), *_low(n=1))
    world.run()
    add(world, *_gang(1))
    world.loop.cluster.objects.pod_groups.pop("d/g")
    world.loop.schedule_one(world.now_s)
    world.settle()
    assert told(world, "g-0") == ('failed to get pod group object: podgroup.scheduling.k8s.io "g" not found')
    assert world.evicted == []


def test_a_pod_whose_group_is_gone_does_not_preempt_where_there_is_topology() -> None:
    world = group_world("GenericWorkload", "TopologyAwareWorkloadScheduling", config=_WITHOUT_GENERATOR)
    add(world, node(cpu="1"), *_low(n=1))
    world.run()
    add(world, *members(n=1))
    world.run(for_s=1)
    assert told(world, "g-0").endswith("preemption: pod group for pod not found")
    assert world.evicted == []


def test_with_all_gates_off_members_preempt_as_any_pod() -> None:
    world = _settled(node(cpu="1"), *_low(n=1), then=_gang(1), gates=())
    assert _evicted(world) == {"low-0"}
