"""What happens while an extender thinks."""

from __future__ import annotations

from typing import Any

from fake_extender import ExtendedWorld, FakeExtender, accept, accept_all
from msgspec.structs import replace

from kubesched.framework import OK, CycleState, Handle, NodeInfo, PodInfo, Status
from kubesched.scheduler.plugins.registry import REGISTRY
from kubesched.testing import make

GPU = {"example.com/gpu": 1}
MANAGED = {"managedResources": [{"name": "example.com/gpu"}]}


def _slow(extender: FakeExtender, *items: Any) -> ExtendedWorld:
    world = ExtendedWorld(extender)
    world.is_slow = True
    world.put(*items)
    world.run()
    return world


def _node(name: str, cpu: int = 1) -> Any:
    return make.node(name, cpu=cpu, allocatable={"example.com/gpu": 4})


def test_other_pods_do_not_wait_for_the_extender() -> None:
    extender = FakeExtender(filter=accept_all, options=MANAGED)
    world = _slow(extender, _node("a", 4), make.pod("first", requests=GPU), make.pod("second"))
    assert list(world.bound) == ["default/second"]
    assert [queued.key for queued in world.loop.queue.contents.in_flight] == ["default/first"]
    world.catch_up()
    assert list(world.bound) == ["default/second", "default/first"]
    assert world.loop.queue.contents.in_flight == []


def test_a_node_that_filled_up_meanwhile_is_not_taken() -> None:
    extender = FakeExtender(filter=accept_all, options=MANAGED)
    world = _slow(extender, _node("a"), _node("b"), make.pod("first", cpu=1, requests=GPU), make.pod("second", cpu=1))
    assert world.bound == {"default/second": "a"}
    world.catch_up()
    assert world.bound["default/first"] == "b"  # type: ignore[index]
    assert len(extender.asked) == 1


def test_the_cycle_begins_anew_when_others_took_all_nodes_that_were_asked_about() -> None:
    extender = FakeExtender(filter=accept_all, options=MANAGED)
    world = _slow(extender, _node("a"), make.pod("first", cpu=1, requests=GPU), make.pod("second", cpu=1))
    world.put(_node("b"))
    world.catch_up()
    assert [said["NodeNames"] for _, said in extender.asked] == [["a"]]
    world.catch_up()
    assert [said["NodeNames"] for _, said in extender.asked] == [["a"], ["b"]]
    assert world.bound == {"default/second": "a", "default/first": "b"}


def test_a_pod_says_what_is_in_its_way_now_when_all_nodes_were_taken() -> None:
    extender = FakeExtender(filter=accept_all, options=MANAGED)
    world = _slow(extender, _node("a"), make.pod("first", cpu=1, requests=GPU), make.pod("second", cpu=1))
    world.catch_up()
    assert world.notes()[0].startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_scores_are_given_on_the_cluster_as_it_is_after_the_pause() -> None:
    """Two pods that do not see each other when they are asked about still spread."""
    world = _slow(FakeExtender(prioritize=lambda _: []), _node("a", 4), _node("b", 4), make.pod("p", cpu=2))
    world.put(make.pod("q", cpu=2))
    world.run()
    world.catch_up()
    assert sorted(world.bound.values()) == ["a", "b"]


def test_a_node_that_left_meanwhile_is_not_taken() -> None:
    world = _slow(FakeExtender(filter=accept("a", "c")), _node("a"), _node("b"), _node("c"), make.pod("p"))
    world.delete(world.loop.cluster.table.nodes[0])
    world.catch_up()
    assert world.bound == {"default/p": "c"}


def test_a_pod_deleted_meanwhile_is_forgotten() -> None:
    world = _slow(FakeExtender(filter=accept_all), _node("a"), make.pod("p"))
    world.delete(world.pods["default/p"])  # type: ignore[index]
    world.catch_up()
    assert world.bound == {}
    assert world.loop.queue.contents.in_flight == []
    assert world.loop.paused is not None and len(world.loop.paused) == 0


