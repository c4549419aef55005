"""The loop with a world that does what it is asked."""

from __future__ import annotations

from typing import Any

from kubesched.framework import OK, CycleState, Handle, PodInfo, RegisteredEvent, Registry, Status
from kubesched.framework.effects import BindPod, Effect, Failed, Withheld
from kubesched.framework.extension_points import PermitResult
from kubesched.k8s.model import manifests
from kubesched.k8s.model.meta import KubeObject
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config import default, load
from kubesched.scheduler.engine.observations import PluginBroke
from kubesched.scheduler.engine.score import ByName
from kubesched.scheduler.plugins.registry import REGISTRY
from kubesched.testing import make
from kubesched.testing.make import Manifest
from kubesched.testing.world import World, listen_for


def _objects(*items: Manifest) -> list[KubeObject]:
    return manifests.from_dicts(items).objects


def _world(*items: Manifest) -> World:
    world = World(build_loop(default(), ByName()))
    world.add(*_objects(*items))
    return world


def _notes(world: World, reason: str) -> list[str]:
    return [event.note for event in world.events if event.reason == reason]


def test_pods_are_bound_one_after_another_and_see_each_other() -> None:
    world = _world(make.node("a", cpu=2), make.node("b", cpu=2), *(make.pod(f"p{i}", cpu=1) for i in range(4)))
    world.run()
    assert sorted(world.bound.values()) == ["a", "a", "b", "b"]
    assert _notes(world, "Scheduled") == [f"Successfully assigned {key} to {node}" for key, node in world.bound.items()]
    assert world.loop.cluster.n_assumed == 0
    assert world.loop.bindings == {}


def test_higher_priority_goes_first() -> None:
    world = _world(make.pod("low", cpu=1), make.pod("high", cpu=1, priority=5), make.node("a", cpu=1))
    world.run()
    assert world.bound == {"default/high": "a"}


def test_a_pod_that_fits_nowhere_says_why_and_waits_for_a_change_that_helps() -> None:
    world = _world(make.node("a", cpu=1), make.pod("p", cpu=2))
    world.run()
    message = (
        "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: "
        "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )
    assert _notes(world, "FailedScheduling") == [message]
    (condition,) = world.pods["default/p"].status.conditions or ()  # type: ignore[index]
    assert (condition.type, condition.status, condition.reason, condition.message) == (
        "PodScheduled", "False", "Unschedulable", message,
    )  # fmt: skip
    world.add(*_objects(make.node("b", cpu=4)))
    world.run(for_s=30)
    assert world.bound == {"default/p": "b"}


def test_victims_are_evicted_and_the_preemptor_takes_their_place() -> None:
    world = _world(
        make.node("a", cpu=2),
        *(make.pod(f"v{i}", on="a", cpu=1) for i in range(2)),
        make.pod("p", cpu=2, priority=10),
    )
    world.run(for_s=30)
    assert sorted(world.evicted) == ["default/v0", "default/v1"]
    assert world.bound == {"default/p": "a"}
    assert _notes(world, "Preempted") == ["Preempted by pod uid-default-p on node a"] * 2
    assert not world.loop.evictions.is_preempting("uid-default-p")


def test_a_pod_being_deleted_is_skipped_with_an_event() -> None:
    world = _world(make.node("a"), make.pod("p", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}))
    world.run()
    assert world.bound == {}
    assert _notes(world, "FailedScheduling") == ["skip schedule deleting pod: default/p"]


def test_a_pod_that_is_assumed_already_is_skipped_and_not_assumed_again() -> None:
    loop = build_loop(default(), ByName())
    World(loop).add(*_objects(make.node("a", cpu=2), make.pod("p", cpu=1)))
    assert loop.schedule_one(0.0)
    (waiting,) = loop.cluster.pending.values()
    loop.queue.add(waiting, 0.0)
    assert loop.schedule_one(0.0)
    assert loop.cluster.nodes.at(0).requested("cpu") == 1000
    assert [type(effect.action) for effect in loop.take_effects()] == [BindPod]


class Stubborn(World):
    """Refuses to bind so many times."""

    refusals = 1

    def carry_out(self, action: object) -> object:
        if isinstance(action, BindPod) and self.refusals:
            self.refusals -= 1
            return Failed("the server is currently unable to handle the request")
        return super().carry_out(action)


def test_a_failed_binding_is_undone_and_tried_again_after_a_backoff() -> None:
    world = Stubborn(build_loop(default(), ByName()))
    world.add(*_objects(make.node("a", cpu=1), make.pod("p", cpu=1)))
    world.run()
    assert world.bound == {}
    assert world.loop.cluster.n_assumed == 0
    assert world.loop.cluster.nodes.at(0).requested("cpu") == 0
    (condition,) = world.pods["default/p"].status.conditions or ()  # type: ignore[index]
    assert condition.reason == "SchedulerError"
    world.run(for_s=5)
    assert world.bound == {"default/p": "a"}


