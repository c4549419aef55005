"""Pods that change while they wait, and pods that a plugin wants tried again."""

from __future__ import annotations

import pytest
from queue_driver import NODE_ADD, POD_LABEL, Answers, Play, info_of, key, node, on, pod

from kubesched.framework import ActionType, ClusterEvent, EventResource, Hint

TOLERATION = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_TOLERATION)
UPDATE = ClusterEvent(EventResource.POD, ActionType.UPDATE)


def test_an_update_of_a_pod_nobody_knows_adds_it() -> None:
    play = Play()
    play.queue.update(pod("a"), info_of(pod("a", priority=1)), play.now_s)
    assert play.where("a") == "active"
    assert play.queue.contents.incoming_pods() == {("active", "UnschedulablePodUpdate"): 1}


@pytest.mark.parametrize(
    ("registered", "answer", "expected"),
    [
        pytest.param(POD_LABEL, Hint.QUEUE, "backoff", id="a change that the plugin finds worth it"),
        pytest.param(POD_LABEL, Hint.SKIP, "unschedulable", id="a change that it does not"),
        pytest.param(TOLERATION, Hint.QUEUE, "unschedulable", id="another change than it waits for"),
        pytest.param(UPDATE, Hint.QUEUE, "backoff", id="it waits for any update"),
    ],
)
def test_an_update_may_make_an_unschedulable_pod_worth_another_try(
    registered: ClusterEvent, answer: Hint, expected: str
) -> None:
    play = Play({"Fit": (on(registered, Answers(answer)),)})
    play.try_and_reject("a", "Fit")
    changed = pod("a", labels={"x": "y"})
    play.queue.update(pod("a"), info_of(changed), play.now_s)
    assert play.where("a") == expected
    queued = play.queue.contents.find(key("a"))
    assert queued is not None
    assert queued.info.pod is changed


def test_the_first_of_several_changes_that_is_worth_it_moves_the_pod() -> None:
    hint = Answers()
    play = Play({"Fit": (on(POD_LABEL), on(TOLERATION, hint))})
    play.try_and_reject("a", "Fit")
    play.now_s += 5
    changed = pod("a", labels={"x": "y"}, tolerations=[{"operator": "Exists"}])
    play.queue.update(None, info_of(changed), play.now_s)
    assert (play.where("a"), hint.asked) == ("active", [])
    assert play.queue.contents.incoming_pods()["active", "UnschedulablePodUpdatePodLabel"] == 1


def test_an_update_that_still_does_not_pass_the_gates_counts_as_no_move() -> None:
    play = Play({"Gate": (on(POD_LABEL),)})
    play.gated["a"] = "Gate"
    play.add("a")
    play.queue.update(pod("a"), info_of(pod("a", labels={"x": "y"})), play.now_s)
    assert play.where("a") == "gated"
    assert play.queue.contents.incoming_pods() == {("unschedulable", "UnschedulablePodAdd"): 1}


def test_a_gate_that_takes_over_is_heard_of_from_then_on() -> None:
    """A pod is filed anew when who holds it back changes in place."""
    play = Play({"Fit": (on(POD_LABEL),), "Gate": (on(NODE_ADD),)})
    play.try_and_reject("a", "Fit")
    play.gated["a"] = "Gate"
    play.queue.update(pod("a"), info_of(pod("a", labels={"x": "y"})), play.now_s)
    assert play.where("a") == "gated"
    play.gated.clear()
    play.happen(NODE_ADD, None, node())
    assert play.where("a") == "backoff"


def test_an_unschedulable_pod_can_be_deleted() -> None:
    play = Play({"Fit": (on(NODE_ADD),)})
    play.try_and_reject("a", "Fit")
    play.queue.delete(info_of(pod("a")))
    play.happen(NODE_ADD, None, node())
    assert (play.where("a"), len(play.queue.contents)) == ("nowhere", 0)


def test_deleting_a_pod_in_flight_leaves_the_flight_to_whoever_popped_it() -> None:
    play = Play()
    play.add("a")
    play.pop()
    play.queue.delete(info_of(pod("a")))
    assert play.where("a") == "in flight"


@pytest.mark.parametrize("gated", [False, True])
def test_activation_moves_an_unschedulable_pod_past_its_backoff_but_not_past_its_gates(gated: bool) -> None:
    play = Play()
    play.try_and_reject("a", "Fit")
    if gated:
        play.gated["a"] = "Gate"
    play.queue.activate([key("a")], play.now_s)
    assert play.where("a") == ("gated" if gated else "active")


def test_activating_an_active_or_unknown_pod_does_nothing() -> None:
    play = Play()
    play.add("a")
    play.queue.activate([key("a"), key("unknown")], play.now_s)
    assert play.queue.contents.incoming_pods() == {("active", "UnschedulablePodAdd"): 1}
