"""An emulation as the engine takes it: schedulers, metrics, queue and words of a version in the place of today's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kubesched.older.config import Emulation
from kubesched.older.engine.build import build_older_schedulers
from kubesched.older.engine.metrics.measured import OlderMetrics
from kubesched.older.engine.queue import QueueOfThen
from kubesched.older.engine.scheduler import OlderScheduler
from kubesched.older.engine.words import speak_as_of_then
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.engine.metrics.loop_metrics import LoopMetrics
from kubesched.scheduler.engine.metrics.timing import Clock, ExtensionPointWatch
from kubesched.scheduler.engine.observations import Observers
from kubesched.scheduler.engine.score import TieBreak
from kubesched.scheduler.queue import QueueProfile, QueueSettings, SchedulingQueue
from kubesched.scheduler.queue.hints import MeasuredHint


@dataclass(frozen=True, slots=True)
class OlderVariant:
    emulation: Emulation

    def build_schedulers(
        self,
        cluster: Cluster,
        tie_break: TieBreak,
        *,
        percentage: int | None,
        watch: ExtensionPointWatch | None,
        observers: Observers,
    ) -> Mapping[str, OlderScheduler]:
        return build_older_schedulers(
            cluster, self.emulation, tie_break, percentage=percentage, watch=watch, observers=observers
        )

    def make_metrics(self, clock: Clock | None) -> LoopMetrics:
        return OlderMetrics(clock, self.emulation.generation)

    def make_queue(
        self, settings: QueueSettings, profiles: Mapping[str, QueueProfile], measured_hint: MeasuredHint | None
    ) -> SchedulingQueue:
        return QueueOfThen(settings, profiles, measured_hint)

    def complete(self, loop: Scheduler) -> None:
        speak_as_of_then(loop, self.emulation.generation)


def variant_of(emulation: Emulation | None) -> OlderVariant | None:
    """None stands for today's scheduler."""
    return None if emulation is None else OlderVariant(emulation)
