"""What is measured when the loop has a clock."""

from __future__ import annotations

import pytest
from measured_world import TICK_S, MeasuredWorld, TickingClock

from kubesched.framework import CycleState, Handle, PodInfo, RegisteredEvent, Status
from kubesched.framework.extension_points import PermitResult
from kubesched.scheduler.engine.metrics.timing import SAMPLE_EVERY
from kubesched.scheduler.engine.observations import SlowDecision
from kubesched.scheduler.plugins.registry import REGISTRY
from kubesched.testing import make
from kubesched.testing.world import listen_for

DEFAULT = "default-scheduler"
STAGES = "framework_extension_point_duration_seconds"
PLUGINS = "plugin_execution_duration_seconds"


def _world(*pods: object, n_nodes: int = 2, **options: object) -> MeasuredWorld:
    nodes = [make.node(f"n{i}", cpu=100) for i in range(n_nodes)]
    world = MeasuredWorld(*nodes, *pods, clock=TickingClock(), **options)  # type: ignore[arg-type]
    world.run()
    return world


def test_attempts_and_decisions_are_measured() -> None:
    world = _world(make.pod("fits"), make.pod("huge", cpu=200))
    assert world.counts("scheduling_attempt_duration_seconds") == {
        ("scheduled", DEFAULT): 1,
        ("unschedulable", DEFAULT): 1,
    }
    assert world.counts("scheduling_algorithm_duration_seconds") == {(): 2}
    attempts = world.distributions("scheduling_attempt_duration_seconds")["scheduled", DEFAULT]
    assert attempts.total >= 2 * TICK_S


def test_stages_that_were_run_are_measured_with_their_status() -> None:
    counts = _world(make.pod("fits"), make.pod("huge", cpu=200)).counts(STAGES)
    assert {labels[:2]: n for labels, n in counts.items()} == {
        ("PreEnqueue", "Success"): 2,
        ("PreFilter", "Success"): 2,
        ("Filter", "Success"): 2,
        ("PostFilter", "Unschedulable"): 1,
        ("PreScore", "Success"): 1,
        ("Score", "Success"): 1,
        ("Reserve", "Success"): 1,
        ("PreBindPreFlight", "Success"): 1,
        ("Bind", "Success"): 1,
    }


def test_plugins_are_measured_one_by_one_in_every_tenth_cycle() -> None:
    world = _world(*(make.pod(f"p{i}") for i in range(SAMPLE_EVERY - 1)))
    assert world.counts(PLUGINS) == {}
    world.put(make.pod("tenth", host_ports=[80]))
    world.run()
    counts = world.counts(PLUGINS)
    assert counts["NodePorts", "PreFilter", "Success"] == 1
    assert counts["NodePorts", "Filter", "Success"] == 1
    assert counts["NodeResourcesFit", "Score", "Success"] == 1
    assert counts["TaintToleration", "ScoreExtensionNormalize", "Success"] == 1
    assert counts["InterPodAffinity", "PreFilter", "Skip"] == 1
    assert counts["DefaultBinder", "Bind", "Success"] == 1
    assert counts["VolumeBinding", "Reserve", "Success"] == 1
    assert counts["VolumeBinding", "PreBindPreFlight", "Skip"] == 1
    assert set(counts.values()) == {1}


def test_measuring_plugins_leaves_the_profile_as_it_was() -> None:
    world = MeasuredWorld(make.node("a"), clock=TickingClock())
    profile = world.loop.schedulers[DEFAULT].profile
    world.put(*(make.pod(f"p{i}") for i in range(SAMPLE_EVERY)))
    world.run()
    assert world.loop.schedulers[DEFAULT].profile is profile
    assert len(world.bound) == SAMPLE_EVERY


def test_handling_events_is_measured_by_event() -> None:
    world = _world(make.pod("p"))
    assert world.counts("event_handling_duration_seconds") == {
        ("NodeAdd",): 2,
        ("UnschedulablePodAdd",): 1,
        ("AssignedPodAdd",): 1,
    }
    world.delete(world.pods["default/p"])  # type: ignore[index]
    world.put(make.node("n0", cpu=50), make.node("n1", cpu=100))
    counts = world.counts("event_handling_duration_seconds")
    assert counts[("AssignedPodDelete",)] == 1
    assert counts[("NodeUpdateNodeAllocatable",)] == 1
    assert counts[("NodeAdd",)] == 2  # the other node is as it was: that is no event


