"""Pod groups where extenders have a say: they are asked about all pods before the group is tried."""

from __future__ import annotations

from typing import Any

import pytest
from fake_extender import ExtendedWorld, FakeExtender, Json, accept, accept_all

from kubesched.k8s.model.scheduling import PodGroup
from kubesched.testing import make
from kubesched.testing.make import Manifest

_GATES = ("GenericWorkload", "GangScheduling")


def _world(extender: FakeExtender, *nodes: tuple[str, int], gates: tuple[str, ...] = _GATES) -> ExtendedWorld:
    world = ExtendedWorld(extender, config={"featureGates": dict.fromkeys(gates, True)})
    world.put(
        *(make.node(name, cpu=cpu, labels={"kubernetes.io/hostname": name, "rack": name[0]}) for name, cpu in nodes)
    )
    return world


def _gang(n: int, *, rack: bool = False, priority: int = 0, **spec: Any) -> list[Manifest]:
    constraints = {"schedulingConstraints": {"topology": [{"key": "rack"}]}} if rack else {}
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": n}}, "priority": priority, **constraints},
    }
    named = {"schedulingGroup": {"podGroupName": "g"}, "priority": priority, **spec}
    return [group, *(make.pod(f"g-{i}", cpu=1, spec=named) for i in range(n))]


def _told(world: ExtendedWorld) -> str:
    group = world.objects.of(PodGroup)["default/g"]
    assert isinstance(group, PodGroup)
    found = group.condition("PodGroupScheduled")
    return "" if found is None else f"{found.status} {found.message}".strip()


def test_a_gang_goes_where_the_extender_lets_it() -> None:
    extender = FakeExtender(filter=accept("b", "c"))
    world = _world(extender, ("a", 4), ("b", 2), ("c", 2))
    world.put(*_gang(4))
    world.run(for_s=0.5)
    assert sorted(world.bound.values()) == ["b", "b", "c", "c"]
    assert extender.verbs() == ["filter"] * 4
    assert _told(world) == "True"


def test_a_gang_that_the_extender_leaves_too_few_nodes_for_waits() -> None:
    extender = FakeExtender(filter=lambda said: {"NodeNames": ["b"], "FailedNodes": {"a": "no licence"}})
    world = _world(extender, ("a", 4), ("b", 2))
    world.put(*_gang(3))
    world.run(for_s=0.5)
    assert world.bound == {}
    assert _told(world) == "False pod group is unschedulable"
    assert any("1 Insufficient cpu, 1 no licence." in note for note in world.notes())


def test_scores_of_the_extender_count() -> None:
    def prioritize(said: Json) -> Any:
        return [{"Host": name, "Score": 10 if name == "c" else 0} for name in said["NodeNames"]]

    world = _world(FakeExtender(filter=accept_all, prioritize=prioritize), ("a", 4), ("b", 4), ("c", 2))
    world.put(*_gang(2))
    world.run(for_s=0.5)
    assert sorted(world.bound.values()) == ["c", "c"]


def test_an_extender_that_fails_is_an_error_of_the_group() -> None:
    world = _world(FakeExtender(filter=lambda _: 500), ("a", 4))
    world.put(*_gang(2))
    world.run(for_s=0.5)
    assert world.bound == {}
    assert _told(world).startswith("False failed to schedule other pod from a pod group: ")


def test_an_extender_that_can_be_done_without_may_fail() -> None:
    world = _world(FakeExtender(filter=lambda _: 500, options={"ignorable": True}), ("a", 4))
    world.put(*_gang(2))
    world.run(for_s=0.5)
    assert len(world.bound) == 2


def test_a_group_that_interests_no_extender_does_not_wait() -> None:
    only = {"managedResources": [{"name": "example.com/gpu"}]}
    extender = FakeExtender(filter=accept(), options=only)
    world = _world(extender, ("a", 4))
    world.put(*_gang(2))
    world.run(for_s=0.5)
    assert len(world.bound) == 2
    assert extender.asked == []


