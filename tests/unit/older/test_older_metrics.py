"""Metrics of then: which a version had, in which form, and what they say."""

from __future__ import annotations

from pathlib import Path

import pytest
from older_world import OlderWorld

from kubesched.older.config import EMULATED_VERSIONS, generation_of
from kubesched.older.engine.metrics import reference_page
from kubesched.older.engine.metrics.definitions import METRICS, metrics_of
from kubesched.older.engine.metrics.measured import WINDOW_S, Quantiles
from kubesched.scheduler.engine.metrics.exposition import render
from kubesched.scheduler.engine.metrics.loop_metrics import collect
from kubesched.scheduler.engine.metrics.series import MetricFamily
from kubesched.testing import make

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "older-metrics.md"
TICK_S = 0.01
every_version = pytest.mark.parametrize("version", EMULATED_VERSIONS)

ONLY_MICROSECONDS = {
    "e2e_scheduling_latency_microseconds": "histogram",
    "scheduling_algorithm_latency_microseconds": "histogram",
    "scheduling_algorithm_predicate_evaluation": "histogram",
    "scheduling_algorithm_priority_evaluation": "histogram",
    "scheduling_algorithm_preemption_evaluation": "histogram",
    "binding_latency_microseconds": "histogram",
    "scheduling_latency_seconds": "summary operation",
}
SECONDS = {
    "e2e_scheduling_duration_seconds": "histogram",
    "scheduling_algorithm_duration_seconds": "histogram",
    "scheduling_algorithm_predicate_evaluation_seconds": "histogram",
    "scheduling_algorithm_priority_evaluation_seconds": "histogram",
    "scheduling_algorithm_preemption_evaluation_seconds": "histogram",
    "binding_duration_seconds": "histogram",
    "scheduling_duration_seconds": "summary operation",
}
COUNTED = {
    "schedule_attempts_total": "counter result",
    "total_preemption_attempts": "counter",
    "pod_preemption_victims": "gauge",
}
FRAMEWORK = {
    "pod_preemption_victims": "histogram",
    "pending_pods": "gauge queue",
    "queue_incoming_pods_total": "counter queue event",
    "pod_scheduling_duration_seconds": "histogram",
    "pod_scheduling_attempts": "histogram",
    "framework_extension_point_duration_seconds": "histogram extension_point status",
    "plugin_execution_duration_seconds": "histogram plugin extension_point status",
    "permit_wait_duration_seconds": "histogram result",
    "scheduler_goroutines": "gauge work",
    "scheduler_cache_size": "gauge type",
}
IN_1_19 = {
    **SECONDS,
    **FRAMEWORK,
    "schedule_attempts_total": "counter result profile",
    "e2e_scheduling_duration_seconds": "histogram result profile",
    "preemption_attempts_total": "counter",
    "preemption_victims": "histogram",
    "pod_scheduling_duration_seconds": "histogram attempts",
    "framework_extension_point_duration_seconds": "histogram extension_point status profile",
}
del IN_1_19["pod_preemption_victims"]
HAD = {
    "1.13": {**COUNTED, **ONLY_MICROSECONDS},
    "1.14": {**COUNTED, **ONLY_MICROSECONDS, **SECONDS},
    "1.17": {**COUNTED, **SECONDS, **FRAMEWORK},
    "1.18": {**COUNTED, **SECONDS, **FRAMEWORK},
    "1.19": IN_1_19,
}


class TickingClock:
    """A hundredth of a second passes at every look."""

    def __init__(self) -> None:
        self.at_s = 1000.0

    def __call__(self) -> float:
        self.at_s += TICK_S
        return self.at_s


def _world(version: str, *items: dict[str, object]) -> OlderWorld:
    return OlderWorld(version, *items, clock=TickingClock())


def _metric(world: OlderWorld, name: str) -> MetricFamily:
    [found] = [family for family in collect(world.loop) if family.definition.name == name]
    return found


def _counts(world: OlderWorld, name: str) -> dict[tuple[str, ...], int]:
    """How many values a histogram or a summary has, by labels."""
    family = _metric(world, name)
    summaries = {labels: summary.count for labels, summary in (family.summaries or {}).items()}
    return {labels: distribution.count for labels, distribution in (family.distributions or {}).items()} | summaries


def _after_one_of_each(version: str) -> OlderWorld:
    """One pod that had two nodes to choose from, one that had one, one that fits nowhere."""
    world = _world(version, make.node("a", cpu="2"), make.node("b", cpu="4"), make.pod("free", cpu="1"))
    world.run()
    world.put(make.pod("wide", cpu="3"), make.pod("big", cpu="9"))
    world.run()
    assert sorted(world.bound) == ["default/free", "default/wide"]
    return world


