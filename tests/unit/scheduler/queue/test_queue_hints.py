"""Which changes bring a rejected pod back, and where to."""

from __future__ import annotations

import pytest
from queue_driver import (
    NODE_ADD,
    NODE_LABEL,
    NODE_TAINT,
    SLICE_ADD,
    Answers,
    Play,
    by_priority,
    info_of,
    no_gates,
    node,
    on,
    pod,
)

from kubesched.framework import ActionType, ClusterEvent, EventResource, Hint, PodInfo
from kubesched.framework.events import (
    ASSIGNED_POD_ADD,
    ASSIGNED_POD_DELETE,
    EVERY_CHANGE,
    UNSCHEDULABLE_TIMEOUT,
    RegisteredEvent,
)
from kubesched.scheduler.queue import QueuedPodInfo, QueueProfile, QueueSettings, SchedulingQueue
from kubesched.scheduler.queue.hints import ClusterChange, HintTable, Requeue

POD_DELETE = ClusterEvent(EventResource.POD, ActionType.DELETE)
ANYTHING = ClusterEvent(EventResource.WILDCARD, ActionType.ALL)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(Hint.QUEUE, "backoff", id="worth it"),
        pytest.param(Hint.SKIP, "unschedulable", id="not worth it"),
        pytest.param(RuntimeError("bug"), "backoff", id="a hint that breaks counts as worth it"),
    ],
)
def test_the_hint_decides(answer: Hint | Exception, expected: str) -> None:
    hint = Answers(answer)
    play = Play({"Fit": (on(NODE_ADD, hint),)})
    play.try_and_reject("a", "Fit")
    play.happen(NODE_ADD, None, node())
    assert play.where("a") == expected
    assert hint.asked == ["a"]


def test_a_hint_that_breaks_is_reported() -> None:
    broken = RuntimeError("bug")
    play = Play({"Fit": (on(NODE_ADD, Answers(broken)),)})
    play.try_and_reject("a", "Fit")
    play.happen(NODE_ADD, None, node())
    (failure,) = play.queue.contents.hint_failures()
    assert (failure.plugin, failure.event, failure.pod.key, failure.error) == ("Fit", "NodeAdd", "default/a", broken)


def test_only_plugins_that_rejected_the_pod_are_asked() -> None:
    own, other = Answers(Hint.SKIP), Answers()
    play = Play({"Own": (on(NODE_ADD, own),), "Other": (on(NODE_ADD, other),)})
    play.try_and_reject("a", "Own")
    play.happen(NODE_ADD, None, node())
    assert (own.asked, other.asked, play.where("a")) == (["a"], [], "unschedulable")


def test_a_pod_that_two_plugins_rejected_is_moved_once() -> None:
    play = Play({"A": (on(NODE_ADD, Answers(Hint.SKIP)),), "B": (on(NODE_ADD),)})
    play.try_and_reject("a", "A", "B")
    play.try_and_reject("b", "B")
    play.happen(NODE_ADD, None, node())
    assert (play.where("a"), play.where("b")) == ("backoff", "backoff")


@pytest.mark.parametrize(
    ("unschedulable", "pending", "expected"),
    [
        pytest.param(("Fit",), (), "backoff", id="rejected: the backoff is waited out"),
        pytest.param((), ("Claims",), "active", id="pending: it goes straight to active"),
        pytest.param(("Fit",), ("Claims",), "active", id="both: pending wins"),
        pytest.param(("Fit",), ("Silent",), "backoff", id="the pending plugin does not care"),
        pytest.param(("Silent",), (), "unschedulable", id="nobody cares"),
    ],
)
def test_a_pod_that_was_pending_skips_its_backoff(
    unschedulable: tuple[str, ...], pending: tuple[str, ...], expected: str
) -> None:
    silent = (on(NODE_ADD, Answers(Hint.SKIP)),)
    play = Play({"Fit": (on(NODE_ADD),), "Claims": (on(NODE_ADD),), "Silent": silent})
    play.try_and_reject("a", *unschedulable, pending=pending)
    play.happen(NODE_ADD, None, node())
    assert play.where("a") == expected