def test_others_are_scheduled_while_the_extender_is_asked() -> None:
    only = {"managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}]}
    world = _world(FakeExtender(filter=accept_all, options=only), ("a", 4))
    world.is_slow = True
    world.put(*_gang(3, containers=[{"name": "c", "resources": {"requests": {"cpu": "1", "example.com/gpu": "1"}}}]))
    world.run(for_s=0.1)
    world.put(make.pod("other", cpu=2))
    world.run(for_s=0.1)
    assert set(world.bound) == {"default/other"}
    world.catch_up()
    world.run(for_s=0.5)
    assert set(world.bound) == {"default/other"}  # the gang is tried on what is left
    assert _told(world) == "False pod group is unschedulable"


def test_a_pod_that_is_deleted_meanwhile_is_forgotten() -> None:
    world = _world(FakeExtender(filter=accept_all), ("a", 4))
    world.is_slow = True
    world.put(*_gang(2), make.pod("g-9", cpu=1, spec={"schedulingGroup": {"podGroupName": "g"}}))
    world.run(for_s=0.1)
    world.delete(world.pods["default/g-9"])  # type: ignore[index]
    world.is_slow = False
    world.catch_up()
    world.run(for_s=0.5)
    assert set(world.bound) == {"default/g-0", "default/g-1"}
    assert world.loop.queue.n_in_flight == 0


def test_nodes_that_only_a_mate_opens_are_asked_about_in_a_second_round() -> None:
    """The second pod wants to be beside the first, which is nowhere yet."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "first"}}}
    beside = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    extender = FakeExtender(filter=accept_all)
    world = _world(extender, ("a", 4), ("b", 4))
    group, first, second = _gang(2)
    first["metadata"]["labels"] = {"app": "first"}
    first["spec"]["priority"] = 10
    second["spec"]["affinity"] = beside
    world.put(group, first, second)
    world.run(for_s=0.5)
    assert len(set(world.bound.values())) == 1
    assert len(world.bound) == 2
    assert len(extender.asked) == 2


def test_a_rack_is_chosen_among_nodes_that_the_extender_accepts() -> None:
    gates = (*_GATES, "TopologyAwareWorkloadScheduling")
    world = _world(
        FakeExtender(filter=accept("a1", "b1", "b2", "c1")),
        *((f"{r}{i}", 2) for r in "abc" for i in (1, 2)),
        gates=gates,
    )
    world.put(*_gang(3, rack=True))
    world.run(for_s=0.5)
    assert set(world.bound.values()) == {"b1", "b2"}


@pytest.mark.parametrize("gates", [_GATES, (*_GATES, "WorkloadAwarePreemption")], ids=["by pod", "by group"])
def test_a_group_preempts_where_the_extender_lets_it(gates: tuple[str, ...]) -> None:
    world = _world(FakeExtender(filter=accept("b")), ("a", 2), ("b", 2), gates=gates)
    world.put(*(make.pod(f"low-{i}", cpu=1, spec={"priority": -1}) for i in range(0)))
    world.put(*(make.pod(f"low-{n}{i}", cpu=1, spec={"priority": -1, "nodeName": n}) for n in "ab" for i in range(2)))
    world.put(*_gang(2, priority=100))
    world.run(for_s=30)
    assert {where for who, where in world.bound.items() if "/g-" in who} == {"b"}
    assert set(world.evicted) >= {"default/low-b0", "default/low-b1"}


def test_a_pod_that_waits_for_an_extender_is_not_taken_for_lost() -> None:
    world = _world(FakeExtender(filter=accept_all), ("a", 4))
    world.is_slow = True
    world.put(*_gang(2))
    world.run(for_s=0.1)
    assert world.loop.queue.n_in_flight == 2
    world.run(for_s=3)
    assert world.bound == {}
    world.catch_up()
    world.run(for_s=0.5)
    assert len(world.bound) == 2
