"""What the loop counts and measures while an older scheduler decides.

Parts of a search are told apart by the extension points that ran: which of them counted as predicates and which as
priorities differed by version. Today's metrics are shown under the names and labels of then: labels that did not exist
are summed up, events and extension points are called what they were called.

Summaries are a kind of metric that kube-scheduler no longer uses: quantiles of the last hours. A value is kept as its
place on a scale of steps of one percent, so what is kept stays small however long it runs.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import exp, floor, log, nan

from kubesched.framework.status import Code
from kubesched.older.config import Generation
from kubesched.older.engine.metrics.definitions import QUANTILES, Measure, MetricOfThen, metrics_of
from kubesched.scheduler.engine.cycle import Decision
from kubesched.scheduler.engine.metrics import definitions as today
from kubesched.scheduler.engine.metrics.definitions import MetricDefinition, MetricKind
from kubesched.scheduler.engine.metrics.loop_metrics import ERROR, SCHEDULED, UNSCHEDULABLE, LoopMetrics, attempts_label
from kubesched.scheduler.engine.metrics.series import HistogramSeries, LabelValues, MetricFamily, Summary, relabelled
from kubesched.scheduler.engine.metrics.timing import Clock, ExtensionPointWatch
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.queue import QueuedPodInfo

WINDOW_S = 5 * 3600.0
"""How long a value counts for quantiles, at most. Sums and numbers are of all times."""
_N_WINDOWS = 5
_STEP = log(1.01)
_SMALLEST = 1e-9


class Quantiles:
    """Of the values of the last hours: windows that begin one after another, of which the oldest is asked."""

    def __init__(self, now_s: float) -> None:
        self._windows: deque[Counter[int]] = deque(Counter() for _ in range(_N_WINDOWS))
        self._renewed_at_s = now_s

    def add(self, value: float, now_s: float) -> None:
        self._renew(now_s)
        place = floor(log(max(value, _SMALLEST)) / _STEP)
        for window in self._windows:
            window[place] += 1

    def at(self, shares: Sequence[float], now_s: float) -> tuple[tuple[float, float], ...]:
        """(share, the value that this share of all does not exceed); not a number where there is none."""
        self._renew(now_s)
        return tuple((share, _quantile(self._windows[0], share)) for share in shares)

    def _renew(self, now_s: float) -> None:
        """The oldest window ends, and a new one begins; after a long silence all of them."""
        n_due = floor((now_s - self._renewed_at_s) / (WINDOW_S / _N_WINDOWS))
        for _ in range(min(n_due, _N_WINDOWS)):
            self._windows.popleft()
            self._windows.append(Counter())
        self._renewed_at_s += n_due * (WINDOW_S / _N_WINDOWS)


def _quantile(found: Counter[int], share: float) -> float:
    left = share * found.total()
    for place in sorted(found):
        left -= found[place]
        if left <= 0:
            return exp((place + 0.5) * _STEP)
    return nan


class SummarySeries:
    """The values of one summary. Without `shares` it has no quantiles."""

    def __init__(self, definition: MetricDefinition, shares: Sequence[float], clock: Callable[[], float]) -> None:
        self.definition = definition
        self._shares = shares
        self._clock = clock
        self._quantiles: dict[LabelValues, Quantiles] = {}
        self._totals: dict[LabelValues, float] = {}
        self._counts: Counter[LabelValues] = Counter()

    def observe(self, value: float, labels: LabelValues = ()) -> None:
        self._totals[labels] = self._totals.get(labels, 0.0) + value
        self._counts[labels] += 1
        if self._shares:
            now_s = self._clock()
            if labels not in self._quantiles:
                self._quantiles[labels] = Quantiles(now_s)
            self._quantiles[labels].add(value, now_s)

    def family(self) -> MetricFamily:
        now_s = self._clock()
        found = {}
        for labels, count in self._counts.items():
            asked = self._quantiles.get(labels)
            quantiles = () if asked is None else asked.at(self._shares, now_s)
            found[labels] = Summary(quantiles, self._totals[labels], count)
        return MetricFamily(self.definition, summaries=found)


_EXTENSION_POINTS = frozenset(
    {"PreFilter", "PreFilterExtensionAddPod", "PreFilterExtensionRemovePod", "Filter", "PreScore", "Score"}
    | {"ScoreExtensionNormalize", "Reserve", "Unreserve", "Permit", "PreBind", "Bind", "PostBind"}
)
_RENAMED_EXTENSION_POINTS = {"1.17": {"PreScore": "PostFilter"}, "1.18": {}, "1.19": {"PostFilter": "PostFilter"}}
"""What was called PostFilter in 1.17 is PreScore today; preemption became an extension point with 1.19."""

_EVENTS = {
    "UnschedulablePodAdd": "PodAdd",
    "PersistentVolumeAdd": "PvAdd",
    "PersistentVolumeUpdate": "PvUpdate",
    "PersistentVolumeClaimAdd": "PvcAdd",
    "PersistentVolumeClaimUpdate": "PvcUpdate",
    "storage.k8s.io/StorageClassAdd": "StorageClassAdd",
    "storage.k8s.io/CSINodeAdd": "CSINodeAdd",
    "storage.k8s.io/CSINodeUpdate": "CSINodeUpdate",
    "NodeUpdateNodeAllocatable": "NodeAllocatableChange",
    "NodeUpdateNodeLabel": "NodeLabelChange",
    "NodeUpdateNodeTaint": "NodeTaintChange",
    "NodeUpdateNodeCondition": "NodeConditionChange",
}
_KEPT_EVENTS = frozenset(
    {"NodeAdd", "AssignedPodAdd", "AssignedPodUpdate", "AssignedPodDelete"}
    | {"ScheduleAttemptFailure", "BackoffComplete", "UnschedulableTimeout"}
)
_UNKNOWN_EVENT = "Unknown"
_RESULTS: tuple[LabelValues, ...] = (("scheduled",), ("unschedulable",), ("error",))


def as_of_then(
    version: str,
    metrics: Iterable[MetricOfThen],
    found: Mapping[str, MetricFamily],
    own: Mapping[str, MetricFamily],
) -> list[MetricFamily]:
    """`found` are today's metrics by name, `own` those that were measured for then. `strays_total`, ours, stays."""
    shown = [
        _renamed(metric, version, found[metric.source.name])
        if isinstance(metric.source, MetricDefinition)
        else own[metric.name]
        for metric in metrics
    ]
    return [*shown, found[today.STRAYS.name]]


