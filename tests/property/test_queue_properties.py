"""Whatever happens in whatever order: no pod is lost, none is in two places, and no change that counts is missed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import floor
from typing import NamedTuple

import pytest
from hypothesis import currently_in_test_context, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kubesched.framework import OK, ActionType, ClusterEvent, EventResource, Hint, PodInfo, PodSignature, Status
from kubesched.framework.events import RegisteredEvent
from kubesched.framework.extension_points import QueuedPod
from kubesched.k8s.model.core import Node, Pod, PodSpec
from kubesched.k8s.model.meta import ObjectMeta, PodKey
from kubesched.scheduler.queue import QueuedPodInfo, QueueProfile, QueueSettings, SchedulingQueue
from kubesched.scheduler.queue.changes import pod_events
from kubesched.scheduler.queue.hints import ClusterChange, HintTable, Requeue
from kubesched.scheduler.queue.queued_pod import Order, PodHeap
from kubesched.scheduler.queue.sub_queues import BackoffQueue, InFlightPods, SubQueues, UnschedulablePods

NAMES = [f"p{i}" for i in range(5)]
WANTS = ("a", "b")
REJECTORS = ("Fit", "Taints", "Claims")
GATE = "Gate"
WHICH = st.integers(0, len(NAMES) - 1)
NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
GATE_EVENT = ClusterEvent(EventResource.RESOURCE_SLICE, ActionType.ADD)
OWN_UPDATE = ClusterEvent(EventResource.POD, ActionType.UPDATE)


def _wants_node(info: PodInfo, _old: object | None, new: object | None) -> Hint:
    """A pod waits for a node of the name that its label says."""
    assert isinstance(new, Node)
    return Hint.QUEUE if info.labels["wants"] == new.name else Hint.SKIP


def _is_own(info: PodInfo, _old: object | None, new: object | None) -> Hint:
    return Hint.QUEUE if isinstance(new, Pod) and info.is_same_as(new) else Hint.SKIP


EVENTS = {
    "Fit": (RegisteredEvent(NODE_ADD, _wants_node),),
    "Taints": (RegisteredEvent(NODE_ADD, _wants_node), RegisteredEvent(OWN_UPDATE, _is_own)),
    "Claims": (RegisteredEvent(OWN_UPDATE, _is_own),),
    GATE: (RegisteredEvent(GATE_EVENT),),
}


def _sort_key(queued: QueuedPod) -> tuple[float, ...]:
    return (-queued.info.priority, queued.queued_at_s)


@dataclass
class Believed:
    """What the model knows of a pod: the object, whether it flies, and what would have woken it since its last pop."""

    pod: Pod
    flight: QueuedPodInfo | None = None
    woken_by: set[str] = field(default_factory=set)
    """Plugins that would have said QUEUE to something that happened since."""
    was_activated: bool = False


def _note(what: str) -> None:
    if currently_in_test_context():
        event(what)


def _pick(names: Iterable[str], which: int) -> str:
    choice = list(names)
    return choice[which % len(choice)]


class QueueMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now_s = 1000.0
        self.serial = 0
        self.closed: set[str] = set()
        self.known: dict[str, Believed] = {}
        self.forgotten: list[QueuedPodInfo] = []
        profile = QueueProfile(_sort_key, self._pre_enqueue, EVENTS)
        self.queue = SchedulingQueue(QueueSettings(), {"default-scheduler": profile})

    def check(self) -> None:
        """All that always holds."""
        self.every_pod_is_in_exactly_one_place()
        self.every_pod_is_as_last_heard_of()
        self.no_change_is_missed()
        self.what_waits_for_time_has_a_deadline()
        self.nobody_in_flight_means_nothing_is_kept()

    def _pre_enqueue(self, info: PodInfo) -> Status:
        return Status.unresolvable("closed").by(GATE) if info.name in self.closed else OK

    def _make(self, name: str, uid: str, wants: str, priority: int) -> Pod:
        self.serial += 1
        version = str(self.serial)
        metadata = ObjectMeta(name=name, namespace="ns", uid=uid, labels={"wants": wants}, resource_version=version)
        return Pod(metadata=metadata, spec=PodSpec(priority=priority))

    def _info(self, pod: Pod) -> PodInfo:
        return PodInfo(pod, PodSignature(pod, label_class=0, affinity_class=-1))

    def _wake(self, name: str, *plugins: str) -> None:
        self.known[name].woken_by.update(plugins)

    @initialize(priorities=st.lists(st.integers(0, 2), min_size=3, max_size=3))
    def start(self, priorities: list[int]) -> None:
        """With some pods from the beginning, for there are tests in which no more come."""
        for priority in priorities:
            self.add("a", priority, closed=False)

    # -- what may happen ----------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.known) < len(NAMES))
    @rule(wants=st.sampled_from(WANTS), priority=st.integers(0, 2), closed=st.sampled_from((False, False, False, True)))
    def add(self, wants: str, priority: int, closed: bool) -> None:
        name = next(name for name in NAMES if name not in self.known)
        (self.closed.add if closed else self.closed.discard)(name)
        self.serial += 1
        pod = self._make(name, f"uid-{self.serial}", wants, priority)
        self.known[name] = Believed(pod)
        self.queue.add(self._info(pod), self.now_s)

    @precondition(lambda self: self.known)
    @rule(which=WHICH)
    def add_again(self, which: int) -> None:
        name = _pick(self.known, which)
        self.queue.add(self._info(self.known[name].pod), self.now_s)
        self._wake(name, "Taints", "Claims")

    @precondition(lambda self: self.known)
    @rule(which=WHICH, wants=st.sampled_from(WANTS), priority=st.integers(0, 2))
    def update(self, which: int, wants: str, priority: int) -> None:
        name = _pick(self.known, which)
        believed = self.known[name]
        old = believed.pod
        believed.pod = self._make(name, old.metadata.uid, wants, priority)
        self.queue.update(old, self._info(believed.pod), self.now_s)
        believed.woken_by -= {"Fit", "Taints"} if wants != old.labels["wants"] else set()
        if any(OWN_UPDATE.matches(happened) for happened in pod_events(old, believed.pod)):
            self._wake(name, "Taints", "Claims")

    @precondition(lambda self: self.known)
    @rule(which=WHICH)
    def delete(self, which: int) -> None:
        believed = self.known.pop(_pick(self.known, which))
        self.queue.delete(self._info(believed.pod))
        if believed.flight is not None:
            self.forgotten.append(believed.flight)

    @precondition(lambda self: self.known)
    @rule(times=st.integers(1, 3))
    def pop(self, times: int) -> None:
        for _ in range(times):
            self._pop()

    def _pop(self) -> None:
        active = sorted(self.queue.contents.active, key=_sort_key)
        early = [queued for queued in self.queue.contents.backoff if queued.is_rejected]
        queued = self.queue.pop(self.now_s)
        if active:
            assert queued is not None
            assert _sort_key(queued) == _sort_key(active[0])
        elif early:
            _note("popped early")
            assert queued is not None
            first = min((other.backoff_until_s, _sort_key(other)) for other in early)
            assert (queued.backoff_until_s, _sort_key(queued)) == first
        else:
            assert queued is None
        if queued is not None:
            believed = self.known[queued.info.name]
            assert believed.flight is None
            believed.flight = queued
            believed.woken_by.clear()
            believed.was_activated = False

    def _flying(self) -> list[str]:
        return [name for name, believed in self.known.items() if believed.flight is not None]

    @precondition(lambda self: self._flying())
    @rule(which=WHICH)
    def bind(self, which: int) -> None:
        name = _pick(self._flying(), which)
        self.queue.done(self.known.pop(name).pod.metadata.uid)

    @precondition(lambda self: self._flying())
    @rule(
        which=WHICH,
        unschedulable=st.frozensets(st.sampled_from(REJECTORS), max_size=2),
        pending=st.sampled_from(("", "", "", "Claims", "Fit")).map(lambda plugin: frozenset({plugin} - {""})),
    )
    def fail(self, which: int, unschedulable: frozenset[str], pending: frozenset[str]) -> None:
        name = _pick(self._flying(), which)
        believed = self.known[name]
        queued = believed.flight
        assert queued is not None
        believed.flight = None
        queued.info = self._info(believed.pod)
        queued.unschedulable_plugins, queued.pending_plugins = unschedulable, pending
        self.queue.add_unschedulable(queued, is_error=not unschedulable | pending, now_s=self.now_s)
        if pending & believed.woken_by and name not in self.closed:
            _note("woken in flight, and straight to active")
            assert queued in self.queue.contents.active

    @rule(
        meanwhile=st.sampled_from(("nothing", "node", "update", "activate", "end another")),
        wants=st.sampled_from(WANTS),
        plugin=st.sampled_from(REJECTORS),
        is_pending=st.sampled_from((False, False, True)),
    )
    def attempt(self, meanwhile: str, wants: str, plugin: str, is_pending: bool) -> None:
        """What the other rules make now and then by chance: something happens during an attempt that fails."""
        before = self._flying()
        self._pop()
        started = [name for name in self._flying() if name not in before]
        if not started:
            return
        if meanwhile == "node" or meanwhile == "end another":
            self.node_comes(wants)
        if meanwhile == "update":
            self.update(list(self.known).index(started[0]), wants, 0)
        if meanwhile == "activate":
            self.activate(started[0])
        if meanwhile == "end another" and before:
            self.bind(0 if self._flying()[0] != started[0] else 1)
        rejectors = frozenset({plugin})
        which = self._flying().index(started[0])
        self.fail(which, frozenset() if is_pending else rejectors, rejectors if is_pending else frozenset())

    @precondition(lambda self: self.forgotten)
    @rule(is_error=st.booleans())
    def end_flight_of_a_deleted_pod(self, is_error: bool) -> None:
        """The loop sees that it is gone; a successor of its name may be known."""
        queued = self.forgotten.pop()
        if is_error and queued.info.name in self.known and self.known[queued.info.name].flight is None:
            self.queue.add_unschedulable(queued, is_error=True, now_s=self.now_s)
        else:
            self.queue.done(queued.uid)

    @rule(name=st.sampled_from(WANTS))
    def node_comes(self, name: str) -> None:
        waited = {
            queued.info.name
            for queued in self.queue.contents.unschedulable
            if queued.pending_plugins & {"Fit"} and queued.info.labels["wants"] == name
        }
        self.queue.move_all(NODE_ADD, None, Node(metadata=ObjectMeta(name=name)), self.now_s)
        for known, believed in self.known.items():
            if believed.pod.labels["wants"] == name:
                self._wake(known, "Fit", "Taints")
        active = {queued.info.name for queued in self.queue.contents.active}
        assert waited - self.closed <= active

    @rule(name=st.sampled_from(NAMES), opens=st.sampled_from((True, True, True, False)))
    def gate_changes(self, name: str, opens: bool) -> None:
        (self.closed.discard if opens else self.closed.add)(name)
        self.queue.move_all(GATE_EVENT, None, None, self.now_s)
        for queued in self.queue.contents.gated:
            assert queued.info.name in self.closed, "its gate is open, and it was told"

    @rule(name=st.sampled_from(NAMES))
    def activate(self, name: str) -> None:
        self.queue.activate([PodKey(f"ns/{name}")], self.now_s)
        believed = self.known.get(name)
        if believed is not None and believed.flight is not None:
            believed.was_activated = True
        elif believed is not None and name not in self.closed:
            assert name in {queued.info.name for queued in self.queue.contents.active}

    @rule(seconds=st.sampled_from((0.1, 0.1, 0.5, 0.5, 1.0, 3.0, 12.0, 331.0)))
    def time_passes(self, seconds: float) -> None:
        self.now_s += seconds
        self.queue.flush(self.now_s)
        for queued in self.queue.contents.backoff:
            assert queued.backoff_until_s >= floor(self.now_s), "its backoff is over"
        check_s = floor(self.now_s / 30) * 30
        for queued in (*self.queue.contents.unschedulable, *self.queue.contents.gated):
            assert check_s - queued.parked_since_s <= 300, "unschedulable for too long"
        deadline_s = self.queue.next_deadline_s()
        assert deadline_s is None or deadline_s > self.now_s, "there is nothing left to do now"

    # -- what always holds --------------------------------------------------------------------------------------------

    @invariant()
    def every_pod_is_in_exactly_one_place(self) -> None:
        contents = self.queue.contents
        waiting = [*contents.active, *contents.backoff, *contents.unschedulable, *contents.gated]
        expected = {name for name, believed in self.known.items() if believed.flight is None}
        assert Counter(queued.info.name for queued in waiting) == dict.fromkeys(expected, 1)
        flying = [believed.flight for believed in self.known.values() if believed.flight is not None]
        assert set(map(id, contents.in_flight)) == set(map(id, [*flying, *self.forgotten]))
        assert sum(contents.pending_pods().values()) == len(contents) == len(expected)

    @invariant()
    def no_change_is_missed(self) -> None:
        for queued in self.queue.contents.unschedulable:
            believed = self.known[queued.info.name]
            _note(f"waits for a change, with Pending: {bool(queued.pending_plugins)}")
            assert not believed.woken_by & queued.rejectors, "a plugin would have it tried again"
            assert not believed.was_activated, "it was to be tried again"

    @invariant()
    def every_pod_is_as_last_heard_of(self) -> None:
        contents = self.queue.contents
        for queued in (*contents.active, *contents.backoff, *contents.unschedulable, *contents.gated):
            believed = self.known.get(queued.info.name)
            assert believed is not None and queued.info.pod == believed.pod

    @invariant()
    def what_waits_for_time_has_a_deadline(self) -> None:
        pending = self.queue.contents.pending_pods()
        waits = pending["backoff"] + pending["unschedulable"] + pending["gated"]
        assert (self.queue.next_deadline_s() is not None) == bool(waits)

    @invariant()
    def nobody_in_flight_means_nothing_is_kept(self) -> None:
        counts = self.queue.contents.in_flight_events()
        assert counts["PodPopped"] > 0 or sum(counts.values()) == 0


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)


# -- planted bugs: each property is seen to fail -----------------------------------------------------------------------


def _forget_all_at_end(self: InFlightPods, uid: str) -> None:
    """The first pod to return takes the log of the others with it."""
    self.by_uid.pop(uid, None)
    self._first += len(self._log)
    self._log.clear()
    for queued in self.by_uid.values():
        queued.flight_start = self._first


def _keep_the_log(self: InFlightPods, uid: str) -> None:
    self.by_uid.pop(uid, None)


_push = PodHeap.push
_judge = HintTable.judge


def _push_unordered(self: PodHeap, queued: QueuedPodInfo, _order: Order) -> None:
    _push(self, queued, ())


def _judge_without_pending(self: HintTable, queued: QueuedPodInfo, change: ClusterChange) -> Requeue:
    how = _judge(self, queued, change)
    return Requeue.AFTER_BACKOFF if how is Requeue.IMMEDIATELY else how


def _nothing(*_args: object, **_kwargs: object) -> None:
    """Does not do what it should."""


def _nobody(*_args: object) -> list[QueuedPodInfo]:
    return []


def _never(*_args: object) -> None:
    return None


Deed = tuple[str, dict[str, object]]
"""A rule of the machine, and its arguments."""

ADD: Deed = ("add", {"wants": "a", "priority": 0, "closed": False})
ADD_IMPORTANT: Deed = ("add", {"wants": "a", "priority": 2, "closed": False})
ADD_CLOSED: Deed = ("add", {"wants": "a", "priority": 0, "closed": True})
OPEN: Deed = ("gate_changes", {"name": "p0", "opens": True})
POP: Deed = ("pop", {"times": 1})
BIND: Deed = ("bind", {"which": 0})
NODE: Deed = ("node_comes", {"name": "a"})
ACTIVATE: Deed = ("activate", {"name": "p0"})
PROMOTE: Deed = ("update", {"which": 0, "wants": "a", "priority": 1})
DEMOTE: Deed = ("update", {"which": 0, "wants": "a", "priority": -1})
WAIT: Deed = ("time_passes", {"seconds": 331})


def _fail(*plugins: str, pending: str = "") -> Deed:
    return ("fail", {"which": 0, "unschedulable": frozenset(plugins), "pending": frozenset({pending} - {""})})


class Planted(NamedTuple):
    owner: type[object]
    method: str
    bug: Callable[..., object]
    story: tuple[Deed, ...]
    found_by: str


IN_ONE_PLACE = "every_pod_is_in_exactly_one_place"
MISSED = "no_change_is_missed"
KEPT = "nobody_in_flight_means_nothing_is_kept"
DEADLINE = "what_waits_for_time_has_a_deadline"
BOTH_FAIL = (ADD, ADD, POP, POP, NODE, _fail("Fit"), _fail("Fit"))
PENDING_LATER = (ADD, POP, _fail(pending="Fit"), NODE)
PENDING_IN_FLIGHT = (ADD, POP, NODE, _fail(pending="Fit"))
REJECTED = (ADD, POP, _fail("Fit"))
OVERTAKEN = (ADD, ADD_IMPORTANT, POP)

BUGS = {
    "nothing is recorded": Planted(InFlightPods, "record", _nothing, (ADD, POP, NODE, _fail("Fit")), MISSED),
    "the log is cut too early": Planted(InFlightPods, "end", _forget_all_at_end, BOTH_FAIL, MISSED),
    "the log is never cut": Planted(InFlightPods, "end", _keep_the_log, (ADD, POP, NODE, BIND), KEPT),
    "nobody is found": Planted(UnschedulablePods, "concerned", _nobody, (*REJECTED, NODE), MISSED),
    "an open gate is not seen": Planted(UnschedulablePods, "concerned", _nobody, (ADD_CLOSED, OPEN), "gate_changes"),
    "own updates are ignored": Planted(
        SchedulingQueue, "_reconsider", _nothing, (ADD, POP, _fail("Taints"), PROMOTE), MISSED
    ),
    "updates are lost": Planted(SchedulingQueue, "update", _nothing, (ADD, PROMOTE), "every_pod_is_as_last_heard_of"),
    "activation is ignored": Planted(SchedulingQueue, "activate", _nothing, (*REJECTED, ACTIVATE), "activate"),
    "a rejected pod is put nowhere": Planted(SubQueues, "_park", _nothing, REJECTED, IN_ONE_PLACE),
    "a pod that moves also stays": Planted(SubQueues, "_leave", _nothing, (*REJECTED, ACTIVATE), IN_ONE_PLACE),
    "an updated pod keeps its place": Planted(SubQueues, "reorder", _nothing, (ADD, ADD, DEMOTE, POP), "_pop"),
    "whoever comes first goes first": Planted(PodHeap, "push", _push_unordered, OVERTAKEN, "_pop"),
    "a backoff is never over": Planted(
        BackoffQueue, "pop_completed", _nobody, (ADD, POP, _fail(), WAIT), "time_passes"
    ),
    "a backoff has no deadline": Planted(BackoffQueue, "next_deadline_s", _never, (ADD, POP, _fail()), DEADLINE),
    "nobody looks after the old": Planted(
        UnschedulablePods, "waiting_longer_than", _nobody, (*REJECTED, WAIT), "time_passes"
    ),
    "pending pods wait": Planted(HintTable, "judge", _judge_without_pending, PENDING_LATER, "node_comes"),
    "pending pods wait in flight": Planted(HintTable, "judge", _judge_without_pending, PENDING_IN_FLIGHT, "fail"),
}


def _tell(story: tuple[Deed, ...]) -> None:
    machine = QueueMachine()
    for what, how in story:
        getattr(machine, what)(**how)
        machine.check()


@pytest.mark.parametrize("planted", BUGS.values(), ids=BUGS)
def test_a_planted_bug_is_found(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    """The story is told without the bug first: it is the bug that is found."""
    _tell(planted.story)
    monkeypatch.setattr(planted.owner, planted.method, planted.bug)
    with pytest.raises(AssertionError) as found:
        _tell(planted.story)
    assert planted.found_by in {entry.name for entry in found.traceback}
