"""What the loop counts and measures while an older scheduler decides.

Parts of a search are told apart by the extension points that ran: which of them counted as predicates and which as
priorities differed by version. Next: `shown`, which adds today's metrics under the names of then.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubesched.framework.status import Code
from kubesched.older.config import Generation
from kubesched.older.engine.metrics.definitions import QUANTILES, Measure, MetricOfThen, metrics_of
from kubesched.older.engine.metrics.shown import as_of_then
from kubesched.older.engine.metrics.summary import SummarySeries
from kubesched.scheduler.engine.cycle import Decision
from kubesched.scheduler.engine.metrics.definitions import MetricKind
from kubesched.scheduler.engine.metrics.loop_metrics import ERROR, SCHEDULED, UNSCHEDULABLE, LoopMetrics, attempts_label
from kubesched.scheduler.engine.metrics.series import HistogramSeries, MetricFamily
from kubesched.scheduler.engine.metrics.timing import Clock, ExtensionPointWatch
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.queue import QueuedPodInfo

_OPERATIONS = {
    Measure.PREDICATES: "predicate_evaluation",
    Measure.PRIORITIES: "priority_evaluation",
    Measure.PREEMPTION: "preemption_evaluation",
    Measure.BINDING: "binding",
}
_PREPARED_IN_PLACE = {Measure.PREDICATES: ("PreFilter", "Filter"), Measure.PRIORITIES: ("PreScore", "Score")}
_PREPARED_BEFORE = {Measure.PREDICATES: ("Filter", "PreScore"), Measure.PRIORITIES: ("Score",)}


class OlderMetrics(LoopMetrics):
    """As today's, and what older schedulers measured beside it."""

    def __init__(self, clock: Clock | None, generation: Generation) -> None:
        super().__init__(clock)
        self._generation = generation
        self._extension_points: ExtensionPointTimes | None = None
        if clock is not None:
            self.watch = self._extension_points = ExtensionPointTimes(clock, self)
        self._metrics = metrics_of(generation)
        self._parts = _PREPARED_BEFORE if generation.prepares_apart else _PREPARED_IN_PLACE
        self._series = {metric.name: self._new_series(metric) for metric in self._metrics if _has_series(metric)}
        self._by_measure: dict[Measure, list[MetricOfThen]] = {measure: [] for measure in Measure}
        for metric in self._metrics:
            if isinstance(metric.source, Measure) and metric.name in self._series:
                self._by_measure[metric.source].append(metric)
        self._n_attempts_to_preempt = 0
        self._n_last_victims = 0
        self._is_without_nodes = False
        self._has_bind_failed = False

    def _new_series(self, metric: MetricOfThen) -> HistogramSeries | SummarySeries:
        definition = metric.definition(self._generation.version)
        if metric.kind is MetricKind.HISTOGRAM:
            return HistogramSeries(definition)
        return SummarySeries(definition, QUANTILES if self._generation.summaries_have_quantiles else (), self.now_s)

    # -- a cycle -------------------------------------------------------------------------------------------------------

    def cycle_started(self) -> float:
        if self._extension_points is not None:
            self._extension_points.took_s.clear()
        return super().cycle_started()

    def decided(self, profile: Profile, decision: Decision, started_s: float) -> None:
        super().decided(profile, decision, started_s)
        is_fit_error = decision.diagnosis is not None
        self._is_without_nodes = not (decision.node_name or decision.error or is_fit_error)
        if is_fit_error and (decision.post_filter is not None or self._generation.counts_disabled_preemption):
            self._count_preemption(decision)
        if self._extension_points is None:
            return
        took_s = self._extension_points.took_s
        if decision.node_name:
            self.observe(Measure.ALGORITHM, self.now_s() - started_s)
            self._observe_part(Measure.PREDICATES, took_s)
            self._observe_part(Measure.PRIORITIES, took_s)
        elif decision.post_filter is not None:
            self._observe_operation(Measure.PREEMPTION, took_s.get("PostFilter", 0.0))
        took_s.clear()

    def _observe_part(self, part: Measure, took_s: Mapping[str, float]) -> None:
        """A single node is not scored: that it took no time is told, but not among the operations."""
        ran = [took_s[extension_point] for extension_point in self._parts[part] if extension_point in took_s]
        if ran and (part is Measure.PREDICATES or "Score" in took_s):
            self._observe_operation(part, sum(ran))
        else:
            self.observe(part, 0.0)

    def _count_preemption(self, decision: Decision) -> None:
        self._n_attempts_to_preempt += 1
        found = decision.preemption
        n_victims = 0 if found is None else len(found.victims)
        if found is not None or self._generation.counts_disabled_preemption:
            self._n_last_victims = n_victims
        if found is not None:
            self.observe(Measure.VICTIMS, n_victims)

    def failed(self, profile: str, *, is_error: bool, started_s: float) -> None:
        if self._is_without_nodes and self._generation.no_nodes_is_an_error:
            is_error = True
        self._is_without_nodes = False
        super().failed(profile, is_error=is_error, started_s=started_s)
        self._attempt_ended(ERROR if is_error else UNSCHEDULABLE, profile, started_s, was_bound=self._has_bind_failed)
        self._has_bind_failed = False

    def scheduled(self, profile: str, queued: QueuedPodInfo, started_s: float, now_s: float) -> None:
        super().scheduled(profile, queued, started_s, now_s)
        self._attempt_ended(SCHEDULED, profile, started_s, was_bound=True)
        if queued.initial_attempt_at_s is not None:
            self.observe(Measure.POD, now_s - queued.initial_attempt_at_s, attempts=attempts_label(queued.attempts)[0])

    def _attempt_ended(self, result: str, profile: str, started_s: float, *, was_bound: bool) -> None:
        """Only 1.19 measures attempts that did not come to a binding."""
        if self.clock is not None and (was_bound or self._generation.times_every_attempt):
            self.observe(Measure.ATTEMPT, self.clock() - started_s, result=result, profile=profile)

    def bind_ended(self, status: str, for_s: float) -> None:
        """Of bindings that failed, only the whole attempt is measured."""
        self._has_bind_failed = status != Code.SUCCESS.value
        if not self._has_bind_failed:
            self._observe_operation(Measure.BINDING, for_s)

    # -- series --------------------------------------------------------------------------------------------------------

    def _observe_operation(self, part: Measure, for_s: float) -> None:
        self.observe(part, for_s)
        self.observe(Measure.OPERATION, for_s, operation=_OPERATIONS[part])

    def observe(self, measure: Measure, value: float, **labels: str) -> None:
        """In every metric of this measure, with those of the labels that it has."""
        for metric in self._by_measure[measure]:
            said = float(int(value * 1e6)) if metric.is_in_microseconds else value
            self._series[metric.name].observe(said, tuple(labels[label] for label in metric.labels))

    def shown(self, found: Mapping[str, MetricFamily]) -> list[MetricFamily]:
        own = {name: series.family() for name, series in self._series.items()}
        counts = {Measure.PREEMPTION_ATTEMPTS: self._n_attempts_to_preempt, Measure.VICTIMS: self._n_last_victims}
        for metric in self._metrics:
            if isinstance(metric.source, Measure) and metric.name not in own:
                own[metric.name] = MetricFamily(
                    metric.definition(self._generation.version), {(): float(counts[metric.source])}
                )
        return as_of_then(self._generation.version, self._metrics, found, own)


class ExtensionPointTimes(ExtensionPointWatch):
    """Also adds up how long each extension point of the cycle under way took."""

    def __init__(self, clock: Clock, metrics: OlderMetrics) -> None:
        super().__init__(clock)
        self._metrics = metrics
        self.took_s: dict[str, float] = {}

    def extension_point_ended(self, extension_point: str, status: str, profile: str, started_s: float) -> None:
        super().extension_point_ended(extension_point, status, profile, started_s)
        for_s = self.clock() - started_s
        if extension_point == "Bind":
            self._metrics.bind_ended(status, for_s)
        else:
            self.took_s[extension_point] = self.took_s.get(extension_point, 0.0) + for_s


def _has_series(metric: MetricOfThen) -> bool:
    """Others are mere numbers, or taken from today's metrics."""
    return isinstance(metric.source, Measure) and metric.kind in (MetricKind.HISTOGRAM, MetricKind.SUMMARY)