@every_version
def test_a_version_has_its_own_metrics_and_no_others(version: str) -> None:
    generation = generation_of(version)
    assert generation is not None
    found = {metric.name: " ".join((metric.kind.value, *metric.labels)) for metric in metrics_of(generation)}
    assert found == HAD[version]
    shown = [family.definition for family in collect(OlderWorld(version).loop)]
    assert {d.name: " ".join((d.kind.value, *d.labels)) for d in shown if d.name != "strays_total"} == HAD[version]


def test_each_version_has_one_form_of_a_metric() -> None:
    forms = [(metric.name, version) for metric in METRICS for version in metric.versions]
    assert len(forms) == len(set(forms))


@every_version
def test_attempts_are_counted_by_result(version: str) -> None:
    values = _metric(_after_one_of_each(version), "schedule_attempts_total").values
    if version == "1.19":
        assert values == {("scheduled", "default-scheduler"): 2, ("unschedulable", "default-scheduler"): 1}
    else:
        assert values == {("scheduled",): 2, ("unschedulable",): 1, ("error",): 0}


@every_version
def test_a_cluster_without_nodes_is_an_error_at_first(version: str) -> None:
    world = _world(version, make.pod("p"))
    world.run()
    values = _metric(world, "schedule_attempts_total").values or {}
    told = {labels[0]: number for labels, number in values.items() if number}
    assert told == {"error" if version in ("1.13", "1.14") else "unschedulable": 1}


@every_version
def test_parts_of_a_search_are_timed_where_it_found_a_node(version: str) -> None:
    world = _after_one_of_each(version)
    names = {
        "1.13": ("", "scheduling_algorithm_latency_microseconds", "scheduling_latency_seconds"),
        "1.14": ("_seconds", "scheduling_algorithm_duration_seconds", "scheduling_latency_seconds"),
    }
    unit, algorithm, operations = names.get(
        version, ("_seconds", "scheduling_algorithm_duration_seconds", "scheduling_duration_seconds")
    )
    assert _counts(world, algorithm) == {(): 2}
    assert _counts(world, f"scheduling_algorithm_predicate_evaluation{unit}") == {(): 2}
    assert _counts(world, f"scheduling_algorithm_priority_evaluation{unit}") == {(): 2}
    assert _counts(world, f"scheduling_algorithm_preemption_evaluation{unit}") == {(): 1}
    assert _counts(world, operations) == {
        ("predicate_evaluation",): 2,
        ("priority_evaluation",): 1,
        ("preemption_evaluation",): 1,
        ("binding",): 2,
    }


def test_microseconds_are_whole_and_tell_the_same_as_seconds() -> None:
    world = _after_one_of_each("1.14")
    seconds = (_metric(world, "binding_duration_seconds").distributions or {})[()]
    micros = (_metric(world, "binding_latency_microseconds").distributions or {})[()]
    assert seconds.cumulative == micros.cumulative
    assert micros.total == pytest.approx(seconds.total * 1e6, abs=2)
    assert micros.total == int(micros.total)


@every_version
def test_attempts_are_timed_if_they_came_to_a_binding_and_in_1_19_always(version: str) -> None:
    name = "e2e_scheduling_latency_microseconds" if version == "1.13" else "e2e_scheduling_duration_seconds"
    world = _after_one_of_each(version)
    world.binding_fails = "no"
    world.put(make.pod("refused"))
    world.run()
    if version == "1.19":
        profile = "default-scheduler"
        assert _counts(world, name) == {("scheduled", profile): 2, ("unschedulable", profile): 1, ("error", profile): 1}
    else:
        assert _counts(world, name) == {(): 3}


@every_version
def test_preemption(version: str) -> None:
    world = _world(
        version,
        make.node("a", cpu="2"),
        make.pod("low", on="a", cpu="2", priority=1),
        make.pod("high", cpu="2", priority=10),
    )
    world.run()
    attempts = "preemption_attempts_total" if version == "1.19" else "total_preemption_attempts"
    assert _metric(world, attempts).values == {(): 1}
    victims = _metric(world, "preemption_victims" if version == "1.19" else "pod_preemption_victims")
    if version in ("1.13", "1.14"):
        assert victims.values == {(): 1}
    else:
        assert victims.distributions is not None
        assert (victims.distributions[()].cumulative[0], victims.distributions[()].total) == (1, 1.0)
        assert victims.definition.buckets == (5, 10, 15, 20, 25, 30, 35, 40, 45, 50)


def test_the_gauge_of_victims_goes_back_to_none_in_1_13_alone() -> None:
    def n_victims_after_one_in_vain(version: str) -> float:
        world = _world(
            version,
            make.node("a", cpu="2"),
            make.pod("low", on="a", cpu="2", priority=1),
            make.pod("high", cpu="2", priority=10),
        )
        world.run()
        world.put(make.pod("huge", cpu="50", priority=20))
        world.run(for_s=5.0)
        return (_metric(world, "pod_preemption_victims").values or {})[()]

    assert (n_victims_after_one_in_vain("1.13"), n_victims_after_one_in_vain("1.14")) == (0, 1)


