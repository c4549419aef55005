"""No change between a pod's pop and its return is missed."""

from __future__ import annotations

import pytest
from queue_driver import NODE_ADD, NODE_LABEL, POD_LABEL, SLICE_ADD, Answers, Play, info_of, key, names, node, on, pod

from kubesched.framework import Hint, PodInfo
from kubesched.framework.events import FORCE_ACTIVATE, UNSCHEDULABLE_TIMEOUT, ClusterEvent
from kubesched.scheduler.queue.sub_queues import POD_POPPED, InFlightPods

FIT = {"Fit": (on(NODE_ADD),)}


@pytest.mark.parametrize(
    ("event", "unschedulable", "pending", "expected"),
    [
        pytest.param(NODE_ADD, ("Fit",), (), "backoff", id="a change that is worth it"),
        pytest.param(NODE_LABEL, ("Fit",), (), "unschedulable", id="one that nobody registered for"),
        pytest.param(NODE_ADD, ("Other",), (), "unschedulable", id="one that the rejecting plugin does not care about"),
        pytest.param(NODE_ADD, (), ("Fit",), "active", id="one that a pending plugin waited for"),
        pytest.param(UNSCHEDULABLE_TIMEOUT, ("Fit",), (), "backoff", id="a wildcard"),
        pytest.param(NODE_ADD, (), (), "backoff", id="an error: retried whatever happened"),
    ],
)
def test_changes_during_an_attempt_count_when_it_fails(
    event: ClusterEvent, unschedulable: tuple[str, ...], pending: tuple[str, ...], expected: str
) -> None:
    play = Play({**FIT, "Other": (on(SLICE_ADD),)})
    play.add("a")
    play.pop()
    play.happen(event, None, None)
    play.reject(*unschedulable, pending=pending)
    assert play.where("a") == expected


def test_without_a_change_a_rejected_pod_waits_for_one() -> None:
    play = Play(FIT)
    play.happen(NODE_ADD, None, node())
    play.try_and_reject("a", "Fit")
    play.add("b")
    play.pop()
    assert play.where("a") == "unschedulable"


def test_the_strongest_of_several_changes_counts() -> None:
    play = Play({**FIT, "Claims": (on(SLICE_ADD),)})
    play.add("a")
    play.pop()
    play.happen(NODE_ADD, None, node())
    play.happen(SLICE_ADD)
    play.reject("Fit", pending=["Claims"])
    assert play.where("a") == "active"


def test_a_pod_sees_only_changes_since_its_own_pop() -> None:
    play = Play(FIT)
    play.add("a", "b")
    play.pop()
    first = play.popped
    play.happen(NODE_ADD, None, node())
    play.pop()
    play.reject("Fit")
    assert play.where("b") == "unschedulable"
    play.popped = first
    play.reject("Fit")
    assert play.where("a") == "backoff"


def test_the_pods_own_update_counts_too() -> None:
    def is_own(info: PodInfo, old: object | None, new: object | None) -> Hint:
        assert old is not None
        return Hint.QUEUE if new == pod("a", labels={"x": "y"}) and info.name == "a" else Hint.SKIP

    play = Play({"Fit": (on(POD_LABEL, is_own),)})
    play.add("a", "b")
    play.pop()
    first = play.popped
    play.queue.update(pod("a"), info_of(pod("a", labels={"x": "y"})), play.now_s)
    play.queue.update(pod("b"), info_of(pod("b", labels={"x": "z"})), play.now_s)
    assert play.where("a") == "in flight"
    play.popped = first
    play.reject("Fit")
    assert play.where("a") == "backoff"


def test_activating_a_pod_in_flight_counts_when_it_comes_back() -> None:
    play = Play(FIT)
    play.add("a", "b")
    play.pop()
    first = play.popped
    play.pop()
    play.queue.activate([key("a"), key("unknown")], play.now_s)
    play.reject("Fit")
    play.popped = first
    play.reject("Fit")
    assert (play.where("a"), play.where("b")) == ("backoff", "unschedulable")


def test_activation_is_not_lost_on_a_predecessor_of_the_same_name() -> None:
    play = Play(FIT)
    play.add("a")
    play.pop()
    play.queue.delete(info_of(pod("a")))
    play.add("a", uid="second")
    play.pop()
    play.queue.activate([key("a")], play.now_s)
    play.reject("Fit")
    assert names(play.queue.contents.backoff) == ["a"]


def test_a_pod_that_was_done_before_it_failed_is_retried() -> None:
    """Nobody knows what it missed since."""
    play = Play(FIT)
    play.add("a")
    play.pop()
    play.queue.done("uid-a")
    play.reject("Fit")
    assert play.where("a") == "backoff"


def test_the_log_is_empty_when_nobody_needs_it() -> None:
    play = Play(FIT)
    play.add("a", "b")
    play.happen(NODE_ADD, None, node())
    play.pop()
    play.pop()
    play.happen(NODE_ADD, None, node())
    play.happen(NODE_LABEL, node(), node())
    assert play.queue.contents.in_flight_events() == {"NodeAdd": 1, POD_POPPED: 2}
    play.queue.done("uid-a")
    play.queue.done("uid-a")
    play.queue.done("uid-b")
    assert play.queue.contents.in_flight_events() == {POD_POPPED: 0}


def test_the_log_does_not_grow_with_pods_that_overlap() -> None:
    """There is always somebody in flight, yet only what they need is kept."""
    play = Play(FIT)
    most = 0
    play.add("p0")
    play.pop()
    for i in range(1, 1000):
        play.add(f"p{i}")
        play.pop()
        play.happen(NODE_ADD, None, node())
        play.queue.done(f"uid-p{i - 1}")
        most = max(most, play.queue.contents.in_flight_events()["NodeAdd"])
    assert most <= 65
    play.reject("Fit")
    assert play.where("p999") == "backoff"


def test_cutting_the_log_keeps_what_is_needed() -> None:
    hint = Answers(Hint.SKIP)
    play = Play({"Fit": (on(NODE_ADD, hint),)})
    play.add("old", "new")
    play.pop()
    for _ in range(100):
        play.happen(NODE_ADD, None, node())
    play.pop()
    for _ in range(5):
        play.happen(NODE_ADD, None, node())
    play.queue.done("uid-old")
    assert play.queue.contents.in_flight_events()["NodeAdd"] == 5
    play.reject("Fit")
    assert hint.asked == ["new"] * 5


def test_a_pod_not_in_flight_has_no_log() -> None:
    assert InFlightPods().changes_since_start("nobody") is None
    assert FORCE_ACTIVATE.label == "ForceActivate"
