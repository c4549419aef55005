"""Pods that are unschedulable for too long are tried again without a reason."""

from __future__ import annotations

import pytest
from queue_driver import Play, info_of, pod

from kubesched.scheduler.queue import QueueSettings


def test_after_five_minutes_a_pod_is_tried_again_at_the_next_half_minute() -> None:
    play = Play()
    play.now_s = 1001.0
    play.try_and_reject("a", "Fit")
    assert play.queue.next_deadline_s() == 1320.0
    play.wait(1319.9 - play.now_s)
    assert play.where("a") == "unschedulable"
    play.wait(0.1)
    assert play.where("a") == "active"
    [queued] = play.queue.contents.active
    assert queued.was_flushed
    assert play.queue.contents.incoming_pods()["active", "UnschedulableTimeout"] == 1
    assert play.queue.next_deadline_s() is None


def test_exactly_five_minutes_are_not_too_long() -> None:
    play = Play()
    play.now_s = 1020.0
    play.try_and_reject("a", "Fit")
    assert play.queue.next_deadline_s() == 1350.0
    play.wait(300)
    assert play.where("a") == "unschedulable"


def test_having_been_flushed_is_forgotten_after_the_next_attempt() -> None:
    play = Play()
    play.try_and_reject("a", "Fit")
    play.wait(400)
    play.pop()
    play.reject("Fit")
    assert [queued.was_flushed for queued in play.queue.contents.unschedulable] == [False]
    play.wait(300)
    assert play.where("a") == "unschedulable"


def test_a_pod_that_stays_gated_is_not_asked_about_all_the_time() -> None:
    play = Play()
    play.gated["a"] = "Gate"
    play.add("a")
    for _ in range(20):
        play.wait(30)
    assert play.gates_asked == ["a", "a"]
    [queued] = play.queue.contents.gated
    assert not queued.was_flushed
    assert play.queue.next_deadline_s() == 1650.0


def test_a_pod_still_in_backoff_goes_there() -> None:
    play = Play(settings=QueueSettings(max_backoff_s=600, initial_backoff_s=600))
    play.try_and_reject("a", "Fit")
    play.wait(400)
    assert play.where("a") == "backoff"


def test_the_deadline_may_be_too_early_after_a_pod_left_and_is_then_put_right() -> None:
    play = Play()
    play.try_and_reject("a", "Fit")
    play.now_s += 100
    play.try_and_reject("b", "Fit")
    play.queue.delete(info_of(pod("a")))
    assert play.queue.next_deadline_s() == 1320.0
    play.wait(1320 - play.now_s)
    assert play.where("b") == "unschedulable"
    assert play.queue.next_deadline_s() == 1410.0


def test_the_earlier_of_both_deadlines_counts() -> None:
    play = Play()
    play.try_and_reject("a", "Fit")
    play.try_and_reject("b")
    assert play.queue.next_deadline_s() == 1002.0


@pytest.mark.parametrize("step_s", [0.7, 1.0, 13.0, 30.0])
def test_however_often_it_is_looked_at_nothing_comes_early(step_s: float) -> None:
    play = Play()
    play.try_and_reject("a", "Fit")
    while play.where("a") == "unschedulable":
        play.wait(step_s)
    assert 1320.0 <= play.now_s < 1320.0 + step_s


def test_without_pods_there_is_no_deadline() -> None:
    play = Play()
    assert play.queue.next_deadline_s() is None
    play.wait(100)
    play.add("a")
    assert play.queue.next_deadline_s() is None