@pytest.mark.parametrize(
    ("registered", "happening", "expected"),
    [
        pytest.param(NODE_ADD, NODE_ADD, True, id="the same"),
        pytest.param(NODE_ADD, NODE_LABEL, False, id="another action"),
        pytest.param(NODE_ADD, SLICE_ADD, False, id="another resource"),
        pytest.param(ClusterEvent(EventResource.NODE, ActionType.UPDATE), NODE_LABEL, True, id="more specific"),
        pytest.param(NODE_LABEL, ClusterEvent(EventResource.NODE, ActionType.UPDATE), False, id="less specific"),
        pytest.param(POD_DELETE, ASSIGNED_POD_DELETE, True, id="a pod that is assigned is a pod"),
        pytest.param(POD_DELETE, ASSIGNED_POD_ADD, False, id="deleted is not added"),
        pytest.param(ASSIGNED_POD_DELETE, POD_DELETE, False, id="a pod need not be assigned"),
        pytest.param(ANYTHING, NODE_LABEL, True, id="registered for anything"),
        pytest.param(ClusterEvent(EventResource.WILDCARD, ActionType.ADD), SLICE_ADD, True, id="added, whatever it is"),
        pytest.param(
            ClusterEvent(EventResource.WILDCARD, ActionType.ADD), NODE_LABEL, False, id="added, whatever it is, is new"
        ),
        pytest.param(NODE_ADD, UNSCHEDULABLE_TIMEOUT, False, id="what stands for anything is nothing in particular"),
        pytest.param(ANYTHING, UNSCHEDULABLE_TIMEOUT, True, id="except to who registered for that"),
    ],
)
def test_which_events_match(registered: ClusterEvent, happening: ClusterEvent, expected: bool) -> None:
    assert registered.matches(happening) is expected


def test_who_waits_for_nodes_also_waits_for_nodes_that_lose_a_taint() -> None:
    hint = Answers(Hint.SKIP)
    play = Play({"Adds": (on(NODE_ADD, hint),), "Labels": (on(NODE_LABEL, hint),)})
    play.try_and_reject("a", "Adds")
    play.try_and_reject("b", "Labels")
    play.happen(NODE_TAINT, node(), node())
    assert (play.where("a"), play.where("b"), hint.asked) == ("backoff", "unschedulable", [])


def test_who_names_taints_itself_is_asked() -> None:
    play = Play({"Both": (on(NODE_ADD), on(NODE_TAINT, Answers(Hint.SKIP)))})
    play.try_and_reject("a", "Both")
    play.happen(NODE_TAINT, node(), node())
    assert play.where("a") == "unschedulable"


@pytest.mark.parametrize("event", [NODE_ADD, NODE_LABEL, NODE_TAINT, ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE])
def test_who_does_not_say_what_it_waits_for_waits_for_everything(event: ClusterEvent) -> None:
    play = Play({"Extender": EVERY_CHANGE})
    play.try_and_reject("a", "Extender")
    play.happen(event, node(), node())
    assert play.where("a") == "backoff"


def test_a_wildcard_event_moves_every_pod() -> None:
    play = Play({"Silent": (on(NODE_ADD, Answers(Hint.SKIP)),)})
    play.try_and_reject("a", "Silent")
    play.try_and_reject("b", "Unheard")
    play.happen(ANYTHING)
    assert (play.where("a"), play.where("b")) == ("backoff", "backoff")


def test_a_wildcard_event_with_a_pod_is_for_that_pod() -> None:
    play = Play()
    play.try_and_reject("a", "Fit")
    play.try_and_reject("b", "Fit")
    play.happen(ANYTHING, None, pod("b"))
    assert (play.where("a"), play.where("b")) == ("unschedulable", "backoff")