def _renamed(metric: MetricOfThen, version: str, family: MetricFamily) -> MetricFamily:
    definition = metric.definition(version)
    labels = tuple(metric.renamed_labels.get(label, label) for label in family.definition.labels)

    def said(values: LabelValues) -> LabelValues | None:
        """None for what did not exist."""
        told = dict(zip(labels, values, strict=True))
        if "extension_point" in told:
            extension_point = _extension_point(version, told["extension_point"])
            if not extension_point:
                return None
            told["extension_point"] = extension_point
        if "event" in told:
            told["event"] = _event(told["event"])
        if told.get("queue") == "gated":
            told["queue"] = "unschedulable"
        return tuple(told[label] for label in definition.labels)

    shown = replace(relabelled(family, said), definition=definition)
    if definition.labels == ("result",) and shown.values is not None:
        shown = replace(shown, values={**dict.fromkeys(_RESULTS, 0.0), **shown.values})  # were there from the start
    return shown


def _extension_point(version: str, extension_point: str) -> str:
    """Empty for an extension point that did not exist."""
    renamed = _RENAMED_EXTENSION_POINTS[version].get(extension_point)
    return renamed or (extension_point if extension_point in _EXTENSION_POINTS else "")


def _event(event: str) -> str:
    if event in _KEPT_EVENTS:
        return event
    if event.startswith("AssignedPodUpdate"):
        return "AssignedPodUpdate"
    return _EVENTS.get(event, _UNKNOWN_EVENT)


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
