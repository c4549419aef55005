"""What `kubesched run` says about pods: kube-scheduler's lines for the same pods, quiet at V(1), each line declared."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest

from kubesched.framework import OK, BindPod, CycleState, Failed, Handle, PermitResult, PodInfo, Status
from kubesched.framework.events import ASSIGNED_POD_DELETE, Hint, RegisteredEvent
from kubesched.k8s.client.list_watch import log_lines as list_watch_lines
from kubesched.k8s.model import manifests
from kubesched.live.logs import configure_logs, reference_page, scheduling_lines, start_lines
from kubesched.live.logs.scheduling import SchedulingLog
from kubesched.scheduler.build import build_loop
from kubesched.scheduler.config import load
from kubesched.scheduler.engine.score import ByName
from kubesched.scheduler.plugins.registry import REGISTRY
from kubesched.testing import make
from kubesched.testing.world import World

LINE = re.compile(r"([IWE])\d{4} [\d:.]+ +\d+ scheduling\.py:\d+\] (.*)")


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    yield stream
    for handler in [known for known in logging.getLogger().handlers if getattr(known, "stream", None) is stream]:
        logging.getLogger().removeHandler(handler)


class OurPlugin:
    def __init__(self, args: object, handle: Handle) -> None:
        pass


class Slow:
    """Every look at it is 200 ms later."""

    at_s = 1000.0

    def __call__(self) -> float:
        self.at_s += 0.2
        return self.at_s


def world_at(
    v: int, stream: io.StringIO, *plugins: type, clock: Any = None, world: type[World] = World, **profile: Any
) -> World:
    configure_logs(v, stream=stream)
    names = [{"name": plugin.__name__} for plugin in plugins]
    config: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"enabled": names}, **profile}}],
    }
    registry = REGISTRY.merged_with({plugin.__name__: plugin for plugin in plugins})
    loop = build_loop(load(config, "test"), ByName(), registry=registry, clock=clock)
    SchedulingLog(v, clock=lambda: made.now_s).listen_to(loop)
    made = world(loop)
    return made


def put(world: World, *items: make.Manifest) -> None:
    world.add(*manifests.from_dicts(items).objects)


def lines(stream: io.StringIO) -> list[str]:
    """Severity and what was said, without time and place."""
    found = (LINE.match(line) for line in stream.getvalue().splitlines())
    return [f"{match[1]} {match[2]}" for match in found if match]


def a_day_of_pods(world: World) -> None:
    """The pods of kube-scheduler's own recorded log: one that fits, one too big, one whose claim is missing, a gated
    one, one that is being deleted, and one that preempts another."""
    put(world, make.node("n1", cpu=4), make.node("n2", cpu=4))
    put(world, make.pod("fits", cpu=1), make.pod("low1", cpu=2, priority=1), make.pod("low2", cpu=2, priority=1))
    put(world, make.pod("toobig", cpu=9), make.pod("gated", spec={"schedulingGates": [{"name": "example.com/x"}]}))
    claim = [{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}]
    put(world, make.pod("nopvc", spec={"volumes": claim}))
    deleting = make.pod("deleting", cpu=9)
    deleting["metadata"]["deletionTimestamp"] = "2026-11-17T22:40:22Z"
    put(world, deleting)
    world.run()
    put(world, make.pod("high1", cpu=4, priority=100))
    world.run(for_s=3)


OF_A_POD = {
    "fits": [
        'I "Add event for unscheduled pod" pod="default/fits"',
        'I "About to try and schedule pod" pod="default/fits"',
        'I "Attempting to schedule pod" pod="default/fits"',
        'I "Attempting to bind pod to node" logger="Bind.DefaultBinder" pod="default/fits" node="n1"',
        'I "Add event for scheduled pod" pod="default/fits"',
        'I "Delete event for unscheduled pod" pod="default/fits"',
        'I "Successfully bound pod to node" pod="default/fits" node="n1" evaluatedNodes=2 feasibleNodes=2',
    ],
    "gated": [
        'I "Add event for unscheduled pod" pod="default/gated"',
        'I "Status after running PreEnqueue plugin" pod="default/gated" plugin="SchedulingGates" '
        'status="waiting for scheduling gates: [example.com/x]"',
    ],
    "deleting": [
        'I "Add event for unscheduled pod" pod="default/deleting"',
        'I "About to try and schedule pod" pod="default/deleting"',
        'I "Skip schedule deleting pod" pod="default/deleting"',
    ],
    "nopvc": [
        'I "Add event for unscheduled pod" pod="default/nopvc"',
        'I "About to try and schedule pod" pod="default/nopvc"',
        'I "Attempting to schedule pod" pod="default/nopvc"',
        'E "Status after running PostFilter plugins for pod" pod="default/nopvc" status="not found"',
        'I "Unable to schedule pod; no fit; waiting" pod="default/nopvc" '
        'err="0/2 nodes are available: persistentvolumeclaim \\"missing\\" not found. not found"',
        'I "Pod moved to an internal scheduling queue" pod="default/nopvc" event="ScheduleAttemptFailure" '
        'queue="Unschedulable" schedulingCycle=5 hint=0 unschedulable plugins={"VolumeRestrictions":{}}',
        'I "Updating pod condition and nominated node name" pod="default/nopvc" conditionType="PodScheduled" '
        'conditionStatus="False" conditionReason="Unschedulable"',
        'I "Update event for unscheduled pod" pod="default/nopvc"',
    ],
    "high1": [
        'I "Add event for unscheduled pod" pod="default/high1"',
        'I "About to try and schedule pod" pod="default/high1"',
        'I "Attempting to schedule pod" pod="default/high1"',
        'I "the target node for the preemption is determined" logger="PostFilter.DefaultPreemption" '
        'pod="default/high1" node="n2"',
        'I "Unable to schedule pod; no fit; waiting" pod="default/high1" '
        'err="0/2 nodes are available: 2 Insufficient cpu."',
        'I "Pod moved to an internal scheduling queue" pod="default/high1" event="ScheduleAttemptFailure" '
        'queue="Unschedulable" schedulingCycle=7 hint=0 unschedulable plugins={"NodeResourcesFit":{}}',
        'I "Updating pod condition and nominated node name" pod="default/high1" conditionType="PodScheduled" '
        'conditionStatus="False" conditionReason="Unschedulable" nominatedNodeName="n2" nominatingMode=1',
        'I "Start the preemption asynchronously" preemptor="default/high1" node="n2" numVictims=1 numVictimsToDelete=1',
        'I "Update event for unscheduled pod" pod="default/high1"',
        'I "Preemptor Pod preempted victim Pod" preemptor="default/high1" victim="default/low2" node="n2"',
        'I "Async Preemption finished completely" preemptor="default/high1" node="n2" result="success"',
        'I "About to try and schedule pod" pod="default/high1"',
        'I "Attempting to schedule pod" pod="default/high1"',
        'I "Attempting to bind pod to node" logger="Bind.DefaultBinder" pod="default/high1" node="n2"',
        'I "Add event for scheduled pod" pod="default/high1"',
        'I "Delete event for unscheduled pod" pod="default/high1"',
        'I "Successfully bound pod to node" pod="default/high1" node="n2" evaluatedNodes=1 feasibleNodes=1',
    ],
}


@pytest.mark.parametrize("name", OF_A_POD)
def test_at_4_each_pod_has_the_lines_that_kube_scheduler_writes(name: str, written: io.StringIO) -> None:
    a_day_of_pods(world_at(4, written))
    about = re.compile(f'(pod|preemptor)="default/{name}"')
    assert [line for line in lines(written) if about.search(line)] == OF_A_POD[name]


def test_at_1_nothing_is_said_but_what_went_wrong(written: io.StringIO) -> None:
    a_day_of_pods(world_at(1, written))
    assert [line for line in lines(written) if not line.startswith("E")] == []


def test_at_10_every_plugin_tells_every_nodes_score_class_cache_or_not(written: io.StringIO) -> None:
    world = world_at(10, written)
    put(world, make.node("n1", cpu=4), make.node("n2", cpu=8), *(make.pod(f"p{i}", cpu=1) for i in range(3)))
    world.run()
    found = lines(written)
    for pod in ("p0", "p1", "p2"):
        scores = [line for line in found if "scored node" in line and f'"default/{pod}"' in line]
        finals = [line for line in found if "final score" in line and f'"default/{pod}"' in line]
        assert len(scores) == 5 * 2 and len(finals) == 2
    assert 'I "Plugin scored node for pod" pod="default/p0" plugin="TaintToleration" node="n1" score=300' in found


def test_a_decision_that_takes_long_leaves_a_trace(written: io.StringIO) -> None:
    world = world_at(2, written, clock=Slow())
    put(world, make.node("n1"), make.node("n2"), make.pod("p"))
    world.run()
    text = written.getvalue()
    assert re.search(r'Trace\[\d+\]: "Scheduling" namespace:default,name:p \(.*\) \(total time: \d+ms\):', text)
    assert re.search(r'Trace\[\d+\]: ---"Computing predicates done" \d+ms', text)
    assert "] END" in text


def test_a_quick_decision_leaves_none(written: io.StringIO) -> None:
    world = world_at(4, written, clock=lambda: 1.0)
    put(world, make.node("n1"), make.pod("p"))
    world.run()
    assert "Trace" not in written.getvalue()


# -- plugins that break ------------------------------------------------------------------------------------------------


def breaking(extension_point: str) -> type:
    """A plugin that raises at one extension point, and does nothing at the others it needs."""

    def broken(*_given: Any) -> Any:
        raise ZeroDivisionError(f"in {extension_point}")

    methods: dict[str, Any] = {"name": "Shaky", extension_point: broken}
    if extension_point in ("reserve", "unreserve"):
        methods.setdefault("reserve", lambda *_given: OK)
        methods.setdefault("unreserve", lambda *_given: None)
    if extension_point == "unreserve":
        methods["permit"] = lambda *_given: PermitResult(Status.unschedulable("no"))
    if extension_point in ("pre_bind", "pre_bind_pre_flight"):
        methods.setdefault("pre_bind_pre_flight", lambda *_given: OK)
        methods.setdefault("pre_bind", broken)
    if extension_point == "post_filter":
        methods["filter_node"] = lambda *_given: Status.unschedulable("no")
    return type("Shaky", (OurPlugin,), methods)


STAGES = [
    "pre_filter",
    "filter_node",
    "post_filter",
    "pre_score",
    "score_node",
    "reserve",
    "unreserve",
    "permit",
    "pre_bind_pre_flight",
    "pre_bind",
    "bind",
    "post_bind",
]


@pytest.mark.parametrize("v", [0, 4])
@pytest.mark.parametrize("extension_point", STAGES)
def test_a_plugin_that_breaks_anywhere_is_told_with_its_stack(
    extension_point: str, v: int, written: io.StringIO
) -> None:
    alone: dict[str, Any] = {"bind": {"disabled": [{"name": "DefaultBinder"}]}} if extension_point == "bind" else {}
    world = world_at(v, written, breaking(extension_point), **alone)
    put(world, make.node("n1"), make.node("n2"), make.pod("p"))
    world.run()
    text = written.getvalue()
    (told,) = [line for line in lines(written) if line.startswith('E "Plugin failed"')]
    assert f"in {extension_point}" in told and 'plugin="Shaky"' in told
    assert "ZeroDivisionError" in text and "def broken" not in text and "test_scheduling_log.py" in text


def test_the_same_failure_is_told_once_a_minute_with_a_count(written: io.StringIO) -> None:
    world = world_at(0, written, breaking("post_bind"))
    put(world, make.node("n1", cpu=100), *(make.pod(f"p{i}") for i in range(5)))
    world.run()
    world.now_s += 61
    put(world, make.pod("later"))
    world.run()
    told = [line for line in lines(written) if '"Plugin failed"' in line]
    assert len(told) == 2 and "repeated" not in told[0] and "repeated=4" in told[1]


def test_a_hint_that_breaks_is_told(written: io.StringIO) -> None:
    class Shaky(OurPlugin):
        name = "Shaky"

        def filter_node(self, cycle: CycleState, pod: PodInfo, node: Any) -> Status:
            return Status.unschedulable("no") if pod.name == "p" else OK

        def events_to_register(self) -> list[RegisteredEvent]:
            return [RegisteredEvent(ASSIGNED_POD_DELETE, self._hint)]

        def _hint(self, pod: PodInfo, old: object, new: object) -> Hint:
            raise ZeroDivisionError("hint")

    world = world_at(0, written, Shaky)
    put(world, make.node("n1"), make.pod("p"), make.pod("q", on="n1"))
    world.run()
    world.delete(world.pods["default/q"])  # type: ignore[index]
    assert [line for line in lines(written) if "QueueingHintFn" in line] == [
        'E "QueueingHintFn returns error" err="hint" event="AssignedPodDelete" plugin="Shaky" pod="default/p"'
    ]


# -- from a node to a binding ------------------------------------------------------------------------------------------


def test_a_binding_that_is_refused_is_told_at_1_and_undone_at_4(written: io.StringIO) -> None:
    class Refusing(World):
        def carry_out(self, action: object) -> object:
            return Failed("Operation cannot be fulfilled") if isinstance(action, BindPod) else super().carry_out(action)

    world = world_at(1, written, world=Refusing)
    put(world, make.node("n1"), make.pod("p"))
    world.run()
    assert [line.partition(" err=")[0] for line in lines(written)] == [
        'E "Plugin failed"',
        'I "Failed to bind pod" pod="default/p"',
        'E "Error scheduling pod; retrying"',
    ]


def test_a_reserve_plugin_that_answers_with_an_error_is_named_and_unreserve_runs_once(written: io.StringIO) -> None:
    given_back: list[str] = []

    class Full(OurPlugin):
        name = "Full"

        def reserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> Status:
            return Status.error("boom")

        def unreserve(self, cycle: CycleState, pod: PodInfo, node_name: str) -> None:
            given_back.append(pod.name)

    world = world_at(4, written, Full)
    put(world, make.node("n1"), make.pod("p"))
    world.run()
    assert given_back == ["p"]
    assert [event.note for event in world.events] == ['running Reserve plugin "Full": boom']
    assert 'E "Plugin failed" err="boom" plugin="Full" pod="default/p" node="n1"' in lines(written)
    assert any(line.startswith('I "Unreserved pod"') for line in lines(written))


def test_without_postfilter_plugins_it_is_said_that_nobody_preempts(written: io.StringIO) -> None:
    world = world_at(3, written, postFilter={"disabled": [{"name": "*"}]})
    put(world, make.node("n1", cpu=1), make.pod("p", cpu=2))
    world.run()
    assert 'I "No PostFilter plugins are registered, so no preemption will be performed"' in lines(written)


class _Keeper(logging.Handler):
    def __init__(self, records: list[logging.LogRecord]) -> None:
        super().__init__()
        self._records = records

    def emit(self, record: logging.LogRecord) -> None:
        self._records.append(record)


# -- the reference -----------------------------------------------------------------------------------------------------


def test_what_is_written_is_declared(written: io.StringIO) -> None:
    declared = {
        line.message: {*line.pairs, "logger", "stack", "repeated"}
        for module in (scheduling_lines, start_lines, list_watch_lines)
        for line in reference_page.declared_lines(module)
    }
    records: list[logging.LogRecord] = []
    world = world_at(10, written, breaking("post_bind"))
    keeper = _Keeper(records)
    logging.getLogger("kubesched").addHandler(keeper)
    try:
        a_day_of_pods(world)
    finally:
        logging.getLogger("kubesched").removeHandler(keeper)
    assert len(records) > 100
    for record in records:
        assert set(getattr(record, "fields", {})) <= declared[record.getMessage()], record.getMessage()
