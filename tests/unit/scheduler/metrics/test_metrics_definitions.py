"""The metrics are kube-scheduler's, and their page says what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubesched.scheduler.engine.metrics import exposition
from kubesched.scheduler.engine.metrics.definitions import DEFINITIONS, OURS, MetricDefinition

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "metrics.md"

# name: kind, labels, stability, first bucket, factor, number of buckets
KUBE_SCHEDULER: dict[str, tuple[str, str, str, float, float, int]] = {
    "schedule_attempts_total": ("counter", "result profile", "STABLE", 0, 0, 0),
    "scheduling_attempt_duration_seconds": ("histogram", "result profile", "STABLE", 0.001, 2, 15),
    "scheduling_algorithm_duration_seconds": ("histogram", "", "ALPHA", 0.001, 2, 15),
    "event_handling_duration_seconds": ("histogram", "event", "ALPHA", 0.0001, 2, 12),
    "preemption_victims": ("histogram", "", "STABLE", 1, 2, 7),
    "preemption_attempts_total": ("counter", "", "STABLE", 0, 0, 0),
    "podgroup_schedule_attempts_total": ("counter", "result profile", "ALPHA", 0, 0, 0),
    "podgroup_scheduling_attempt_duration_seconds": ("histogram", "result profile", "ALPHA", 0.001, 2, 15),
    "podgroup_scheduling_algorithm_duration_seconds": ("histogram", "", "ALPHA", 0.001, 2, 15),
    "pending_pods": ("gauge", "queue", "STABLE", 0, 0, 0),
    "inflight_events": ("gauge", "event", "ALPHA", 0, 0, 0),
    "goroutines": ("gauge", "operation", "BETA", 0, 0, 0),
    "pod_scheduling_sli_duration_seconds": ("histogram", "attempts", "BETA", 0.01, 2, 20),
    "pod_scheduling_attempts": ("histogram", "", "STABLE", 1, 2, 5),
    "pod_scheduled_after_flush_total": ("counter", "", "ALPHA", 0, 0, 0),
    "framework_extension_point_duration_seconds": (
        "histogram", "extension_point status profile", "STABLE", 0.0001, 2, 12,
    ),
    "plugin_execution_duration_seconds": ("histogram", "plugin extension_point status", "ALPHA", 0.00001, 1.5, 20),
    "queueing_hint_execution_duration_seconds": ("histogram", "plugin event hint", "ALPHA", 0.00001, 1.5, 20),
    "queue_incoming_pods_total": ("counter", "queue event", "STABLE", 0, 0, 0),
    "permit_wait_duration_seconds": ("histogram", "result", "BETA", 0.001, 2, 15),
    "cache_size": ("gauge", "type", "ALPHA", 0, 0, 0),
    "unschedulable_pods": ("gauge", "plugin profile", "BETA", 0, 0, 0),
    "plugin_evaluation_total": ("counter", "plugin extension_point profile", "BETA", 0, 0, 0),
    "preemption_goroutines_duration_seconds": ("histogram", "result", "ALPHA", 0.01, 2, 20),
    "preemption_goroutines_execution_total": ("counter", "result", "ALPHA", 0, 0, 0),
}  # fmt: skip


def test_every_metric_is_in_the_list() -> None:
    assert sorted(definition.name for definition in DEFINITIONS) == sorted([*KUBE_SCHEDULER, *OURS])


@pytest.mark.parametrize(
    "definition", [definition for definition in DEFINITIONS if definition.name not in OURS], ids=lambda one: one.name
)
def test_a_metric_is_as_kube_scheduler_has_it(definition: MetricDefinition) -> None:
    kind, labels, stability, first, factor, n = KUBE_SCHEDULER[definition.name]
    assert (definition.kind.value, " ".join(definition.labels), definition.stability) == (kind, labels, stability)
    assert definition.buckets == pytest.approx([first * factor**power for power in range(n)])


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == exposition.page(), "run `make docs`"
