"""Preemption by and of whole groups: who is evicted so that a gang fits, and who is spared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from group_worlds import ALPHA, PREEMPTION, TOPOLOGY, add, bound, group, group_world, members, node, pod, shown, told

from kubesched.framework.pod_info import PodInfo, PodSignature
from kubesched.framework.results import PostFilterResult
from kubesched.framework.status import Status
from kubesched.k8s.model.core import Pod, PodDisruptionBudget
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.scheduling import PodGroup
from kubesched.scheduler.engine.preemption.budgets import Budgets
from kubesched.scheduler.engine.preemption.group_victims import VictimUnit, most_important_first, split_by_budgets
from kubesched.scheduler.plugins.registry import REGISTRY
from kubesched.testing.world import World

_CONSTRAINED = ", workload aware preemption is not supported for pod groups with scheduling constraints"
_LIMITED = "preemption: not eligible due to placement-based pod group scheduling limitation"
_REFUSED = "preemption: not eligible due to workload aware preemption enabled"


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


def test_room_that_was_made_is_nominated_to_the_group() -> None:
    world = group_world(*PREEMPTION)
    add(world, node(cpu="2"), *_low(n=2))
    world.run()
    add(world, *_gang(2))
    while not world.evicted:
        world.loop.schedule_one(world.now_s)
        world.settle()
    add(world, *_low("thief", n=2, priority=50))
    world.run(for_s=30)
    assert set(bound(world)) == {"g-0", "g-1"}
    assert len(world.evicted) == 2


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
    budget = msgspec.convert(
        {
            "metadata": {"name": "b", "namespace": "d"},
            "spec": {"selector": {"matchLabels": {"app": "safe"}}},
            "status": {"disruptionsAllowed": 0},
        },
        PodDisruptionBudget,
    )
    safe = [pod(f"safe-{i}", priority=10, labels={"app": "safe"}) for i in range(2)]
    world = _settled(budget, node(cpu="3"), *safe, *_low(n=1), then=_gang(1))
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


# -- units -------------------------------------------------------------------------------------------------------------


def _info(made: Pod) -> PodInfo:
    return PodInfo(made, PodSignature(made, label_class=0, affinity_class=-1))


def _unit(priority: int, *starts: str | None, grouped: bool = False) -> VictimUnit:
    pods = []
    for number, start in enumerate(starts):
        made = pod(f"p{number}", "v" if grouped else "", priority=priority)
        made = msgspec.structs.replace(made, status=msgspec.structs.replace(made.status, start_time=start))
        pods.append((_info(made), 0))
    return VictimUnit(priority, pods)


_EARLY, _LATE = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"


@pytest.mark.parametrize(
    ("more", "less"),
    [
        pytest.param(_unit(2, _LATE), _unit(1, _EARLY), id="priority"),
        pytest.param(_unit(2, _LATE), _unit(1, _EARLY, _EARLY, grouped=True), id="priority before anything else"),
        pytest.param(_unit(1, _LATE, grouped=True), _unit(1, _EARLY), id="a group before a pod"),
        pytest.param(_unit(1, _EARLY), _unit(1, _LATE), id="the older pod"),
        pytest.param(_unit(1, _LATE, _LATE, grouped=True), _unit(1, _EARLY, grouped=True), id="the larger group"),
        pytest.param(_unit(1, _LATE, _EARLY, grouped=True), _unit(1, _LATE, _LATE, grouped=True), id="the older group"),
        pytest.param(_unit(1, _EARLY), _unit(1, None), id="one that has not started comes last"),
    ],
)
def test_more_important_units_come_first(more: VictimUnit, less: VictimUnit) -> None:
    assert most_important_first([less, more]) == [more, less]
    assert most_important_first([more, less]) == [more, less]


def test_v1_36_takes_the_start_of_the_pod_that_it_met_first() -> None:
    older, other = _unit(1, _LATE, _EARLY, grouped=True), _unit(1, _EARLY, _LATE, grouped=True)
    assert most_important_first([older, other]) == [older, other]
    assert most_important_first([older, other], by_first_start=True) == [other, older]


def _budget(allowed: int, app: str = "a", disrupted: tuple[str, ...] = ()) -> PodDisruptionBudget:
    return msgspec.convert(
        {
            "metadata": {"name": "b", "namespace": "d"},
            "spec": {"selector": {"matchLabels": {"app": app} if app else {}}},
            "status": {
                "disruptionsAllowed": allowed,
                "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
            },
        },
        PodDisruptionBudget,
    )


def _labelled(*names: str, app: str = "a") -> VictimUnit:
    return VictimUnit(1, [(_info(pod(name, labels={"app": app})), 0) for name in names])


@pytest.mark.parametrize(
    ("budgets", "units", "n_breaking"),
    [
        pytest.param([], [_labelled("p")], 0, id="no budgets"),
        pytest.param([_budget(0, "other")], [_labelled("p")], 0, id="of others"),
        pytest.param([_budget(1)], [_labelled("p")], 0, id="enough"),
        pytest.param([_budget(0)], [_labelled("p")], 1, id="nothing left"),
        pytest.param([_budget(1)], [_labelled("p", "q")], 1, id="a unit of which one pod is too many"),
        pytest.param([_budget(2)], [_labelled("p", "q")], 0, id="a unit for which it is enough"),
        pytest.param([_budget(1)], [_labelled("p"), _labelled("q")], 1, id="units share a budget"),
        pytest.param([_budget(0, disrupted=("p",))], [_labelled("p")], 0, id="counted by the API server already"),
        pytest.param([_budget(0, "")], [_labelled("p")], 0, id="an empty selector matches nothing"),
        pytest.param([_budget(1), _budget(0)], [_labelled("p")], 1, id="one of several"),
    ],
)
def test_units_that_break_a_budget(
    budgets: list[PodDisruptionBudget], units: list[VictimUnit], n_breaking: int
) -> None:
    breaking, harmless = split_by_budgets(Budgets(budgets), units)
    assert (len(breaking), len(harmless)) == (n_breaking, len(units) - n_breaking)