def test_hints_are_measured_by_plugin_event_and_what_they_say() -> None:
    world = _world(make.pod("huge", cpu=200))
    world.put(make.node("small", cpu=1), make.node("big", cpu=300))
    counts = world.counts("queueing_hint_execution_duration_seconds")
    assert counts == {
        ("NodeResourcesFit", "NodeAdd", "QueueSkip"): 1,
        ("NodeResourcesFit", "NodeAdd", "Queue"): 1,
    }


class _Doorkeeper:
    """Lets pods wait, or breaks."""

    name = "Doorkeeper"

    def __init__(self, args: object, handle: Handle) -> None:
        pass

    def permit(self, cycle: CycleState, pod: PodInfo, node_name: str) -> PermitResult:
        if pod.name == "broken":
            raise ValueError("no key")
        return PermitResult(Status.wait("wait"), timeout_s=10.0)

    def events_to_register(self) -> tuple[RegisteredEvent, ...]:
        return ()


def _with_doorkeeper(*names: str) -> MeasuredWorld:
    return _world(
        *(make.pod(name) for name in names),
        registry=REGISTRY.merged_with({"Doorkeeper": _Doorkeeper}),
        profiles=[{"plugins": {"permit": {"enabled": [{"name": "Doorkeeper"}]}}}],
    )


def test_waiting_for_a_permit_is_measured_by_what_came_of_it() -> None:
    world = _with_doorkeeper("p", "q")
    world.now_s = 4.0
    world.loop.waiting_pods()[0].allow("Doorkeeper")
    world.loop.tick(4.0)
    world.settle()
    world.now_s = 10.0
    world.loop.tick(10.0)
    waits = world.distributions("permit_wait_duration_seconds")
    assert {labels: found.total for labels, found in waits.items()} == {("Success",): 4.0, ("Unschedulable",): 10.0}
    assert world.counts(STAGES)["Permit", "Wait", DEFAULT] == 2


def test_a_stage_that_broke_is_measured_as_an_error() -> None:
    world = _with_doorkeeper("broken")
    assert world.counts(STAGES)["Permit", "Error", DEFAULT] == 1
    assert world.counts("scheduling_attempt_duration_seconds") == {("error", DEFAULT): 1}


@pytest.mark.parametrize(
    ("tick_s", "n"), [pytest.param(0.001, 0, id="a quick decision"), pytest.param(0.05, 1, id="a slow one")]
)
def test_a_decision_that_takes_long_leaves_a_trace(tick_s: float, n: int) -> None:
    clock = TickingClock(tick_s)
    world = MeasuredWorld(make.node("a"), make.node("b"), make.pod("p"), clock=clock)
    slow = listen_for(world.loop, SlowDecision)
    world.run()
    assert len(slow) == n
    for seen in slow:
        trace = seen.trace
        assert (trace.name, trace.namespace, trace.pod_name) == ("Scheduling", "default", "p")
        assert [step.name for step in trace.steps] == ["Computing predicates done", "Prioritizing done"]
        assert 0 < trace.steps[0].after_s < trace.steps[1].after_s < trace.total_s
        assert str(trace).startswith('"Scheduling" namespace:default,name:p (total time: ')
        assert '---"Computing predicates done"' in str(trace)


def test_looking_for_victims_is_no_part_of_a_trace() -> None:
    clock = TickingClock(0.03)
    world = MeasuredWorld(make.node("a", cpu=1), make.pod("p", cpu=2), clock=clock)
    slow = listen_for(world.loop, SlowDecision)
    world.run()
    (trace,) = (seen.trace for seen in slow)
    (step,) = trace.steps
    assert step.name == "Computing predicates done"
    assert trace.total_s == pytest.approx(step.after_s + 0.03)
