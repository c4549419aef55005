"""Where many pods wait, a change is asked about those whose hints look for it, and moves the same ones as ever."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from random import Random

import pytest
from queue_driver import Play, info_of, names, on, pod

from kubesched.framework import ActionType, ClusterEvent, EventResource, Hint, PodInfo
from kubesched.framework.events import ASSIGNED_POD_ADD, ASSIGNED_POD_DELETE, RegisteredEvent, Subjects
from kubesched.k8s.model.core import Pod
from kubesched.scheduler.queue import subjects
from kubesched.scheduler.queue.hints import HintTable

PODS = ClusterEvent(EventResource.POD, ActionType.ADD | ActionType.DELETE)
KINDS = "abcd"


class WaitsFor:
    """A hint: a pod waits for pods with the label that it has itself; one without that label for any."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, info: PodInfo, old: object | None, new: object | None) -> Hint:
        self.asked.append(info.name)
        changed = old if new is None else new
        assert isinstance(changed, Pod)
        wanted = info.labels.get("kind")
        is_it = info.is_same_as(changed) or wanted is None or changed.labels.get("kind") == wanted
        return Hint.QUEUE if is_it else Hint.SKIP


def _of_pod(info: PodInfo) -> Collection[Hashable] | None:
    kind = info.labels.get("kind")
    return None if kind is None else (kind,)


def _of_change(old: object | None, new: object | None) -> Collection[Hashable] | None:
    changed = old if new is None else new
    assert isinstance(changed, Pod)
    kind = changed.labels.get("kind")
    return None if kind is None else (kind,)


KIND = Subjects(_of_pod, _of_change)


def narrowed(hint: WaitsFor, about: Subjects = KIND) -> RegisteredEvent:
    return RegisteredEvent(PODS, hint, by_signature=True, subjects=about)


@pytest.fixture(autouse=True)
def _few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subjects, "MANY", 2)


def placed(name: str, kind: str | None) -> Pod:
    return pod(name, labels=None if kind is None else {"kind": kind}, nodeName="n")


def _crowd(play: Play, kinds: Iterable[str | None], *plugins: str) -> None:
    for number, kind in enumerate(kinds):
        play.try_and_reject(f"p{number}", *plugins, labels=None if kind is None else {"kind": kind})


def test_only_pods_that_look_for_the_change_are_asked_about() -> None:
    hint = WaitsFor()
    play = Play({"Near": (narrowed(hint),)})
    _crowd(play, ["a", "b", None, "a", "c"], "Near")
    play.happen(ASSIGNED_POD_ADD, None, placed("x", "a"))
    assert hint.asked == ["p0", "p2", "p3"]
    assert names(play.queue.contents.unschedulable) == ["p1", "p4"]


@pytest.mark.parametrize(
    ("changed", "asked"),
    [
        pytest.param(placed("x", None), ["p0", "p1", "p2"], id="a change that may concern any"),
        pytest.param(placed("p1", "b"), ["p1"], id="the changed pod itself, whatever it looks for"),
        pytest.param(placed("x", "d"), [], id="none looks for it"),
    ],
)
def test_who_is_asked(changed: Pod, asked: list[str]) -> None:
    hint = WaitsFor()
    play = Play({"Near": (narrowed(hint),)})
    _crowd(play, ["a", "a", "a"], "Near")
    play.happen(ASSIGNED_POD_DELETE, changed, None)
    assert hint.asked == asked


def test_a_pod_that_changed_is_asked_by_what_it_looks_for_now() -> None:
    hint = WaitsFor()
    play = Play({"Near": (narrowed(hint),)})
    _crowd(play, ["a", "a", "a"], "Near")
    play.happen(ASSIGNED_POD_ADD, None, placed("x", "b"))  # those that wait are filed
    play.queue.update(None, info_of(pod("p0", labels={"kind": "b"})), play.now_s)
    play.happen(ASSIGNED_POD_ADD, None, placed("x", "b"))
    assert names(play.queue.contents.backoff) == ["p0"]


def test_one_that_cannot_say_what_it_looks_for_is_asked() -> None:
    def broken(*_about: object) -> Collection[Hashable]:
        raise RuntimeError("bug")

    for about in (Subjects(broken, _of_change), Subjects(_of_pod, broken)):
        hint = WaitsFor()
        play = Play({"Near": (narrowed(hint, about),)})
        _crowd(play, ["a", "b"], "Near")
        play.happen(ASSIGNED_POD_ADD, None, placed("x", "b"))
        assert hint.asked == ["p0", "p1"]


def test_hints_that_are_measured_are_asked_about_every_pod() -> None:
    events = {"default-scheduler": {"Near": (narrowed(WaitsFor()),)}}
    assert HintTable(events).match(ASSIGNED_POD_ADD).subjects == {"Near": KIND}
    assert not HintTable(events, lambda _plugin, _event, hint: hint).match(ASSIGNED_POD_ADD).subjects


def test_profiles_that_do_not_agree_are_asked_about_every_pod() -> None:
    other = Subjects(lambda _pod: None, _of_change)
    table = HintTable({"one": {"Near": (narrowed(WaitsFor()),)}, "two": {"Near": (narrowed(WaitsFor(), other),)}})
    assert not table.match(ASSIGNED_POD_ADD).subjects


def _told(seed: int, many: int, patch: pytest.MonkeyPatch) -> tuple[list[object], int]:
    """What becomes of pods that three plugins reject, of which one does not say what its hint looks for; and how often
    hints were asked."""
    patch.setattr(subjects, "MANY", many)
    random = Random(seed)
    near, away, other = WaitsFor(), WaitsFor(), WaitsFor()
    events = {"Other": (on(PODS, other),), "Near": (narrowed(near),), "Away": (narrowed(away),)}
    play = Play(events)
    happened: list[object] = []
    number = 0
    for _ in range(60):
        deed = random.randrange(8)
        kind = random.choice([*KINDS, None]) if random.random() < 0.3 else random.choice(KINDS)
        if deed <= 2:
            number += 1
            play.add(f"p{number}", labels=None if kind is None else {"kind": kind})
        elif deed <= 4:
            while play.pop() is not None:
                play.reject(*random.sample(("Other", "Near", "Near", "Away", "Away"), random.choice((1, 1, 2))))
                if random.random() < 0.3:
                    break
        elif deed == 5:
            name = f"p{random.randint(1, number + 1)}"
            if play.where(name) not in ("nowhere", "in flight"):
                play.queue.update(None, info_of(pod(name, labels={"kind": random.choice(KINDS)})), play.now_s)
        elif deed == 6:
            name = f"p{random.randint(1, number + 1)}"
            play.queue.delete(info_of(pod(name)))
        else:
            play.now_s += random.choice((0.0, 1.0, 20.0))
            play.queue.flush(play.now_s)
        changed = placed(random.choice(("x", f"p{random.randint(1, number + 1)}")), kind)
        play.happen(ASSIGNED_POD_ADD, None, changed)
        contents = play.queue.contents
        happened.append([names(pods) for pods in (contents.active, contents.backoff, contents.unschedulable)])
    happened.append(play.queue.contents.incoming_pods())
    return happened, sum(len(hint.asked) for hint in (near, away, other))


def test_it_changes_nothing_but_how_often_hints_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    n_asked = n_asked_of_each = 0
    for seed in range(150):
        told, n = _told(seed, 1, monkeypatch)
        expected, n_of_each = _told(seed, 10_000, monkeypatch)
        assert told == expected, f"seed {seed}"
        n_asked += n
        n_asked_of_each += n_of_each
    assert n_asked < 0.8 * n_asked_of_each
