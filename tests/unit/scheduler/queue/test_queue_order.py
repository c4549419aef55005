"""Which pod is next."""

from __future__ import annotations

import pytest
from queue_driver import Play, by_priority, info_of, key, names, no_gates, pod

from kubesched.scheduler.queue import QueueProfile, QueueSettings, SchedulingQueue
from kubesched.scheduler.queue.queued_pod import PodHeap, QueuedPodInfo

NO_PROFILE = QueueProfile(by_priority, no_gates, {})


def test_higher_priority_goes_first_and_among_equals_whoever_came_first() -> None:
    play = Play()
    for name, priority in (("a", 0), ("b", 5), ("c", 5), ("d", 9), ("e", 0)):
        play.add(name, priority=priority)
    assert [play.pop() for _ in range(6)] == ["d", "b", "c", "a", "e", None]


def test_a_popped_pod_is_in_flight_until_it_is_done() -> None:
    play = Play()
    play.add("a")
    play.pop()
    assert play.where("a") == "in flight"
    play.queue.done("uid-a")
    assert play.where("a") == "nowhere"


def test_pods_of_another_scheduler_are_not_accepted() -> None:
    play = Play()
    play.add("a", schedulerName="other")
    play.queue.update(None, info_of(pod("a", schedulerName="other")), 0.0)
    assert play.where("a") == "nowhere"


def test_the_first_time_a_pod_could_be_tried_is_remembered() -> None:
    play = Play()
    play.gated["a"] = "Gate"
    play.add("a")
    assert [queued.initial_attempt_at_s for queued in play.queue.contents.gated] == [None]
    play.now_s = 1010.0
    play.gated.clear()
    play.queue.activate([key("a")], play.now_s)
    [queued] = play.queue.contents.active
    assert (queued.queued_at_s, queued.initial_attempt_at_s) == (1000.0, 1010.0)


def test_an_update_in_the_active_queue_changes_the_order() -> None:
    play = Play()
    play.add("a", "b", "c")
    play.queue.update(pod("c"), info_of(pod("c", priority=3)), 2000.0)
    play.queue.update(pod("a"), info_of(pod("a", labels={"x": "y"})), 2000.0)
    assert [play.pop() for _ in range(4)] == ["c", "a", "b", None]


def test_a_deleted_pod_is_not_popped() -> None:
    play = Play()
    play.add("a", "b")
    play.queue.delete(info_of(pod("a")))
    play.queue.delete(info_of(pod("unknown")))
    assert [play.pop(), play.pop()] == ["b", None]


@pytest.mark.parametrize("again", ["active", "in flight", "unschedulable"])
def test_a_pod_that_is_added_twice_is_there_once(again: str) -> None:
    play = Play()
    play.add("a")
    if again != "active":
        play.pop()
    if again == "unschedulable":
        play.reject("Fit")
    play.add("a")
    assert play.where("a") == again


def test_a_new_pod_of_the_same_name_takes_the_place_of_the_old() -> None:
    play = Play()
    play.try_and_reject("a", "Fit")
    play.add("a", uid="second")
    assert play.where("a") == "active"
    queued = play.queue.pop(play.now_s)
    assert queued is not None
    assert (queued.uid, queued.attempts) == ("second", 1)


def test_a_pod_that_fails_after_its_successor_came_does_not_come_back() -> None:
    play = Play()
    play.add("a")
    play.pop()
    play.queue.delete(info_of(pod("a")))
    play.add("a", uid="second")
    play.reject("Fit")
    assert play.where("a") == "active"
    assert names(play.queue.contents.in_flight) == []


def test_each_profile_orders_its_own_pods() -> None:
    profiles = {
        "default-scheduler": QueueProfile(lambda queued: (queued.info.priority,), no_gates, {}),
        "reverse": QueueProfile(lambda queued: (-queued.info.priority,), no_gates, {}),
    }
    queue = SchedulingQueue(QueueSettings(), profiles)
    for name, scheduler, priority in (("a", "reverse", 3), ("b", "default-scheduler", 1), ("c", "reverse", -2)):
        queue.add(info_of(pod(name, schedulerName=scheduler, priority=priority)), 0.0)
    assert names(queue.contents.active) == ["a", "b", "c"]


def test_a_heap_forgets_pods_that_left_it() -> None:
    """However many come and go without one being popped, it stays small."""
    heap = PodHeap()
    pods = [QueuedPodInfo(info_of(pod(f"p{i}")), NO_PROFILE, 0.0) for i in range(300)]
    for position, queued in enumerate(pods):
        heap.push(queued, (-position,))
    for queued in pods[:-1]:
        heap.remove(queued)
    assert len(heap) == 1
    assert len(heap._line) + len(heap._overtaking) < 100
    assert heap.peek() is pods[-1]
    assert [heap.pop(), heap.pop()] == [pods[-1], None]
