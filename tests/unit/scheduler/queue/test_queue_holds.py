"""A gate that can be asked whether it still holds a pod back."""

from __future__ import annotations

from typing import Any

import pytest
from queue_driver import NODE_ADD, info_of, node, on, pod

from kubesched.framework import OK, PodInfo, Status
from kubesched.framework.status import Code, Hold
from kubesched.scheduler.queue import QueueProfile, QueueSettings, SchedulingQueue


class Gatekeeper:
    """Holds pods back by uid."""

    def __init__(self) -> None:
        self.held: set[str] = set()
        self.n_asked = 0
        self.calls = False
        """Whether it says when a pod is held back no more."""

    def gate(self, info: PodInfo) -> Status:
        self.n_asked += 1
        uid = info.uid
        if uid not in self.held:
            return OK
        code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        return Hold(code, ("held",), lasts=lambda: uid in self.held, ends_by_call=self.calls).by("keeper")


def _queue(keeper: Gatekeeper) -> SchedulingQueue:
    def sort_key(queued: Any) -> tuple[float, ...]:
        return (queued.queued_at_s,)

    profile = QueueProfile(sort_key, keeper.gate, {"keeper": (on(NODE_ADD),)}, {"keeper": keeper.gate})
    return SchedulingQueue(QueueSettings(), {"default-scheduler": profile})


def _holding_back_p(*, calls: bool = False) -> tuple[Gatekeeper, SchedulingQueue]:
    keeper = Gatekeeper()
    keeper.calls = calls
    keeper.held.add("uid-p")
    queue = _queue(keeper)
    queue.add(info_of(pod("p")), 0.0)
    return keeper, queue


def _where(queue: SchedulingQueue) -> tuple[int, int]:
    return len(queue.contents.active), len(queue.contents.gated)


def test_a_pod_whose_hold_lasts_stays_and_its_gate_is_not_asked() -> None:
    keeper, queue = _holding_back_p()
    asked = keeper.n_asked
    queue.move_all(NODE_ADD, None, node(), 1.0)
    assert (_where(queue), keeper.n_asked) == ((0, 1), asked)


def test_a_pod_whose_hold_is_over_goes_with_the_next_change() -> None:
    keeper, queue = _holding_back_p()
    keeper.held.clear()
    assert _where(queue) == (0, 1)
    queue.move_all(NODE_ADD, None, node(), 1.0)
    assert _where(queue) == (1, 0)


def test_a_pod_that_waits_to_be_called_is_not_concerned_by_changes_before() -> None:
    keeper, queue = _holding_back_p(calls=True)
    keeper.held.clear()
    queue.move_all(NODE_ADD, None, node(), 1.0)
    assert _where(queue) == (0, 1)
    queue.hold_may_be_over([info_of(pod("p")).key])
    assert _where(queue) == (0, 1)
    queue.move_all(NODE_ADD, None, node(), 2.0)
    assert _where(queue) == (1, 0)


def test_a_pod_that_is_called_too_early_stays() -> None:
    _keeper, queue = _holding_back_p(calls=True)
    queue.hold_may_be_over([info_of(pod("p")).key])
    queue.move_all(NODE_ADD, None, node(), 1.0)
    assert _where(queue) == (0, 1)


def test_a_pod_that_changes_is_concerned_by_changes_again() -> None:
    _keeper, queue = _holding_back_p(calls=True)
    queue.update(None, info_of(pod("p", uid="another")), 1.0)
    queue.move_all(NODE_ADD, None, node(), 2.0)
    assert _where(queue) == (1, 0)


def test_what_held_a_pod_says_nothing_about_another_in_its_place() -> None:
    _keeper, queue = _holding_back_p()
    queue.update(None, info_of(pod("p", uid="another")), 1.0)
    queue.move_all(NODE_ADD, None, node(), 2.0)
    assert _where(queue) == (1, 0)


@pytest.mark.parametrize(
    ("other", "equal"),
    [
        pytest.param(Status.unresolvable("held"), True, id="a status that says the same"),
        pytest.param(Status.unschedulable("held"), False, id="another code"),
        pytest.param(Status.unresolvable("held").by("x"), False, id="another plugin"),
        pytest.param("held", False, id="no status"),
    ],
)
def test_a_hold_equals_what_says_the_same(other: object, equal: bool) -> None:
    hold = Hold(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("held",), lasts=lambda: True)
    assert (hold == other) is equal
    assert not equal or hash(hold) == hash(other)
