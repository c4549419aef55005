"""Every metric of then: name, kind, labels and buckets are kube-scheduler's, the words are ours.

One row for each form that a metric had, with the versions that had it so. The reference page
(`docs/reference/older-metrics.md`) is made from this. Next: `measured`, which fills them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from kubesched.older.config import Generation
from kubesched.scheduler.engine.metrics import definitions as today
from kubesched.scheduler.engine.metrics.definitions import MetricDefinition, MetricKind, growing


class Measure(Enum):
    """What is measured for metrics that exist no more, or had another form."""

    ATTEMPT = auto()
    """From the queue to the answer to the binding."""
    ALGORITHM = auto()
    """A search that found a node."""
    PREDICATES = auto()
    PRIORITIES = auto()
    PREEMPTION = auto()
    BINDING = auto()
    OPERATION = auto()
    """The last four, told apart by a label."""
    POD = auto()
    """From the queue to the node, all attempts included."""
    VICTIMS = auto()
    """How many pods a preemption evicts."""
    PREEMPTION_ATTEMPTS = auto()


_13, _14, _17, _18, _19 = "1.13", "1.14", "1.17", "1.18", "1.19"
_PLAIN = (_13, _14)
"""Versions whose metrics had no stability level."""
_SINCE_17 = (_17, _18, _19)
_SECONDS = growing(0.001, 2, 15)
_MICROSECONDS = growing(1000, 2, 15)
_VICTIMS = tuple(float(5 * n) for n in range(1, 11))
QUANTILES = (0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricOfThen:
    """`source` is what fills it: something measured, or the metric of today that it is another form of."""

    name: str
    kind: MetricKind
    versions: tuple[str, ...]
    source: Measure | MetricDefinition
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    deprecated: tuple[str, ...] = ()
    """The versions in which it was shown as deprecated."""
    is_in_microseconds: bool = False
    renamed_labels: dict[str, str] = field(default_factory=dict)
    """Of today's labels, those that had another name."""
    successor: str = ""
    """Where to look today, if not at the source."""

    def definition(self, version: str) -> MetricDefinition:
        """As the version showed it."""
        text = self.help
        if version in self.deprecated:
            since = "" if version in _PLAIN else " since 1.19.0"
            text = f"(Deprecated{since}) {text}"
        stability = "" if version in _PLAIN else "ALPHA"
        return MetricDefinition(self.name, self.kind, self.labels, stability, text, self.buckets)

    @property
    def today(self) -> str:
        """The metric of today that tells the same."""
        if self.successor:
            return self.successor
        assert isinstance(self.source, MetricDefinition)
        return f"`{self.source.name}`"


def _duration(
    names: dict[str, tuple[str, ...]],
    source: Measure,
    text: str,
    successor: str,
    deprecated: tuple[str, ...] = (),
) -> list[MetricOfThen]:
    """A histogram in seconds, and the one in microseconds that was before it."""
    return [
        MetricOfThen(
            name=name,
            kind=MetricKind.HISTOGRAM,
            versions=versions,
            source=source,
            help=f"{text}, in {'' if name.endswith('_seconds') else 'micro'}seconds.",
            buckets=_SECONDS if name.endswith("_seconds") else _MICROSECONDS,
            deprecated=deprecated if name.endswith("_seconds") else (_14,),
            is_in_microseconds=not name.endswith("_seconds"),
            successor=successor,
        )
        for name, versions in names.items()
    ]


def _extension_point(name: str) -> str:
    return f"`framework_extension_point_duration_seconds` of {name}"


