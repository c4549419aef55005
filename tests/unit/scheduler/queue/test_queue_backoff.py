"""How long a pod that failed waits before it is tried again."""

from __future__ import annotations

from math import inf

import pytest
from queue_driver import NODE_ADD, Play, info_of, key, names, node, on, pod

from kubesched.scheduler.queue import QueueSettings

FIT = {"Fit": (on(NODE_ADD),)}
STRICT = QueueSettings(pop_from_backoff=False)


def test_a_backoff_doubles_up_to_its_maximum() -> None:
    play = Play(FIT)
    play.add("a")
    waits = []
    for _ in range(6):
        play.pop()
        play.reject("Fit")
        assert play.popped is not None
        waits.append(play.popped.backoff_until_s - play.now_s)
        play.wait(20)
        play.happen(NODE_ADD, None, node())
    assert waits == [1, 2, 4, 8, 10, 10]


def test_errors_are_counted_apart_and_from_the_start_when_one_attempt_did_not_break() -> None:
    play = Play(FIT)
    play.add("a")
    waits = []
    for plugins in ((), (), ("Fit",), (), ("Fit",)):
        assert play.pop() == "a"
        play.reject(*plugins)
        assert play.popped is not None
        waits.append(play.popped.backoff_until_s - play.now_s)
        play.wait(20)
        play.happen(NODE_ADD, None, node())
    assert waits == [1, 2, 1, 1, 2]


@pytest.mark.parametrize(
    ("initial_s", "max_s", "failures", "expected"),
    [
        pytest.param(1, 10, 1, 1, id="the first"),
        pytest.param(3, 10, 2, 6, id="doubled"),
        pytest.param(3, 10, 3, 10, id="capped"),
        pytest.param(5, 5, 1, 5, id="always the same"),
        pytest.param(1, 10, 5000, 10, id="more often than a number can be doubled"),
        pytest.param(1, 0, 3, -inf, id="switched off"),
    ],
)
def test_the_length_of_a_backoff(initial_s: float, max_s: float, failures: int, expected: float) -> None:
    play = Play(settings=QueueSettings(initial_backoff_s=initial_s, max_backoff_s=max_s))
    play.add("a")
    play.pop()
    assert play.popped is not None
    play.popped.unschedulable_count = failures - 1
    play.reject("Fit")
    assert play.popped.backoff_until_s - play.now_s == expected


@pytest.mark.parametrize(
    ("settings", "until_s", "deadline_s"),
    [
        pytest.param(QueueSettings(), 1001.0, 1002.0, id="ends are rounded down, and the whole second must pass"),
        pytest.param(STRICT, 1001.75, 1002.0, id="without windows, at the next full second"),
    ],
)
def test_a_backoff_is_over_at_a_full_second(settings: QueueSettings, until_s: float, deadline_s: float) -> None:
    play = Play(settings=settings)
    play.now_s = 1000.75
    play.try_and_reject("a")
    assert play.where("a") == "backoff"
    assert play.popped is not None
    assert play.popped.backoff_until_s == until_s
    assert play.queue.next_deadline_s() == deadline_s
    play.wait(deadline_s - 0.01 - play.now_s)
    assert play.where("a") == "backoff"
    play.wait(deadline_s - play.now_s)
    assert play.where("a") == "active"
    assert play.queue.next_deadline_s() is None


@pytest.mark.parametrize(
    ("after_s", "expected"),
    [
        pytest.param(0.0, "backoff", id="just failed"),
        pytest.param(1.99, "backoff", id="in the second in which its backoff ends"),
        pytest.param(2.0, "active", id="when that second is over"),
    ],
)
def test_a_change_moves_a_pod_into_backoff_unless_that_is_over(after_s: float, expected: str) -> None:
    play = Play(FIT)
    play.try_and_reject("a", "Fit")
    play.now_s += after_s
    play.happen(NODE_ADD, None, node())
    assert play.where("a") == expected


def test_with_nothing_else_to_do_a_pod_is_popped_before_its_backoff_is_over() -> None:
    play = Play(FIT)
    play.try_and_reject("a", "Fit")
    play.happen(NODE_ADD, None, node())
    play.add("b")
    assert [play.pop(), play.pop(), play.pop()] == ["b", "a", None]
    assert play.queue.contents.incoming_pods()["active", "PopFromBackoffQ"] == 1


@pytest.mark.parametrize("settings", [pytest.param(STRICT, id="not allowed"), pytest.param(None, id="after an error")])
def test_a_pod_is_not_popped_early(settings: QueueSettings | None) -> None:
    play = Play(FIT, settings)
    play.try_and_reject("a", *(["Fit"] if settings else []))
    play.happen(NODE_ADD, None, node())
    assert play.where("a") == "backoff"
    assert play.pop() is None


def _three_backing_off(settings: QueueSettings) -> Play:
    play = Play(FIT, settings)
    for name, priority, at_s in (("a", 0, 1000.3), ("b", 7, 1000.9), ("c", 9, 1001.2)):
        play.now_s = at_s
        play.try_and_reject(name, "Fit", priority=priority)
    play.happen(NODE_ADD, None, node())
    return play


def test_within_a_second_pods_back_off_in_the_order_of_the_active_queue() -> None:
    assert names(_three_backing_off(QueueSettings()).queue.contents.backoff) == ["b", "a", "c"]


def test_without_windows_pods_back_off_in_the_order_of_their_end() -> None:
    assert names(_three_backing_off(STRICT).queue.contents.backoff) == ["a", "b", "c"]


def test_an_update_in_backoff_changes_the_order_there() -> None:
    play = _three_backing_off(QueueSettings())
    play.queue.update(pod("a"), info_of(pod("a", priority=8)), play.now_s)
    assert names(play.queue.contents.backoff) == ["a", "b", "c"]
    play.queue.delete(info_of(pod("a")))
    assert names(play.queue.contents.backoff) == ["b", "c"]


def test_a_plugin_can_end_a_backoff() -> None:
    play = _three_backing_off(STRICT)
    play.queue.activate([key("b")], play.now_s)
    assert play.where("b") == "active"
    assert play.queue.contents.incoming_pods()["active", "ForceActivate"] == 1
