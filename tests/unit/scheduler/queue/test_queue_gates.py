"""Pods that are held back before they are tried (preEnqueue)."""

from __future__ import annotations

import pytest
from queue_driver import GATES_GONE, NODE_ADD, SLICE_ADD, Answers, Play, by_priority, info_of, key, names, node, on, pod

from kubesched.framework import OK, Hint, PodInfo, Status
from kubesched.framework.events import UNSCHEDULABLE_TIMEOUT, ClusterEvent
from kubesched.scheduler.queue import QueueProfile, QueueSettings, SchedulingQueue

GATE = {"Gate": (on(SLICE_ADD),), "Fit": (on(NODE_ADD), on(SLICE_ADD, Answers(Hint.SKIP)))}


def _gated(play: Play, name: str = "a") -> None:
    play.gated[name] = "Gate"
    play.add(name)
    assert play.where(name) == "gated"


def test_a_pod_that_does_not_pass_is_gated() -> None:
    play = Play(GATE)
    _gated(play)
    [queued] = play.queue.contents.gated
    assert (queued.gating_plugin, queued.unschedulable_plugins) == ("Gate", frozenset({"Gate"}))
    assert play.pop() is None


@pytest.mark.parametrize(
    ("event", "opened", "expected", "asked_again"),
    [
        pytest.param(SLICE_ADD, True, "active", 1, id="what the gate waits for, and it opens"),
        pytest.param(SLICE_ADD, False, "gated", 1, id="what the gate waits for, but it stays closed"),
        pytest.param(NODE_ADD, True, "gated", 0, id="nothing that the gate waits for"),
        pytest.param(UNSCHEDULABLE_TIMEOUT, True, "active", 1, id="a wildcard"),
    ],
)
def test_only_what_the_gate_waits_for_has_it_asked_again(
    event: ClusterEvent, opened: bool, expected: str, asked_again: int
) -> None:
    play = Play(GATE)
    _gated(play)
    play.gates_asked.clear()
    if opened:
        play.gated.clear()
    play.happen(event)
    assert (play.where("a"), len(play.gates_asked)) == (expected, asked_again)


def test_a_pod_that_was_rejected_before_it_was_gated_waits_for_its_gate_alone() -> None:
    play = Play(GATE)
    play.try_and_reject("a", "Fit")
    play.gated["a"] = "Gate"
    play.happen(NODE_ADD, None, node())
    assert play.where("a") == "gated"
    assert play.queue.contents.gated[0].unschedulable_plugins == {"Fit", "Gate"}
    play.gated.clear()
    play.happen(NODE_ADD, None, node())
    assert play.where("a") == "gated"
    play.happen(SLICE_ADD)
    assert play.where("a") == "backoff"
    assert play.queue.contents.backoff[0].gating_plugin == ""


def test_an_attempt_that_broke_may_end_before_a_gate() -> None:
    """Such as that of a pod whose preemption is under way."""
    play = Play(GATE)
    play.add("a")
    play.pop()
    play.gated["a"] = "Gate"
    play.reject()
    assert play.where("a") == "gated"


def test_gates_are_passed_once_on_the_way_through_backoff() -> None:
    play = Play(GATE)
    play.try_and_reject("a")
    play.gates_asked.clear()
    play.gated["a"] = "Gate"
    play.wait(5)
    assert (play.where("a"), play.gates_asked) == ("active", [])


def test_where_nothing_is_popped_early_gates_come_after_the_backoff() -> None:
    play = Play(GATE, QueueSettings(pop_from_backoff=False))
    play.add("a", "b")
    play.gates_asked.clear()
    play.gated.update(a="Gate", b="Gate")
    for _ in range(2):
        play.pop()
        play.reject()
    assert (names(play.queue.contents.backoff), play.gates_asked) == (["a", "b"], [])
    play.queue.activate([key("a")], play.now_s)
    assert (play.where("a"), play.where("b")) == ("gated", "backoff")
    play.wait(5)
    assert play.where("b") == "gated"


def test_the_gate_that_closed_is_asked_first_the_next_time() -> None:
    closed = {"First", "Second"}
    asked = []

    def gate(name: str) -> Status:
        asked.append(name)
        return Status.unresolvable("closed") if name in closed else OK

    def all_gates(_info: PodInfo) -> Status:
        statuses = ((name, gate(name)) for name in ("First", "Second"))
        return next((status.by(name) for name, status in statuses if not status.is_success), OK)

    gates = {"First": lambda _: gate("First"), "Second": lambda _: gate("Second")}
    profile = QueueProfile(by_priority, all_gates, {name: (on(SLICE_ADD),) for name in gates}, gates)
    queue = SchedulingQueue(QueueSettings(), {"default-scheduler": profile})
    closed.remove("First")
    queue.add(info_of(pod("a")), 0.0)
    closed.add("First")
    asked.clear()
    queue.move_all(SLICE_ADD, None, None, 0.0)
    assert (queue.contents.gated[0].gating_plugin, asked) == ("Second", ["Second"])
    closed.remove("Second")
    queue.move_all(SLICE_ADD, None, None, 0.0)
    assert queue.contents.gated[0].gating_plugin == "First"
    closed.clear()
    queue.activate([key("a")], 0.0)
    assert names(queue.contents.active) == ["a"]


def test_a_pod_that_loses_its_gates_enters() -> None:
    play = Play({"SchedulingGates": (on(GATES_GONE),)})
    play.gated["a"] = "SchedulingGates"
    before = pod("a", schedulingGates=[{"name": "one"}, {"name": "two"}])
    play.queue.add(info_of(before), play.now_s)
    half = pod("a", schedulingGates=[{"name": "two"}])
    play.queue.update(before, info_of(half), play.now_s)
    assert play.where("a") == "gated"
    play.gated.clear()
    play.queue.update(half, info_of(pod("a")), play.now_s)
    assert play.where("a") == "active"
    assert play.queue.contents.incoming_pods() == {
        ("unschedulable", "UnschedulablePodAdd"): 1,
        ("active", "UnschedulablePodUpdatePodSchedulingGatesEliminated"): 1,
    }


def test_a_gated_pod_can_be_deleted() -> None:
    play = Play(GATE)
    _gated(play)
    play.queue.delete(info_of(pod("a")))
    play.gated.clear()
    play.happen(SLICE_ADD)
    assert play.where("a") == "nowhere"