def test_a_pod_that_is_going_is_skipped_with_an_event() -> None:
    world = _slow(FakeExtender(filter=accept_all), _node("a"), make.pod("p"))
    pod = world.pods["default/p"]  # type: ignore[index]
    world.add(replace(pod, metadata=replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")))
    world.catch_up()
    assert world.notes() == ["skip schedule deleting pod: default/p"]
    assert world.loop.queue.contents.in_flight == []


def test_another_pod_of_the_same_name_has_its_own_cycle() -> None:
    world = _slow(FakeExtender(filter=accept_all), _node("a"), make.pod("p"))
    world.delete(world.pods["default/p"])  # type: ignore[index]
    world.put(make.pod("p", metadata={"uid": "another"}))
    world.run()
    assert len(world.waiting) == 2
    world.catch_up()
    assert world.bound == {"default/p": "a"}
    assert world.loop.queue.contents.in_flight == []


def test_a_pod_that_changed_meanwhile_is_decided_upon_as_it_is_now() -> None:
    taints = [make.taint("gpu")]
    world = _slow(FakeExtender(filter=accept_all), make.node("a"), make.node("b", taints=taints), make.pod("p"))
    pod = world.pods["default/p"]  # type: ignore[index]
    labels = {"kubernetes.io/hostname": "b"}
    world.add(replace(pod, spec=replace(pod.spec, node_selector=labels)))
    world.catch_up()
    assert world.bound == {}
    assert "1 node(s) didn't match Pod's node affinity/selector" in world.notes()[0]


def test_changes_during_the_pause_are_not_missed() -> None:
    """The pod is rejected for a reason that went away while the extender thought."""
    extender = FakeExtender(filter=accept())
    world = _slow(extender, _node("a"), make.pod("p"))
    world.put(_node("b"))
    extender.filter = accept("b")
    world.is_slow = False
    world.catch_up()
    world.run(for_s=2)
    assert world.bound == {"default/p": "b"}


def test_only_so_many_cycles_are_under_way_and_the_most_important_pod_is_next() -> None:
    extender = FakeExtender(filter=accept_all)
    world = _slow(extender, _node("a", 100), *(make.pod(f"p{i:02}") for i in range(20)))
    assert len(world.waiting) == 16
    world.put(make.pod("important", priority=10))
    world.run()
    assert world.loop.paused is not None and len(world.loop.paused) == 21
    world.catch_up(1)
    said = extender.asked[-1][1]["Pod"]["metadata"]["name"]
    assert said == "p00"
    assert world.waiting[-1].action.body.count(b'"important"') == 1  # type: ignore[attr-defined]
    world.is_slow = False
    world.catch_up()
    assert len(world.bound) == 21
    assert len(world.loop.paused) == 0


def test_a_pod_deleted_in_line_never_begins() -> None:
    extender = FakeExtender(filter=accept_all)
    world = _slow(extender, _node("a", 100), *(make.pod(f"p{i:02}") for i in range(17)))
    world.delete(world.pods["default/p16"])  # type: ignore[index]
    assert world.loop.paused is not None and "uid-default-p16" in world.loop.paused
    world.catch_up()
    assert len(world.bound) == 16
    assert world.loop.queue.contents.in_flight == []


class _Fragile:
    """A filter that breaks once it is told to."""

    name = "Fragile"
    is_broken = False

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        if _Fragile.is_broken:
            raise ValueError("out of paper")
        return OK


def test_a_plugin_that_breaks_ends_the_attempt() -> None:
    world = ExtendedWorld(
        FakeExtender(filter=accept_all),
        config={"profiles": [{"plugins": {"filter": {"enabled": [{"name": "Fragile"}]}}}]},
        registry=REGISTRY.merged_with({"Fragile": _Fragile}),
    )
    world.is_slow = True
    world.put(make.node("a"), make.pod("p"))
    world.run()
    _Fragile.is_broken = True
    world.catch_up()
    assert world.notes() == ['running "Fragile" filter plugin: out of paper']
    assert world.loop.queue.contents.in_flight == []
