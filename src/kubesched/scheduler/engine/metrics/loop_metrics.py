"""What the loop counts and measures as it goes. It stands on the path of every pod: a few dictionary steps each.

Next: `collect`, which brings it into the form of the definitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from kubesched.framework.events import Hint, HintFunction
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Code
from kubesched.scheduler.engine.cycle import Decision
from kubesched.scheduler.engine.metrics import definitions
from kubesched.scheduler.engine.metrics.evaluations import Evaluations
from kubesched.scheduler.engine.metrics.extension_point_watch import Clock, ExtensionPointWatch
from kubesched.scheduler.engine.metrics.series import HistogramSeries, LabelValues, MetricFamily
from kubesched.scheduler.engine.metrics.timed_plugins import SAMPLE_EVERY, timed_profile
from kubesched.scheduler.engine.metrics.traces import Trace, trace_of
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.queue import QueuedPodInfo

SCHEDULED = "scheduled"
UNSCHEDULABLE = "unschedulable"
ERROR = "error"
SUCCESS = "success"

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
        self._timed_profiles: dict[str, Profile] = {}
        self._n_cycles = 0

    def shown(self, found: Mapping[str, MetricFamily]) -> list[MetricFamily]:
        """The metrics by name that were collected, in the form in which they are told."""
        return [found[definition.name] for definition in definitions.DEFINITIONS]

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
        """The pod is bound. How long it took in all is told by the time that is handed in."""
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