@pytest.mark.parametrize("version", ["1.17", "1.18", "1.19"])
def test_pods_are_timed_over_all_attempts(version: str) -> None:
    world = _world(version, make.node("a", cpu="1"), make.pod("big", cpu="2"))
    world.run()
    world.put(make.node("b", cpu="4"))
    world.run(for_s=10.0)
    assert _counts(world, "pod_scheduling_duration_seconds") == {("2",) if version == "1.19" else (): 1}
    assert _counts(world, "pod_scheduling_attempts") == {(): 1}
    found = _metric(world, "pod_scheduling_duration_seconds").definition.buckets
    assert (found[0], len(found)) == ((0.01, 20) if version == "1.19" else (0.001, 15))


@pytest.mark.parametrize("version", ["1.17", "1.18", "1.19"])
def test_what_can_be_read_off_has_the_labels_of_then(version: str) -> None:
    world = _after_one_of_each(version)
    assert _metric(world, "scheduler_goroutines").values == {("binding",): 0}
    assert _metric(world, "scheduler_cache_size").values == {("nodes",): 2, ("pods",): 2, ("assumed_pods",): 0}
    assert _metric(world, "pending_pods").values == {("active",): 0, ("backoff",): 0, ("unschedulable",): 1}
    incoming = {("active", "PodAdd"): 3, ("unschedulable", "ScheduleAttemptFailure"): 1}
    assert _metric(world, "queue_incoming_pods_total").values == incoming


@pytest.mark.parametrize(("version", "name"), [("1.17", "PostFilter"), ("1.18", "PreScore"), ("1.19", "PreScore")])
def test_stages_have_the_names_of_then(version: str, name: str) -> None:
    world = _after_one_of_each(version)
    counts = _counts(world, "framework_extension_point_duration_seconds")
    extension_points = {labels[0] for labels in counts}
    assert {"PreFilter", "Filter", "Score", "Bind", name} <= extension_points
    assert not extension_points & {"PreEnqueue", "PreBindPreFlight"}
    assert ("PostFilter" in extension_points) is (version != "1.18")
    assert {len(labels) for labels in counts} == {3 if version == "1.19" else 2}


@pytest.mark.parametrize("version", ["1.17", "1.19"])
def test_names_of_events_are_those_of_then(version: str) -> None:
    world = _world(version, make.node("a", cpu="1"), make.pod("big", cpu="2"))
    world.run()
    world.put(make.node("a", cpu="1", labels={"zone": "x"}))
    world.run(for_s=5.0)
    world.put(make.pod("big", cpu="2", labels={"app": "other"}))
    world.run(for_s=5.0)
    values = _metric(world, "queue_incoming_pods_total").values or {}
    events = {labels[1] for labels in values}
    assert events == {"PodAdd", "ScheduleAttemptFailure", "NodeLabelChange", "BackoffComplete", "Unknown"}


def test_as_text() -> None:
    lines = render(collect(_after_one_of_each("1.14").loop)).splitlines()
    name = "scheduler_scheduling_latency_seconds"
    assert f"# HELP {name} (Deprecated) How long the parts of an attempt took, in seconds." in lines
    assert f"# TYPE {name} summary" in lines
    quantiles = [line for line in lines if line.startswith(f'{name}{{operation="binding",quantile=')]
    assert [line.partition("quantile=")[2].partition("}")[0] for line in quantiles] == ['"0.5"', '"0.9"', '"0.99"']
    assert f'{name}_count{{operation="binding"}} 2' in lines
    later = render(collect(_after_one_of_each("1.19").loop)).splitlines()
    assert "# TYPE scheduler_scheduler_goroutines gauge" in later
    assert 'scheduler_scheduling_duration_seconds_count{operation="binding"} 2' in later
    assert not [line for line in later if "quantile" in line]
    help_text = "(Deprecated since 1.19.0) How long the parts of an attempt took, in seconds."
    assert f"# HELP scheduler_scheduling_duration_seconds [ALPHA] {help_text}" in later


def test_quantiles_are_those_of_the_last_hours() -> None:
    quantiles = Quantiles(0.0)
    for value in range(1, 101):
        quantiles.add(value / 1000, 10.0)
    found = dict(quantiles.at((0.5, 0.9, 0.99), 20.0))
    assert found == pytest.approx({0.5: 0.05, 0.9: 0.09, 0.99: 0.099}, rel=0.02)
    quantiles.add(7.0, WINDOW_S)
    assert dict(quantiles.at((0.5,), WINDOW_S))[0.5] == pytest.approx(7.0, rel=0.02)
    nothing = dict(quantiles.at((0.5,), 3 * WINDOW_S))[0.5]
    assert nothing != nothing


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == reference_page.page(), "run `make docs`"
