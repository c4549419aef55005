"""What the loop counts and measures as it goes, and all metrics of a loop at this moment (`collect`).

Counting stands on the path of every pod: a few dictionary steps each. An attempt is counted under what it skipped and
where it ended, which most attempts have in common; which plugins took part is worked out when metrics are collected.
Numbers that follow from where pods are, are counted here and now, and so cannot drift.

Next: `exposition`, which writes them as text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kubesched.framework.events import Hint, HintFunction
from kubesched.framework.extension_points import Plugin
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Code, Status
from kubesched.scheduler.engine.cycle import Decision
from kubesched.scheduler.engine.metrics import definitions
from kubesched.scheduler.engine.metrics.series import HistogramSeries, LabelValues, MetricFamily, distribution_of
from kubesched.scheduler.engine.metrics.timing import (
    SAMPLE_EVERY,
    Clock,
    ExtensionPointWatch,
    Trace,
    timed_profile,
    trace_of,
)
from kubesched.scheduler.engine.postfilter import Diagnosis
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.queue import QueuedPodInfo

if TYPE_CHECKING:
    from kubesched.scheduler.engine.loop import Scheduler


class _Course(NamedTuple):
    """What attempts have in common that asked the same plugins."""

    profile: str
    skip_filter: frozenset[str]
    skip_score: frozenset[str] | None
    """None if nothing was scored."""
    ended_at_pre_filter: str = ""
    """The plugin that rejected the pod for good."""
    rejected_by: tuple[str, ...] | None = None
    """The plugins that rejected nodes, if no node was left."""


_Success = tuple[str, frozenset[str], frozenset[str] | None]
_Failure = tuple[str, frozenset[str], None, str, tuple[str, ...]]
"""Courses as plain tuples: one is made for every attempt."""


class Evaluations:
    def __init__(self) -> None:
        self._successes: dict[_Success, int] = {}
        self._failures: dict[_Failure, int] = {}

    def count(self, profile: str, decision: Decision) -> None:
        cycle = decision.cycle
        if decision.node_name:
            course = (profile, cycle.skip_filter, cycle.skip_score if decision.n_feasible > 1 else None)
            self._successes[course] = self._successes.get(course, 0) + 1
        elif decision.diagnosis is not None:  # else there were no nodes, or a plugin broke
            failure = _failure(profile, cycle.skip_filter, decision.diagnosis)
            self._failures[failure] = self._failures.get(failure, 0) + 1

    def totals(self, profiles: Mapping[str, Profile]) -> dict[LabelValues, float]:
        """By plugin, extension point and profile."""
        found: Counter[LabelValues] = Counter()
        successes = [(_Course(*course), n) for course, n in self._successes.items()]
        failures = [(_Course(*course), n) for course, n in self._failures.items()]
        for course, n in successes + failures:
            for extension_point, plugin in _asked(profiles[course.profile], course):
                found[plugin, extension_point, course.profile] += n
        return dict(found)


def _failure(profile: str, skip_filter: frozenset[str], diagnosis: Diagnosis) -> _Failure:
    rejection, filtered = diagnosis.prefilter.status, diagnosis.filtered
    ended = rejection.plugin if rejection.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE else ""
    rejected_by = () if filtered is None else tuple(filtered.rejecting_plugins())
    return profile, skip_filter, None, ended, rejected_by


def _asked(profile: Profile, course: _Course) -> Iterator[tuple[str, str]]:
    """(extension point, plugin)"""
    pre_filter = _left(profile.pre_filter, course.skip_filter)
    filters = [step.name for step in profile.filter if step.name not in course.skip_filter]
    if course.ended_at_pre_filter:
        pre_filter = _up_to(pre_filter, [course.ended_at_pre_filter])
    if course.rejected_by is not None:
        filters = _up_to(filters, course.rejected_by)
    yield from (("PreFilter", name) for name in pre_filter)
    yield from (("Filter", name) for name in filters)
    if course.skip_score is not None:
        yield from (("PreScore", name) for name in _left(profile.pre_score, course.skip_score))
        yield from (("Score", step.name) for step in profile.score if step.name not in course.skip_score)


def _left(plugins: Iterable[Plugin], skipped: frozenset[str]) -> list[str]:
    return [plugin.name for plugin in plugins if plugin.name not in skipped]


def _up_to(names: Sequence[str], last: Sequence[str]) -> list[str]:
    """Up to the last of these; none if none of them is there."""
    ends = [position + 1 for position, name in enumerate(names) if name in last]
    return list(names[: ends[-1]]) if ends else []


SCHEDULED = "scheduled"
UNSCHEDULABLE = "unschedulable"
ERROR = "error"
SUCCESS = "success"
WAITING_ON_PREEMPTION = "waiting_on_preemption"

_PREEMPTION = "DefaultPreemption"
_MANY_ATTEMPTS = 15
_ATTEMPTS_LABELS: tuple[LabelValues, ...] = (*((str(n),) for n in range(_MANY_ATTEMPTS)), (f"{_MANY_ATTEMPTS}+",))


def attempts_label(n: int) -> LabelValues:
    return _ATTEMPTS_LABELS[min(n, _MANY_ATTEMPTS)]


class LoopMetrics:
    """Without a clock, durations are not measured; all else is counted."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.clock = clock
        self.watch = None if clock is None else ExtensionPointWatch(clock)
        self.attempts: dict[LabelValues, int] = {}
        self.evaluations = Evaluations()
        self.n_preemption_attempts = 0
        self.preemptions: Counter[LabelValues] = Counter()
        self.n_scheduled_after_flush = 0
        self.pod_attempts: dict[int, int] = {}
        """How many pods needed how many attempts."""
        self.attempt_duration = HistogramSeries(definitions.SCHEDULING_ATTEMPT_DURATION)
        self.algorithm_duration = HistogramSeries(definitions.SCHEDULING_ALGORITHM_DURATION)
        self.event_duration = HistogramSeries(definitions.EVENT_HANDLING_DURATION)
        self.hint_duration = HistogramSeries(definitions.QUEUEING_HINT_DURATION)
        self.pod_duration = HistogramSeries(definitions.POD_SCHEDULING_SLI_DURATION)
        self.permit_duration = HistogramSeries(definitions.PERMIT_WAIT_DURATION)
        self.victims = HistogramSeries(definitions.PREEMPTION_VICTIMS)
        self.preemption_duration = HistogramSeries(definitions.PREEMPTION_GOROUTINES_DURATION)
        self.has_groups = False
        """Whether pod groups are scheduled: otherwise they have no metrics."""
        self.group_attempts: dict[LabelValues, int] = {}
        self.group_duration = HistogramSeries(definitions.PODGROUP_ATTEMPT_DURATION)
        self.group_algorithm_duration = HistogramSeries(definitions.PODGROUP_ALGORITHM_DURATION)
        self._timed_profiles: dict[str, Profile] = {}
        self._n_cycles = 0

    def shown(self, found: Mapping[str, MetricFamily]) -> list[MetricFamily]:
        """The metrics that were collected, by name, as they are exposed."""
        hidden = () if self.has_groups else definitions.OF_POD_GROUPS
        return [found[definition.name] for definition in definitions.DEFINITIONS if definition not in hidden]

    # -- a cycle -------------------------------------------------------------------------------------------------------

    def now_s(self) -> float:
        """The clock's time; 0 without a clock."""
        return 0.0 if self.clock is None else self.clock()

    def cycle_started(self) -> float:
        if self.watch is None:
            return 0.0
        self.watch.marks.clear()
        return self.watch.clock()

    def sampled(self, profile: Profile) -> Profile | None:
        """In every tenth cycle the profile with its plugins measured, to be used in the place of the other."""
        if self.watch is None:
            return None
        self._n_cycles += 1
        if self._n_cycles % SAMPLE_EVERY:
            return None
        name = profile.scheduler_name
        if name not in self._timed_profiles:
            self._timed_profiles[name] = timed_profile(profile, self.watch)
        return self._timed_profiles[name]

    def profiles_changed(self) -> None:
        """What is to be measured is another now."""
        self._timed_profiles.clear()

    def decided(self, profile: Profile, decision: Decision, started_s: float) -> Trace | None:
        """The trace of a decision that took long."""
        self.evaluations.count(profile.scheduler_name, decision)
        post_filter = decision.post_filter
        if post_filter is not None and post_filter.status.plugin in ("", _PREEMPTION):
            self.n_preemption_attempts += _PREEMPTION in profile.plugins
        watch = self.watch
        if watch is None:
            return None
        now_s = watch.clock()
        self.algorithm_duration.observe(now_s - started_s)
        return trace_of(decision.pod, started_s, now_s, watch.marks)

    def failed(self, profile: str, *, is_error: bool, started_s: float) -> None:
        self._attempted((ERROR if is_error else UNSCHEDULABLE, profile), started_s)

    def scheduled(self, profile: str, queued: QueuedPodInfo, started_s: float, now_s: float) -> None:
        """The pod is bound. How long it took in all follows from the time that is handed in."""
        self._attempted((SCHEDULED, profile), started_s)
        n = queued.attempts
        self.pod_attempts[n] = self.pod_attempts.get(n, 0) + 1
        if queued.initial_attempt_at_s is not None:
            self.pod_duration.observe(now_s - queued.initial_attempt_at_s, attempts_label(n))
        if queued.was_flushed:
            self.n_scheduled_after_flush += 1

    def _attempted(self, labels: LabelValues, started_s: float) -> None:
        self.attempts[labels] = self.attempts.get(labels, 0) + 1
        if self.clock is not None:
            self.attempt_duration.observe(self.clock() - started_s, labels)

    def group_decided(self, started_s: float) -> None:
        if self.clock is not None:
            self.group_algorithm_duration.observe(self.clock() - started_s)

    def group_attempted(self, profile: str, status: Status, waits_for_preemption: bool, started_s: float) -> None:
        if status.is_success:
            result = SCHEDULED
        elif not status.is_rejected:
            result = ERROR
        else:
            result = WAITING_ON_PREEMPTION if waits_for_preemption else UNSCHEDULABLE
        labels = (result, profile)
        self.group_attempts[labels] = self.group_attempts.get(labels, 0) + 1
        if self.clock is not None:
            self.group_duration.observe(self.clock() - started_s, labels)

    # -- on the way ----------------------------------------------------------------------------------------------------

    def event_handled(self, events: tuple[LabelValues, ...], started_s: float) -> None:
        if self.clock is not None:
            for_s = self.clock() - started_s
            for event in events:
                self.event_duration.observe(for_s, event)

    def permit_waited(self, result: Code, for_s: float) -> None:
        self.permit_duration.observe(for_s, (result.value,))

    def measured_hint(self, plugin: str, event: str, hint: HintFunction) -> HintFunction:
        """The same hint, measured."""

        def measured(pod: PodInfo, old: object | None, new: object | None) -> Hint:
            started_s = self.now_s()
            said = "Error"
            try:
                answer = hint(pod, old, new)
                said = answer.value
            finally:
                self.hint_duration.observe(self.now_s() - started_s, (plugin, event, said))
            return answer

        return measured

    def preemption_started(self, n_victims: int) -> float:
        self.victims.observe(n_victims)
        return self.now_s()

    def preemption_ended(self, *, is_error: bool, started_s: float) -> None:
        result = (ERROR if is_error else SUCCESS,)
        self.preemptions[result] += 1
        if self.clock is not None:
            self.preemption_duration.observe(self.clock() - started_s, result)


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
        MetricFamily(definitions.PODGROUP_SCHEDULE_ATTEMPTS, metrics.group_attempts),
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
        metrics.group_duration,
        metrics.group_algorithm_duration,
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
