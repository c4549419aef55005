"""Every metric: name, kind, labels and buckets are kube-scheduler's, the words are ours. So is `strays_total`.

The reference page (`docs/reference/metrics.md`) is made from this. Next: `loop_metrics`, which fills them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

PREFIX = "scheduler_"


class MetricKind(Enum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"


@dataclass(frozen=True, slots=True)
class MetricDefinition:
    """`name` comes without the prefix that all have in common. `buckets` are upper bounds; the last, infinity, is left
    out."""

    name: str
    kind: MetricKind
    labels: tuple[str, ...]
    stability: str
    """Empty where none is given."""
    help: str
    buckets: tuple[float, ...] = ()

    @property
    def full_name(self) -> str:
        return PREFIX + self.name


def growing(start: float, factor: float, count: int) -> tuple[float, ...]:
    buckets = [start]
    while len(buckets) < count:
        buckets.append(buckets[-1] * factor)
    return tuple(buckets)


def _counter(name: str, labels: str, stability: str, help_text: str) -> MetricDefinition:
    return MetricDefinition(name, MetricKind.COUNTER, tuple(labels.split()), stability, help_text)


def _gauge(name: str, labels: str, stability: str, help_text: str) -> MetricDefinition:
    return MetricDefinition(name, MetricKind.GAUGE, tuple(labels.split()), stability, help_text)


def _histogram(name: str, labels: str, stability: str, help_text: str, buckets: tuple[float, ...]) -> MetricDefinition:
    return MetricDefinition(name, MetricKind.HISTOGRAM, tuple(labels.split()), stability, help_text, buckets)


SCHEDULE_ATTEMPTS = _counter(
    "schedule_attempts_total",
    "result profile",
    "STABLE",
    "Attempts to schedule a pod: scheduled, unschedulable (no node fits), or error (something failed).",
)
SCHEDULING_ATTEMPT_DURATION = _histogram(
    "scheduling_attempt_duration_seconds",
    "result profile",
    "STABLE",
    "How long an attempt took, from the queue to the end of binding.",
    growing(0.001, 2, 15),
)
SCHEDULING_ALGORITHM_DURATION = _histogram(
    "scheduling_algorithm_duration_seconds",
    "",
    "ALPHA",
    "How long it took to decide, calls to extenders included.",
    growing(0.001, 2, 15),
)
FRAMEWORK_EXTENSION_POINT_DURATION = _histogram(
    "framework_extension_point_duration_seconds",
    "extension_point status profile",
    "STABLE",
    "How long all plugins of an extension point took together. Extension points that were answered for a whole class "
    "of pods are not run.",
    growing(0.0001, 2, 12),
)
PLUGIN_EXECUTION_DURATION = _histogram(
    "plugin_execution_duration_seconds",
    "plugin extension_point status",
    "ALPHA",
    "How long one plugin took in one extension point, for all nodes together; measured in every tenth cycle.",
    growing(0.00001, 1.5, 20),
)
PLUGIN_EVALUATION = _counter(
    "plugin_evaluation_total",
    "plugin extension_point profile",
    "BETA",
    "Attempts in which a plugin ran (PreFilter, Filter, PreScore, Score).",
)
EVENT_HANDLING_DURATION = _histogram(
    "event_handling_duration_seconds",
    "event",
    "ALPHA",
    "How long it took to handle an event of an informer.",
    growing(0.0001, 2, 12),
)
PREEMPTION_ATTEMPTS = _counter("preemption_attempts_total", "", "STABLE", "How often preemption was tried.")
PREEMPTION_VICTIMS = _histogram("preemption_victims", "", "STABLE", "Pods that a preemption evicts.", growing(1, 2, 7))
PREEMPTION_GOROUTINES_DURATION = _histogram(
    "preemption_goroutines_duration_seconds",
    "result",
    "ALPHA",
    "How long it took until all victims were evicted.",
    growing(0.01, 2, 20),
)
PREEMPTION_GOROUTINES_EXECUTION = _counter(
    "preemption_goroutines_execution_total", "result", "ALPHA", "Preemptions carried out: success or error."
)
PENDING_PODS = _gauge(
    "pending_pods",
    "queue",
    "STABLE",
    "Pending pods: active (to be tried next), backoff (after a failure), unschedulable (until an event may help), "
    "gated (held back, never tried).",
)
QUEUE_INCOMING_PODS = _counter(
    "queue_incoming_pods_total", "queue event", "STABLE", "Pods added to a queue, by the event that moved them."
)
INFLIGHT_EVENTS = _gauge(
    "inflight_events", "event", "ALPHA", "Events kept for pods in flight, to be considered if they fail."
)
UNSCHEDULABLE_PODS = _gauge(
    "unschedulable_pods",
    "plugin profile",
    "BETA",
    "Unschedulable pods by the plugin that rejected them; a pod counts once for each such plugin.",
)
POD_SCHEDULING_ATTEMPTS = _histogram(
    "pod_scheduling_attempts", "", "STABLE", "Attempts that a pod needed until it was scheduled.", growing(1, 2, 5)
)
POD_SCHEDULING_SLI_DURATION = _histogram(
    "pod_scheduling_sli_duration_seconds",
    "attempts",
    "BETA",
    "How long a pod took from the queue to its node, all attempts included; the time it was gated does not count.",
    growing(0.01, 2, 20),
)
POD_SCHEDULED_AFTER_FLUSH = _counter(
    "pod_scheduled_after_flush_total",
    "",
    "ALPHA",
    "Pods scheduled in an attempt caused by a flush, not by an event: a queueing hint may be wrong.",
)
QUEUEING_HINT_DURATION = _histogram(
    "queueing_hint_execution_duration_seconds",
    "plugin event hint",
    "ALPHA",
    "How long a plugin took to decide whether an event is worth another attempt.",
    growing(0.00001, 1.5, 20),
)
PERMIT_WAIT_DURATION = _histogram(
    "permit_wait_duration_seconds",
    "result",
    "BETA",
    "How long pods waited for a permit.",
    growing(0.001, 2, 15),
)
CACHE_SIZE = _gauge("cache_size", "type", "ALPHA", "Nodes, pods and assumed_pods in the scheduler cache.")
GOROUTINES = _gauge(
    "goroutines",
    "operation",
    "BETA",
    "Work in progress outside the loop: binding (pods being bound), prioritizing_extender (calls not answered yet).",
)
PODGROUP_SCHEDULE_ATTEMPTS = _counter(
    "podgroup_schedule_attempts_total",
    "result profile",
    "ALPHA",
    "Attempts to schedule a pod group: scheduled, unschedulable, waiting_on_preemption, or error.",
)
PODGROUP_ATTEMPT_DURATION = _histogram(
    "podgroup_scheduling_attempt_duration_seconds",
    "result profile",
    "ALPHA",
    "How long an attempt to schedule a pod group took, until its pods were on their way to their nodes or back.",
    growing(0.001, 2, 15),
)
PODGROUP_ALGORITHM_DURATION = _histogram(
    "podgroup_scheduling_algorithm_duration_seconds",
    "",
    "ALPHA",
    "How long it took to find out whether a pod group fits.",
    growing(0.001, 2, 15),
)
STRAYS = _counter(
    "strays_total",
    "kind",
    "ALPHA",
    "Found by the loop's self check, and settled by reading the objects: effects that were not answered in time, "
    "bindings that wait for nothing, pods that left the queue and are nowhere. Any value above 0 is a bug.",
)

DEFINITIONS: tuple[MetricDefinition, ...] = (
    SCHEDULE_ATTEMPTS,
    SCHEDULING_ATTEMPT_DURATION,
    SCHEDULING_ALGORITHM_DURATION,
    FRAMEWORK_EXTENSION_POINT_DURATION,
    PLUGIN_EXECUTION_DURATION,
    PLUGIN_EVALUATION,
    EVENT_HANDLING_DURATION,
    PREEMPTION_ATTEMPTS,
    PREEMPTION_VICTIMS,
    PREEMPTION_GOROUTINES_DURATION,
    PREEMPTION_GOROUTINES_EXECUTION,
    PENDING_PODS,
    QUEUE_INCOMING_PODS,
    INFLIGHT_EVENTS,
    UNSCHEDULABLE_PODS,
    POD_SCHEDULING_ATTEMPTS,
    POD_SCHEDULING_SLI_DURATION,
    POD_SCHEDULED_AFTER_FLUSH,
    QUEUEING_HINT_DURATION,
    PERMIT_WAIT_DURATION,
    CACHE_SIZE,
    GOROUTINES,
    PODGROUP_SCHEDULE_ATTEMPTS,
    PODGROUP_ATTEMPT_DURATION,
    PODGROUP_ALGORITHM_DURATION,
    STRAYS,
)

OF_POD_GROUPS: tuple[MetricDefinition, ...] = (
    PODGROUP_SCHEDULE_ATTEMPTS,
    PODGROUP_ATTEMPT_DURATION,
    PODGROUP_ALGORITHM_DURATION,
)
"""The metrics that there are only with the feature gate GenericWorkload."""

OURS: tuple[str, ...] = (STRAYS.name,)
"""The metrics that kube-scheduler does not have."""

NOT_KEPT: dict[str, str] = {
    "batch_attempts_total, batch_cache_flushed_total, get_node_hint_duration_seconds, "
    "store_schedule_results_duration_seconds": "there are no node hints: what is kept for a class of pods answers for "
    "all nodes. `hint_used` would be every decision from a class, `no_hint` the first of its kind; nothing is flushed "
    "because another pod came in between, a node is not full, or time has passed, and the two durations are part of "
    "`scheduling_algorithm_duration_seconds`",
    "async_api_call_execution_total, async_api_call_execution_duration_seconds, pending_async_api_calls": "the "
    "feature they belong to is off by default in v1.36",
    "resourceclaim_creates_total, dra_bindingconditions_allocations_total, "
    "dra_bindingconditions_wait_duration_seconds": "not measured",
    "volume_binder_cache_requests_total, volume_scheduling_stage_error_total": "there is no such cache, and "
    "errors count in schedule_attempts_total",
}
"""kube-scheduler's metrics that have no counterpart, and why."""
