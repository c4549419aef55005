"""What the loop counts, with and without a clock."""

from __future__ import annotations

import pytest
from measured_world import MeasuredWorld, TickingClock

from kubesched.framework.effects import BindPod, EvictPod, Failed
from kubesched.k8s.model import manifests
from kubesched.scheduler.engine.metrics.definitions import DEFINITIONS, OF_POD_GROUPS
from kubesched.scheduler.engine.metrics.exposition import render
from kubesched.scheduler.engine.metrics.loop_metrics import collect
from kubesched.testing import make

DEFAULT = "default-scheduler"
POD_TIME = "pod_scheduling_sli_duration_seconds"
"""Measured by the time that is handed in."""

_WITHOUT_GROUPS = [one for one in DEFINITIONS if one not in OF_POD_GROUPS]


def _busy(clock: TickingClock | None = None) -> MeasuredWorld:
    """One pod is scheduled, one unschedulable, one gated."""
    world = MeasuredWorld(
        make.node("a", cpu=2),
        make.node("b", cpu=2),
        make.pod("fits", cpu=1),
        make.pod("huge", cpu=9),
        make.pod("gated", spec={"schedulingGates": [{"name": "example.com/wait"}]}),
        clock=clock,
    )
    world.run()
    return world


def test_attempts_are_counted_by_their_result() -> None:
    world = _busy()
    assert world.values("schedule_attempts_total") == {("scheduled", DEFAULT): 1, ("unschedulable", DEFAULT): 1}


class _Refusing(MeasuredWorld):
    refusals = 1

    def carry_out(self, action: object) -> object:
        if isinstance(action, BindPod | EvictPod) and self.refusals:
            self.refusals -= 1
            return Failed("the server is currently unable to handle the request")
        return super().carry_out(action)


def test_an_attempt_that_broke_is_an_error_and_the_next_may_succeed() -> None:
    world = _Refusing(make.node("a"), make.pod("p"))
    world.run(for_s=5)
    assert world.values("schedule_attempts_total") == {("error", DEFAULT): 1, ("scheduled", DEFAULT): 1}
    needed = world.distributions("pod_scheduling_attempts")[()]
    assert (needed.cumulative[:2], needed.total) == ((0, 1), 2.0)
    (labels, taken) = next(iter(world.distributions("pod_scheduling_sli_duration_seconds").items()))
    assert labels == ("2",)
    assert 1 <= taken.total <= 3


def test_pods_are_counted_where_they_are() -> None:
    world = _busy()
    assert world.values("pending_pods") == {
        ("active",): 0, ("backoff",): 0, ("unschedulable",): 1, ("gated",): 1,
    }  # fmt: skip
    assert world.values("unschedulable_pods") == {("NodeResourcesFit", DEFAULT): 1, ("SchedulingGates", DEFAULT): 1}
    assert world.values("cache_size") == {("nodes",): 2, ("pods",): 1, ("assumed_pods",): 0}
    assert world.values("goroutines") == {("binding",): 0}
    assert world.values("inflight_events") == {("PodPopped",): 0}
    assert world.values("queue_incoming_pods_total")[("active", "UnschedulablePodAdd")] == 2


def test_a_pod_being_bound_is_work_under_way() -> None:
    world = MeasuredWorld(make.node("a"), make.pod("p"))
    world.loop.schedule_one(0.0)
    assert world.values("goroutines") == {("binding",): 1}
    assert world.values("cache_size")[("assumed_pods",)] == 1


def test_plugins_are_counted_once_for_each_attempt_in_which_they_had_a_say() -> None:
    counts = _busy().values("plugin_evaluation_total")
    both, scheduled_only = 2, 1
    assert counts["NodeResourcesFit", "Filter", DEFAULT] == both
    assert counts["NodeResourcesFit", "PreFilter", DEFAULT] == both
    assert counts["NodeResourcesFit", "Score", DEFAULT] == scheduled_only
    assert counts["ImageLocality", "Score", DEFAULT] == scheduled_only
    assert counts["NodeUnschedulable", "Filter", DEFAULT] == both
    assert ("NodePorts", "Filter", DEFAULT) not in counts  # it had nothing to say about any pod


def test_plugins_behind_the_one_that_rejected_the_last_node_had_no_say() -> None:
    world = MeasuredWorld(make.node("a", unschedulable=True), make.pod("p", host_ports=[80]))
    world.run()
    counts = world.values("plugin_evaluation_total")
    assert counts["NodeUnschedulable", "Filter", DEFAULT] == 1
    assert ("NodePorts", "Filter", DEFAULT) not in counts
    assert counts["NodePorts", "PreFilter", DEFAULT] == 1
    assert not any(extension_point == "Score" for _, extension_point, _ in counts)


@pytest.mark.parametrize("keeps_classes", [True, False], ids=["classes kept", "no classes kept"])
def test_keeping_classes_changes_no_count(keeps_classes: bool) -> None:
    pods = [make.pod(f"p{i}", cpu=1) for i in range(6)]
    world = MeasuredWorld(make.node("a", cpu=2), make.node("b", cpu=2), *pods, keeps_classes=keeps_classes)
    world.run()
    assert world.values("schedule_attempts_total") == {("scheduled", DEFAULT): 4, ("unschedulable", DEFAULT): 2}
    counts = world.values("plugin_evaluation_total")
    assert counts["NodeResourcesFit", "Filter", DEFAULT] == 6
    assert counts["NodeResourcesFit", "Score", DEFAULT] == 3  # the last pod that fits has one node to go to


def _preemption(world: MeasuredWorld) -> MeasuredWorld:
    victims = [make.pod(f"v{i}", on="a", cpu=1) for i in range(2)]
    world.put(make.node("a", cpu=2), *victims, make.pod("p", cpu=2, priority=10))
    world.run(for_s=30)
    return world


def test_preemptions_are_counted_with_their_victims() -> None:
    world = _preemption(MeasuredWorld())
    assert world.values("preemption_attempts_total") == {(): 1}
    victims = world.distributions("preemption_victims")[()]
    assert (victims.count, victims.total) == (1, 2.0)
    assert world.values("preemption_goroutines_execution_total") == {("success",): 1}


def test_a_preemption_that_fails_is_an_error() -> None:
    world = _preemption(_Refusing())
    assert world.values("preemption_goroutines_execution_total") == {("error",): 1, ("success",): 1}


def test_a_pod_that_was_scheduled_only_because_it_waited_long_is_counted() -> None:
    world = MeasuredWorld(make.node("a", cpu=1), make.pod("p", cpu=2))
    world.run()
    for item in manifests.from_dicts([make.node("a", cpu=4)]).objects:
        world.loop.cluster.put(item)  # the queue is not told: as if a hint had missed it
    world.run(for_s=400)
    assert world.bound == {"default/p": "a"}
    assert world.values("pod_scheduled_after_flush_total") == {(): 1}


def test_without_a_clock_nothing_is_measured() -> None:
    world = _busy()
    measured = [d.name for d in _WITHOUT_GROUPS if d.name.endswith("_seconds") and d.name != POD_TIME]
    assert {name: sum(world.counts(name).values()) for name in measured} == dict.fromkeys(measured, 0)


def test_a_clock_changes_no_decision() -> None:
    plain, measured = _busy(), _busy(TickingClock())
    assert plain.bound == measured.bound
    assert plain.events == measured.events


def test_all_metrics_are_written_as_text() -> None:
    world = _busy(TickingClock())
    text = render(collect(world.loop))
    assert 'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1' in text
    assert text == render(collect(world.loop))
    assert [family.definition for family in collect(world.loop)] == _WITHOUT_GROUPS
