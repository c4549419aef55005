"""From an emulation to schedulers that decide, one per profile, over one cluster; and to all that the engine takes.

A variant puts schedulers, metrics, queue and words of a version in the place of today's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.extension_points import Plugin, PreBind, PreFilter, PreFilterExtensions, PreScore, Reserve
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.results import NodeStatuses, PostFilterResult
from kubesched.older.config import EmulatedPlugin, EmulatedProfile, Emulation, Generation
from kubesched.older.engine.metrics.measured import OlderMetrics
from kubesched.older.engine.preemption import Attempt, OlderPreemption, PreemptionOfThen
from kubesched.older.engine.scheduler import OlderScheduler, QueueOfThen, speak_as_of_then
from kubesched.older.plugins.kinds import build_plugin
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.handle import EngineHandle, LoopState
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.engine.metrics.loop_metrics import LoopMetrics
from kubesched.scheduler.engine.metrics.timing import Clock, ExtensionPointWatch
from kubesched.scheduler.engine.observations import Observers
from kubesched.scheduler.engine.profile import Profile, filter_step, score_step
from kubesched.scheduler.engine.score import TieBreak
from kubesched.scheduler.plugins.default_binder import DefaultBinder
from kubesched.scheduler.plugins.priority_sort import PrioritySort
from kubesched.scheduler.queue import QueueProfile, QueueSettings, SchedulingQueue
from kubesched.scheduler.queue.hints import MeasuredHint


def build_older_schedulers(
    cluster: Cluster,
    emulation: Emulation,
    tie_break: TieBreak,
    *,
    percentage: int | None = None,
    watch: ExtensionPointWatch | None = None,
    observers: Observers | None = None,
    state: LoopState | None = None,
) -> dict[str, OlderScheduler]:
    """Schedulers by scheduler name. `percentage` stands in where the configuration leaves the share of nodes open."""
    share = emulation.config.percentage_of_nodes_to_score or percentage or 0
    schedulers = {}
    for emulated in emulation.profiles:
        handle = EngineHandle(cluster, tie_break, state)
        preemption = PreemptionOfThen(_attempt(cluster, emulation.generation, tie_break), handle)
        profile = replace(_build_profile(emulated, emulation.generation, handle, preemption), watch=watch)
        if observers is not None:
            profile = replace(profile, observers=observers)
        schedulers[emulated.scheduler_name] = OlderScheduler(
            cluster, profile, tie_break, share, handle, generation=emulation.generation, emulated=emulated
        )
    return schedulers


def _attempt(cluster: Cluster, generation: Generation, tie_break: TieBreak) -> Attempt:
    def attempt(cycle: CycleState, pod: PodInfo, statuses: NodeStatuses) -> PostFilterResult:
        return OlderPreemption(cluster, cycle.get(Profile), tie_break, generation).attempt(cycle, pod, statuses)

    return attempt


def _build_profile(
    emulated: EmulatedProfile, generation: Generation, handle: EngineHandle, preemption: PreemptionOfThen
) -> Profile:
    """A plugin that filters and scores under one name, with one set of arguments, is one object."""
    known: list[tuple[EmulatedPlugin, Plugin]] = []

    def built(wanted: EmulatedPlugin) -> Plugin:
        for other, plugin in known:
            if (other.kind, other.name, other.args) == (wanted.kind, wanted.name, wanted.args):
                return plugin
        plugin = build_plugin(wanted, handle, generation)
        known.append((wanted, plugin))
        return plugin

    filters = [built(wanted) for wanted in emulated.filters]
    scores = [(built(wanted), wanted.weight) for wanted in emulated.scores]
    binder = DefaultBinder(None, handle)
    sort = PrioritySort(None, handle)
    plugins: Sequence[Plugin] = [*filters, *(plugin for plugin, _ in scores), binder, sort, preemption]
    return Profile(
        scheduler_name=emulated.scheduler_name,
        percentage_of_nodes_to_score=None,
        plugins={plugin.name: plugin for plugin in reversed(plugins)},
        pre_enqueue=[preemption],
        queue_sort=[sort],
        pre_filter=[plugin for plugin in filters if isinstance(plugin, PreFilter)],
        pre_filter_extensions=[plugin for plugin in filters if isinstance(plugin, PreFilterExtensions)],
        filter=[filter_step(plugin) for plugin in filters],
        post_filter=[preemption] if emulated.preempts else [],
        pre_score=[plugin for plugin, _ in scores if isinstance(plugin, PreScore)],
        score=[score_step(plugin, weight) for plugin, weight in scores],
        reserve=[plugin for plugin in filters if isinstance(plugin, Reserve)],
        permit=[],
        pre_bind=[plugin for plugin in filters if isinstance(plugin, PreBind)],
        bind=[binder],
        post_bind=[],
        emitters=[],
        followers={},
    )


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
        state: LoopState | None,
    ) -> Mapping[str, OlderScheduler]:
        return build_older_schedulers(
            cluster, self.emulation, tie_break, percentage=percentage, watch=watch, observers=observers, state=state
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
