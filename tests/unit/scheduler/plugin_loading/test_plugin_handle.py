"""What plugins can set going through their handle; and which changes bring back the pods that they rejected."""

from __future__ import annotations

from typing import Any

import pytest
from outside_world import add, notes, world_with

from kubesched.framework import (
    OK,
    ActionType,
    ClusterEvent,
    EventResource,
    Handle,
    Hint,
    PermitResult,
    PostFilterResult,
    RegisteredEvent,
    Status,
)
from kubesched.scheduler.config import ConfigError
from kubesched.testing import make


class Gang:
    """Pods of a gang are bound together, or not at all."""

    name = "Gang"
    size = 3

    def __init__(self, handle: Handle) -> None:
        self.handle = handle

    def permit(self, cycle: Any, pod: Any, node_name: str) -> PermitResult:
        waiting = self.handle.waiting_pods()
        if len(waiting) + 1 < self.size:
            return PermitResult(Status.wait(), timeout_s=30.0)
        for held in waiting:
            assert self.handle.allow(held.info.uid, self.name)
        return PermitResult(OK)

    def unreserve(self, cycle: Any, pod: Any, node_name: str) -> None:
        for held in self.handle.waiting_pods():
            self.handle.reject(held.info.uid, self.name, "the gang is not complete")

    def reserve(self, cycle: Any, pod: Any, node_name: str) -> Status:
        return OK


def test_a_gang_is_bound_when_its_last_pod_comes() -> None:
    world = world_with(Gang)
    add(world, make.node("a"), make.pod("p0"), make.pod("p1"))
    world.run()
    assert world.bound == {}
    assert [held.info.key for held in world.loop.waiting_pods()] == ["default/p0", "default/p1"]
    add(world, make.pod("p2"))
    world.run()
    assert sorted(world.bound) == ["default/p0", "default/p1", "default/p2"]
    assert world.loop.cluster.n_assumed == 0


def test_a_gang_that_does_not_come_together_gives_up_together() -> None:
    world = world_with(Gang)
    add(world, make.node("a"), make.pod("p0"), make.pod("p1"))
    world.run(for_s=30)
    assert world.bound == {}
    assert "0/1 nodes are available: 1 the gang is not complete." in notes(world)
    assert "0/1 nodes are available: 1 rejected due to timeout after waiting 30s at plugin Gang." in notes(world)


def test_nobody_is_allowed_or_rejected_who_does_not_wait() -> None:
    world = world_with(Gang)
    assert world.loop.requests.allow("nobody", "Gang") is False
    assert world.loop.requests.reject("nobody", "Gang", "no") is False


class Waker:
    """When a pod is bound, those of the same app are tried at once."""

    name = "Waker"

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self.asked: list[Any] = []

    def filter_node(self, cycle: Any, pod: Any, node: Any) -> Status:
        if pod.name == "key" or self.asked.count("unlocked"):
            return OK
        self.asked.append(pod)
        return Status.unschedulable("locked")

    def post_bind(self, cycle: Any, pod: Any, node_name: str) -> None:
        locked = [pod for pod in self.asked if pod != "unlocked"]
        self.asked.append("unlocked")
        self.handle.activate(locked)

    def events_to_register(self) -> list[ClusterEvent]:
        return []


def test_activated_pods_are_tried_at_once() -> None:
    world = world_with(Waker)
    add(world, make.node("a"), make.pod("p0"), make.pod("p1"))
    world.run()
    assert world.bound == {}
    add(world, make.pod("key"))
    world.run()
    assert sorted(world.bound) == ["default/key", "default/p0", "default/p1"]


class Restless:
    """Pods that fail wake each other, forever."""

    name = "Restless"

    def __init__(self, handle: Handle) -> None:
        self.handle = handle
        self.seen: dict[str, Any] = {}

    def filter_node(self, cycle: Any, pod: Any, node: Any) -> Status:
        self.seen[pod.uid] = pod
        return Status.unschedulable("no")

    def post_filter(self, cycle: Any, pod: Any, statuses: Any) -> PostFilterResult:
        self.handle.activate(self.seen.values())
        return PostFilterResult(Status.unschedulable())


def test_pods_that_wake_each_other_do_not_stop_the_clock() -> None:
    world = world_with(Restless)
    add(world, make.node("a"), make.pod("p0"), make.pod("p1"))
    world.run(for_s=1)
    assert 10 < len(notes(world)) < 1000


# -- events and hints --------------------------------------------------------------------------------------------------


class Labelled:
    """Wants a node with the label `ready`."""

    name = "Labelled"

    def filter_node(self, cycle: Any, pod: Any, node: Any) -> Status:
        return OK if node.labels.get("ready") else Status.unschedulable("node(s) were not ready")


def _hint(_pod: Any, _old: Any, new: Any) -> Hint:
    return Hint.QUEUE if new.metadata.labels.get("ready") else Hint.SKIP


class Silent(Labelled):
    name = "Silent"


class Listening(Labelled):
    name = "Listening"

    def events_to_register(self) -> list[Any]:
        labels = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return [RegisteredEvent(labels, _hint)]


class Deaf(Labelled):
    name = "Deaf"

    def events_to_register(self) -> list[Any]:
        return [ClusterEvent(EventResource.CSI_NODE, ActionType.ADD)]


class Stumbling(Labelled):
    name = "Stumbling"

    def events_to_register(self) -> list[Any]:
        return [RegisteredEvent(ClusterEvent(EventResource.NODE, ActionType.ALL), lambda pod, old, new: 5)]  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize(
    ("plugin", "labels", "attempts"),
    [
        pytest.param(Silent, {"other": "x"}, 1, id="without events every change counts"),
        pytest.param(Listening, {"other": "x"}, 0, id="a hint may find a change not worth it"),
        pytest.param(Listening, {"ready": "x"}, 1, id="a hint may find it worth it"),
        pytest.param(Deaf, {"ready": "x"}, 0, id="an event that was not registered does not count"),
        pytest.param(Stumbling, {"other": "x"}, 1, id="a hint that answers wrongly counts as worth it"),
    ],
)
def test_events_and_hints_say_which_changes_bring_a_pod_back(
    plugin: type, labels: dict[str, str], attempts: int
) -> None:
    world = world_with(plugin)
    add(world, make.node("a"), make.pod("p"))
    world.run(for_s=20)
    n_before = len(notes(world))
    add(world, make.node("a", labels=labels))
    world.run(for_s=5)
    assert len(notes(world)) + len(world.bound) - n_before == attempts


class Muddled(Labelled):
    name = "Muddled"

    def events_to_register(self) -> Any:
        return ["Node"]


class Raising(Labelled):
    name = "Raising"

    def events_to_register(self) -> Any:
        raise KeyError("node")


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (Muddled, "Muddled: events_to_register gave 'Node', it must give ClusterEvents or RegisteredEvents"),
        (Raising, "Raising: events_to_register raised KeyError: 'node'"),
    ],
)
def test_events_that_are_none_are_told_when_the_scheduler_is_built(plugin: type, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        world_with(plugin)
    assert message in str(caught.value)
