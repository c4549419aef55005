"""Pods of a group are taken out of the queue together, wherever they wait."""

from __future__ import annotations

import pytest
from queue_driver import NODE_ADD, Answers, Play, key, on


def _waiting(place: str) -> Play:
    play = Play({"Some": [on(NODE_ADD, Answers())]})
    if place == "gated":
        play.gated["a"] = "Gate"
    if place in ("active", "gated"):
        play.add("a")
    elif place == "backoff after an error":
        play.try_and_reject("a")
    elif place != "absent":
        play.try_and_reject("a", "Some")
        if place == "backoff":
            play.happen(NODE_ADD)
    assert play.where("a") == {"absent": "nowhere", "backoff after an error": "backoff"}.get(place, place)
    return play


@pytest.mark.parametrize("place", ["active", "backoff", "backoff after an error", "unschedulable"])
def test_a_pod_is_taken_from_wherever_it_waits(place: str) -> None:
    play = _waiting(place)
    taken = play.queue.pop_specific(key("a"), play.now_s)
    assert taken is not None
    assert taken.attempts == (1 if place == "active" else 2)
    assert play.where("a") == "in flight"


@pytest.mark.parametrize("place", ["gated", "absent"])
def test_a_pod_that_is_held_back_or_not_there_is_not_taken(place: str) -> None:
    play = _waiting(place)
    assert play.queue.pop_specific(key("a"), play.now_s) is None
    assert play.where("a") == ("gated" if place == "gated" else "nowhere")


def test_a_pod_that_is_held_back_now_stays_so() -> None:
    play = _waiting("unschedulable")
    play.gated["a"] = "Gate"
    assert play.queue.pop_specific(key("a"), play.now_s) is None
    assert play.where("a") == "gated"