def test_a_pod_deleted_while_it_is_bound_frees_its_place_at_once() -> None:
    loop = build_loop(default(), ByName())
    world = World(loop)
    world.add(*_objects(make.node("a", cpu=1), make.pod("p", cpu=1)))
    loop.schedule_one(0.0)
    effects = [e for e in loop.take_effects() if isinstance(e.action, BindPod)]
    world.delete(world.pods["default/p"])  # type: ignore[index]
    assert loop.cluster.nodes.at(0).requested("cpu") == 0
    loop.answer(effects[0].id, Failed("not found", is_gone=True), 0.0)
    assert loop.cluster.n_assumed == 0
    assert loop.queue.pop(100.0) is None


class Doorkeeper:
    """A permit plugin that answers as it is told."""

    name = "Doorkeeper"
    answer: PermitResult = PermitResult(Status.wait("wait"), timeout_s=10.0)

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def permit(self, cycle: CycleState, pod: PodInfo, node_name: str) -> PermitResult:
        return self.answer

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        return ()


def _with_doorkeeper(*items: Manifest) -> World:
    config: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"permit": {"enabled": [{"name": "Doorkeeper"}]}}}],
    }
    registry: Registry = REGISTRY.merged_with({"Doorkeeper": Doorkeeper})
    world = World(build_loop(load(config, "test"), ByName(), registry=registry))
    world.add(*_objects(*items))
    return world


def test_a_waiting_pod_is_bound_when_it_is_allowed() -> None:
    world = _with_doorkeeper(make.node("a"), make.pod("p"))
    world.run()
    (waiting,) = world.loop.waiting_pods()
    assert world.pods["default/p"].status.nominated_node_name == "a"  # type: ignore[index]
    waiting.allow("Doorkeeper")
    world.loop.tick(1.0)
    world.settle()
    assert world.bound == {"default/p": "a"}


def test_a_waiting_pod_is_rejected_when_its_time_is_over() -> None:
    world = _with_doorkeeper(make.node("a", cpu=1), make.pod("p", cpu=1))
    world.run(for_s=10)
    assert world.bound == {}
    assert world.loop.cluster.n_assumed == 0
    assert _notes(world, "FailedScheduling")[0] == (
        "0/1 nodes are available: 1 rejected due to timeout after waiting 10s at plugin Doorkeeper."
    )


def test_a_pod_waiting_for_a_permit_is_turned_down_instead_of_evicted() -> None:
    world = _with_doorkeeper(make.node("a", cpu=1), make.pod("low", cpu=1))
    world.run()
    world.add(*_objects(make.pod("high", cpu=1, priority=9)))
    world.run(for_s=3)
    assert world.evicted == []
    assert [pod.info.key for pod in world.loop.waiting_pods()] == ["default/high"]


def test_answers_nobody_waits_for_are_dropped() -> None:
    loop = build_loop(default(), ByName())
    loop.answer(99, Failed("late"), 0.0)
    assert loop.take_effects() == []
    assert Effect(1, None).id == 1


class Clumsy:
    """Breaks where nothing depends on it any more."""

    name = "Clumsy"

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def post_bind(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        raise ZeroDivisionError("oops")

    def reserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
        return OK

    def unreserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
        raise ZeroDivisionError("dropped it")


def test_a_plugin_that_breaks_after_the_pod_is_bound_or_while_giving_back_is_noted_and_no_more() -> None:
    config: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "Clumsy"}]}}}],
    }
    registry = REGISTRY.merged_with({"Clumsy": Clumsy})
    world = Stubborn(build_loop(load(config, "test"), ByName(), registry=registry))
    broken = listen_for(world.loop, PluginBroke)
    world.add(*_objects(make.node("a", cpu=1), make.pod("p", cpu=1)))
    world.run(for_s=5)
    assert world.bound == {"default/p": "a"}
    assert [seen.error.message for seen in broken] == [
        'running Unreserve plugin "Clumsy": dropped it',
        'running PostBind plugin "Clumsy": oops',
    ]


def test_a_binding_that_was_withheld_is_tried_again_and_nobody_told() -> None:
    class Suspended(World):
        may_write = False

        def carry_out(self, action: object) -> object:
            return Withheld() if isinstance(action, BindPod) and not self.may_write else super().carry_out(action)

    world = Suspended(build_loop(default(), ByName()))
    world.add(*_objects(make.node("a", cpu=1), make.pod("p", cpu=1)))
    world.run()
    assert world.loop.bindings == {} and world.loop.cluster.n_assumed == 0
    assert world.events == [] and not world.pods["default/p"].status.conditions  # type: ignore[index]
    world.may_write = True
    world.run(for_s=30)
    assert world.bound == {"default/p": "a"}
    assert [event.reason for event in world.events] == ["Scheduled"]