METRICS: tuple[MetricOfThen, ...] = (
    MetricOfThen(
        name="schedule_attempts_total",
        kind=MetricKind.COUNTER,
        versions=(_13, _14, _17, _18),
        source=today.SCHEDULE_ATTEMPTS,
        labels=("result",),
        help="Attempts to schedule a pod: scheduled, unschedulable (no node fits), or error (something failed).",
    ),
    MetricOfThen(
        name="schedule_attempts_total",
        kind=MetricKind.COUNTER,
        versions=(_19,),
        source=today.SCHEDULE_ATTEMPTS,
        labels=("result", "profile"),
        help="Attempts to schedule a pod: scheduled, unschedulable (no node fits), or error (something failed).",
    ),
    MetricOfThen(
        name="scheduling_latency_seconds",
        kind=MetricKind.SUMMARY,
        versions=(_13, _14),
        source=Measure.OPERATION,
        labels=("operation",),
        help="How long the parts of an attempt took, in seconds.",
        deprecated=(_14,),
        successor=_extension_point("Filter, Score, PostFilter and Bind"),
    ),
    MetricOfThen(
        name="scheduling_duration_seconds",
        kind=MetricKind.SUMMARY,
        versions=(_14, _17, _18, _19),
        source=Measure.OPERATION,
        labels=("operation",),
        help="How long the parts of an attempt took, in seconds.",
        deprecated=(_19,),
        successor=_extension_point("Filter, Score, PostFilter and Bind"),
    ),
    *_duration(
        {"e2e_scheduling_latency_microseconds": _PLAIN, "e2e_scheduling_duration_seconds": (_14, _17, _18)},
        Measure.ATTEMPT,
        "How long attempts took that came to a binding, from the queue to its answer",
        "`scheduling_attempt_duration_seconds`, which has failed attempts, too",
    ),
    MetricOfThen(
        name="e2e_scheduling_duration_seconds",
        kind=MetricKind.HISTOGRAM,
        versions=(_19,),
        source=Measure.ATTEMPT,
        labels=("result", "profile"),
        help="How long an attempt took, from the queue to the end of binding, in seconds.",
        buckets=_SECONDS,
        successor="`scheduling_attempt_duration_seconds`",
    ),
    *_duration(
        {
            "scheduling_algorithm_latency_microseconds": _PLAIN,
            "scheduling_algorithm_duration_seconds": (_14, *_SINCE_17),
        },
        Measure.ALGORITHM,
        "How long it took to decide, where a node was found",
        "`scheduling_algorithm_duration_seconds`, which has decisions without a node, too",
    ),
    *_duration(
        {
            "scheduling_algorithm_predicate_evaluation": _PLAIN,
            "scheduling_algorithm_predicate_evaluation_seconds": (_14, *_SINCE_17),
        },
        Measure.PREDICATES,
        "How long it took to find the nodes that fit, where there were any",
        _extension_point("Filter"),
        deprecated=(_19,),
    ),
    *_duration(
        {
            "scheduling_algorithm_priority_evaluation": _PLAIN,
            "scheduling_algorithm_priority_evaluation_seconds": (_14, *_SINCE_17),
        },
        Measure.PRIORITIES,
        "How long it took to score the nodes that fit (no time for a single one)",
        _extension_point("Score"),
        deprecated=(_19,),
    ),
    *_duration(
        {
            "scheduling_algorithm_preemption_evaluation": _PLAIN,
            "scheduling_algorithm_preemption_evaluation_seconds": (_14, *_SINCE_17),
        },
        Measure.PREEMPTION,
        "How long it took to look for preemption's victims",
        _extension_point("PostFilter"),
    ),
    *_duration(
        {"binding_latency_microseconds": _PLAIN, "binding_duration_seconds": (_14, *_SINCE_17)},
        Measure.BINDING,
        "How long it took until a pod was bound, from the request to its answer",
        _extension_point("Bind"),
    ),
    MetricOfThen(
        name="pod_preemption_victims",
        kind=MetricKind.GAUGE,
        versions=_PLAIN,
        source=Measure.VICTIMS,
        help="Pods that the last preemption evicts.",
        successor="`preemption_victims`",
    ),
    MetricOfThen(
        name="pod_preemption_victims",
        kind=MetricKind.HISTOGRAM,
        versions=(_17, _18),
        source=Measure.VICTIMS,
        help="Pods that a preemption evicts.",
        buckets=_VICTIMS,
        successor="`preemption_victims`",
    ),
    MetricOfThen(
        name="preemption_victims",
        kind=MetricKind.HISTOGRAM,
        versions=(_19,),
        source=Measure.VICTIMS,
        help="Pods that a preemption evicts.",
        buckets=_VICTIMS,
        successor="`preemption_victims`, with other buckets",
    ),
    MetricOfThen(
        name="total_preemption_attempts",
        kind=MetricKind.COUNTER,
        versions=(_13, _14, _17, _18),
        source=Measure.PREEMPTION_ATTEMPTS,
        help="How often preemption was tried.",
        successor="`preemption_attempts_total`",
    ),
    MetricOfThen(
        name="preemption_attempts_total",
        kind=MetricKind.COUNTER,
        versions=(_19,),
        source=Measure.PREEMPTION_ATTEMPTS,
        help="How often preemption was tried.",
        successor="`preemption_attempts_total`",
    ),
    MetricOfThen(
        name="pending_pods",
        kind=MetricKind.GAUGE,
        versions=_SINCE_17,
        source=today.PENDING_PODS,
        labels=("queue",),
        help="Pods that wait: active (to be tried next), backoff (after a failure), unschedulable (for a change).",
    ),
    MetricOfThen(
        name="queue_incoming_pods_total",
        kind=MetricKind.COUNTER,
        versions=_SINCE_17,
        source=today.QUEUE_INCOMING_PODS,
        labels=("queue", "event"),
        help="Pods added to a queue, by the event that moved them.",
    ),
    MetricOfThen(
        name="pod_scheduling_duration_seconds",
        kind=MetricKind.HISTOGRAM,
        versions=(_17, _18),
        source=Measure.POD,
        help="How long a pod took from the queue to its node, all attempts included.",
        buckets=_SECONDS,
        successor="`pod_scheduling_sli_duration_seconds`",
    ),
    MetricOfThen(
        name="pod_scheduling_duration_seconds",
        kind=MetricKind.HISTOGRAM,
        versions=(_19,),
        source=Measure.POD,
        labels=("attempts",),
        help="How long a pod took from the queue to its node, all attempts included.",
        buckets=today.POD_SCHEDULING_SLI_DURATION.buckets,
        successor="`pod_scheduling_sli_duration_seconds`",
    ),
    MetricOfThen(
        name="pod_scheduling_attempts",
        kind=MetricKind.HISTOGRAM,
        versions=_SINCE_17,
        source=today.POD_SCHEDULING_ATTEMPTS,
        help="Attempts that a pod needed until it was scheduled.",
        buckets=today.POD_SCHEDULING_ATTEMPTS.buckets,
    ),
    MetricOfThen(
        name="framework_extension_point_duration_seconds",
        kind=MetricKind.HISTOGRAM,
        versions=(_17, _18),
        source=today.FRAMEWORK_EXTENSION_POINT_DURATION,
        labels=("extension_point", "status"),
        help="How long all plugins of an extension point took together.",
        buckets=today.FRAMEWORK_EXTENSION_POINT_DURATION.buckets,
    ),
    MetricOfThen(
        name="framework_extension_point_duration_seconds",
        kind=MetricKind.HISTOGRAM,
        versions=(_19,),
        source=today.FRAMEWORK_EXTENSION_POINT_DURATION,
        labels=("extension_point", "status", "profile"),
        help="How long all plugins of an extension point took together.",
        buckets=today.FRAMEWORK_EXTENSION_POINT_DURATION.buckets,
    ),
    MetricOfThen(
        name="plugin_execution_duration_seconds",
        kind=MetricKind.HISTOGRAM,
        versions=_SINCE_17,
        source=today.PLUGIN_EXECUTION_DURATION,
        labels=("plugin", "extension_point", "status"),
        help="How long one plugin took in one extension point, a filter for one node; measured in every tenth cycle.",
        buckets=today.PLUGIN_EXECUTION_DURATION.buckets,
    ),
    MetricOfThen(
        name="permit_wait_duration_seconds",
        kind=MetricKind.HISTOGRAM,
        versions=_SINCE_17,
        source=today.PERMIT_WAIT_DURATION,
        labels=("result",),
        help="How long pods waited for a permit.",
        buckets=today.PERMIT_WAIT_DURATION.buckets,
    ),
    MetricOfThen(
        name="scheduler_goroutines",
        kind=MetricKind.GAUGE,
        versions=_SINCE_17,
        source=today.GOROUTINES,
        labels=("work",),
        renamed_labels={"operation": "work"},
        help="Work under way outside of the loop: binding, prioritizing_extender.",
    ),
    MetricOfThen(
        name="scheduler_cache_size",
        kind=MetricKind.GAUGE,
        versions=_SINCE_17,
        source=today.CACHE_SIZE,
        labels=("type",),
        help="Nodes, pods and assumed_pods in the scheduler cache.",
    ),
)

NOT_GIVEN: dict[str, str] = {
    "`equiv_cache_lookups_total`, `equiv_cache_writes`": "of 1.13; its alpha cache of classes is not emulated",
    "`volume_binder_cache_requests_total`, `volume_scheduling_duration_seconds`, "
    "`volume_scheduling_stage_error_total`": "there is no such cache; volumes count in the extension points Filter, "
    "Reserve and PreBind",
    "the metrics in microseconds and `scheduling_latency_seconds` in 1.17": "deprecated in 1.14, they were hidden from "
    "1.15 on, and gone in 1.18",
}
"""Metrics of then that an emulated scheduler does not have, and why."""


def metrics_of(generation: Generation) -> tuple[MetricOfThen, ...]:
    """Those that a version showed."""
    return tuple(metric for metric in METRICS if generation.version in metric.versions)
