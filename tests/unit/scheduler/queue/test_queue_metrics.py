"""What can be read off the queue."""

from __future__ import annotations

from queue_driver import NODE_ADD, Play, info_of, node, on, pod

from kubesched.framework import OK, Handle, NodeTable, PodInfo, Status, Verdicts
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.events import EVERY_CHANGE, RegisteredEvent
from kubesched.framework.verdicts import ACCEPT_ALL
from kubesched.scheduler.plugins.priority_sort import PrioritySort
from kubesched.scheduler.plugins.scheduling_gates import SchedulingGates
from kubesched.scheduler.queue import registered_events

FIT = {"Fit": (on(NODE_ADD),)}


def _one_of_each() -> Play:
    play = Play(FIT)
    play.try_and_reject("moved", "Fit")
    play.happen(NODE_ADD, None, node())
    play.try_and_reject("broken")
    play.try_and_reject("rejected", "Fit", pending=["Claims"])
    play.gated["gated"] = "Gate"
    play.add("gated", "flying", "waiting")
    play.pop()
    return play


def test_pods_are_counted_where_they_are() -> None:
    contents = _one_of_each().queue.contents
    assert contents.pending_pods() == {"active": 1, "backoff": 2, "unschedulable": 1, "gated": 1}
    assert str(contents) == "activeQ:1; backoffQ:2; unschedulablePods:2"
    assert len(contents) == 5


def test_pods_are_counted_by_who_rejected_them() -> None:
    """A pod that is tried again counts no more, and one that was deleted neither."""
    play = _one_of_each()
    default = "default-scheduler"
    counts = {("Fit", default): 2, ("Claims", default): 1, ("Gate", default): 1}
    assert play.queue.contents.unschedulable_pods() == counts
    play.queue.delete(info_of(pod("rejected")))
    assert play.pop() == "waiting"
    assert play.pop() == "moved"
    assert play.queue.contents.unschedulable_pods() == {("Gate", default): 1}


def test_pods_are_counted_as_they_come_in() -> None:
    play = _one_of_each()
    play.wait(5)
    assert play.queue.contents.incoming_pods() == {
        ("active", "UnschedulablePodAdd"): 5,
        ("active", "BackoffComplete"): 2,
        ("backoff", "NodeAdd"): 1,
        ("backoff", "ScheduleAttemptFailure"): 1,
        ("unschedulable", "ScheduleAttemptFailure"): 2,
        ("unschedulable", "UnschedulablePodAdd"): 1,
    }


def test_a_gated_pod_that_is_asked_about_in_vain_comes_in_again() -> None:
    play = Play({"Gate": (on(NODE_ADD),)})
    play.gated["a"] = "Gate"
    play.add("a")
    play.happen(NODE_ADD, None, node())
    assert play.queue.contents.incoming_pods()["unschedulable", "NodeAdd"] == 1


class _Silent:
    name = "Silent"

    def filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdicts:
        return ACCEPT_ALL


class _Content:
    """Has gates, and no event could open them."""

    name = "Content"

    def pre_enqueue(self, pod: PodInfo) -> Status:
        return OK

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        return ()


def test_every_plugin_that_can_reject_a_pod_is_registered() -> None:
    handle: Handle = None  # type: ignore[assignment]
    gates = SchedulingGates(None, handle)
    events = registered_events([_Silent(), _Content(), gates, PrioritySort(None, handle)])
    assert events == {
        "Silent": EVERY_CHANGE,
        "Content": (),
        "SchedulingGates": gates.events_to_register(),
    }
