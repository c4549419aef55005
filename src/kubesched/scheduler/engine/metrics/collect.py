"""All metrics of a loop at this moment: what it counted, and what can be read off its state.

Numbers that follow from where pods are, are counted here and now, and so cannot drift.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kubesched.scheduler.engine.metrics import definitions
from kubesched.scheduler.engine.metrics.series import HistogramSeries, LabelValues, MetricFamily, distribution_of

if TYPE_CHECKING:
    from kubesched.scheduler.engine.loop import Scheduler


def collect(loop: Scheduler) -> list[MetricFamily]:
    """In the order of the definitions."""
    found = {family.definition.name: family for family in (*_counted(loop), *_measured(loop), *_states(loop))}
    return loop.metrics.shown(found)


def _counted(loop: Scheduler) -> list[MetricFamily]:
    metrics = loop.metrics
    profiles = {name: scheduler.profile for name, scheduler in loop.schedulers.items()}
    attempts = distribution_of(metrics.pod_attempts, definitions.POD_SCHEDULING_ATTEMPTS.buckets)
    return [
        MetricFamily(definitions.SCHEDULE_ATTEMPTS, metrics.attempts),
        MetricFamily(definitions.PLUGIN_EVALUATION, metrics.evaluations.totals(profiles)),
        MetricFamily(definitions.PREEMPTION_ATTEMPTS, {(): metrics.n_preemption_attempts}),
        MetricFamily(definitions.PREEMPTION_GOROUTINES_EXECUTION, metrics.preemptions),
        MetricFamily(definitions.POD_SCHEDULED_AFTER_FLUSH, {(): metrics.n_scheduled_after_flush}),
        MetricFamily(definitions.POD_SCHEDULING_ATTEMPTS, distributions={(): attempts}),
        MetricFamily(definitions.QUEUE_INCOMING_PODS, _as_floats(loop.queue.contents.incoming_pods())),
    ]


def _measured(loop: Scheduler) -> list[MetricFamily]:
    metrics, watch = loop.metrics, loop.metrics.watch
    series = [
        metrics.attempt_duration,
        metrics.algorithm_duration,
        metrics.event_duration,
        metrics.hint_duration,
        metrics.pod_duration,
        metrics.permit_duration,
        metrics.victims,
        metrics.preemption_duration,
    ]
    if watch is None:
        series.append(HistogramSeries(definitions.FRAMEWORK_EXTENSION_POINT_DURATION))
        series.append(HistogramSeries(definitions.PLUGIN_EXECUTION_DURATION))
    else:
        series.extend((watch.extension_points, watch.plugins))
    return [one.family() for one in series]


def _states(loop: Scheduler) -> list[MetricFamily]:
    contents, cluster = loop.queue.contents, loop.cluster
    sizes = {"nodes": cluster.table.n, "pods": cluster.n_pods, "assumed_pods": cluster.n_assumed}
    work = {"binding": len(loop.bindings)}
    if loop.paused is not None:
        work["prioritizing_extender"] = loop.paused.n_prioritizing
    return [
        MetricFamily(definitions.PENDING_PODS, _labelled(contents.pending_pods())),
        MetricFamily(definitions.INFLIGHT_EVENTS, _labelled(contents.in_flight_events())),
        MetricFamily(definitions.UNSCHEDULABLE_PODS, _as_floats(contents.unschedulable_pods())),
        MetricFamily(definitions.CACHE_SIZE, _labelled(sizes)),
        MetricFamily(definitions.GOROUTINES, _labelled(work)),
        MetricFamily(definitions.STRAYS, _labelled({} if loop.check is None else loop.check.totals)),
    ]


def _as_floats(numbers: Mapping[tuple[str, str], int]) -> dict[LabelValues, float]:
    return dict(numbers.items())


def _labelled(numbers: Mapping[str, int]) -> dict[LabelValues, float]:
    return {(label,): number for label, number in numbers.items()}