def test_a_move_can_be_limited_to_some_pods() -> None:
    play = Play({"Fit": (on(POD_DELETE),)})
    play.try_and_reject("low", "Fit", priority=1)
    play.try_and_reject("high", "Fit", priority=9)
    play.queue.move_all(ASSIGNED_POD_DELETE, pod("gone"), None, play.now_s, only=lambda info: info.priority <= 5)
    assert (play.where("low"), play.where("high")) == ("backoff", "unschedulable")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(None, pod("x", nodeName="n"), "unschedulable", id="came"),
        pytest.param(pod("x"), pod("x", nodeName="n"), "unschedulable", id="was bound"),
        pytest.param(pod("x", nodeName="n"), None, "backoff", id="went"),
        pytest.param(pod("x", nodeName="n"), pod("x", nodeName="n", labels={"a": "b"}), "backoff", id="other labels"),
    ],
)
def test_assigned_pods_move_those_that_wait_for_them(old: object, new: object, expected: str) -> None:
    label = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_LABEL)
    play = Play({"Fit": (on(POD_DELETE), on(label))})
    play.try_and_reject("a", "Fit")
    play.queue.on_assigned_pod(old, new, play.now_s)  # type: ignore[arg-type]
    assert play.where("a") == expected


def test_each_profile_has_its_own_hints() -> None:
    def profile(answer: Hint) -> QueueProfile:
        return QueueProfile(by_priority, no_gates, {"Fit": (on(NODE_ADD, Answers(answer)),)})

    queue = SchedulingQueue(QueueSettings(), {"x": profile(Hint.SKIP), "y": profile(Hint.QUEUE)})
    for name in ("x", "y"):
        queue.add(info_of(pod(name, schedulerName=name)), 0.0)
        queued = queue.pop(0.0)
        assert queued is not None
        queued.unschedulable_plugins = frozenset({"Fit"})
        queue.add_unschedulable(queued, is_error=False, now_s=0.0)
    queue.move_all(NODE_ADD, None, node(), 0.0)
    assert queue.contents.pending_pods() == {"active": 0, "backoff": 1, "unschedulable": 1, "gated": 0}


@pytest.mark.parametrize(
    ("answer", "by_signature", "asked"),
    [
        pytest.param(Hint.QUEUE, True, ["a1", "b1", "a4"], id="once for all that share it, and were rejected alike"),
        pytest.param(Hint.QUEUE, False, ["a1", "a2", "b1", "a3", "a4"], id="about each, unless it says otherwise"),
        pytest.param(RuntimeError("bug"), True, ["a1", "a2", "b1", "a3", "a4"], id="about each where it breaks"),
    ],
)
def test_a_hint_is_asked_by_signature(answer: Hint | Exception, by_signature: bool, asked: list[str]) -> None:
    hint = Answers(answer)
    registered = {"Fit": [RegisteredEvent(NODE_ADD, hint, by_signature)], "Other": [on(NODE_ADD, Answers(Hint.SKIP))]}
    table = HintTable({"default-scheduler": registered})
    judge = table.judge_all(ClusterChange(table.match(NODE_ADD), None, node()))
    signatures = {kind: info_of(pod(kind)).signature for kind in "ab"}
    for name, plugins in {"a1": "Fit", "a2": "Fit", "b1": "Fit", "a3": "Fit", "a4": "Fit Ports"}.items():
        info = PodInfo(pod(name, schedulerName="default-scheduler"), signatures[name[0]])
        queued = QueuedPodInfo(info, _PROFILE, 0.0)
        queued.unschedulable_plugins = frozenset(plugins.split())
        assert judge(queued) is Requeue.AFTER_BACKOFF
    assert hint.asked == asked


def test_about_a_change_of_the_pod_itself_its_hint_is_asked() -> None:
    hint = Answers(Hint.SKIP)
    table = HintTable({"default-scheduler": {"Fit": [RegisteredEvent(POD_DELETE, hint, by_signature=True)]}})
    signature = info_of(pod("a")).signature
    changed, other = pod("a", schedulerName="default-scheduler"), pod("b", schedulerName="default-scheduler")
    judge = table.judge_all(ClusterChange(table.match(ASSIGNED_POD_DELETE), changed, None))
    for one in (other, changed, changed):
        queued = QueuedPodInfo(PodInfo(one, signature), _PROFILE, 0.0)
        queued.unschedulable_plugins = frozenset({"Fit"})
        judge(queued)
    assert hint.asked == ["b", "a", "a"]


_PROFILE = QueueProfile(by_priority, no_gates, {})
