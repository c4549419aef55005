"""From a configuration to schedulers that decide: one per profile, over one cluster; new plugins for a loop that runs.

When plugins are reloaded, the cluster, the queue and all bindings under way stay. In-tree plugins stay the objects that
they are: they know what is reserved and not yet written. Plugins from outside are made anew. Nothing changes unless all
of them can be.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

from kubesched.framework.events import EVERY_CHANGE
from kubesched.framework.extension_points import Plugin
from kubesched.framework.handle import Handle, Registry
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.config import KubeSchedulerConfiguration, resolve_profiles
from kubesched.scheduler.config.feature_gates import group_features
from kubesched.scheduler.engine.cycle import ProfileScheduler
from kubesched.scheduler.engine.enqueue import checked_gate, checked_pre_enqueue
from kubesched.scheduler.engine.extender import EXTENDER, build_extenders
from kubesched.scheduler.engine.handle import EngineHandle, LoopState
from kubesched.scheduler.engine.loop import Scheduler
from kubesched.scheduler.engine.metrics.loop_metrics import LoopMetrics
from kubesched.scheduler.engine.metrics.timing import Clock, ExtensionPointWatch
from kubesched.scheduler.engine.observations import Observers
from kubesched.scheduler.engine.profile import Profile, build_profile
from kubesched.scheduler.engine.score import TieBreak
from kubesched.scheduler.engine.self_check import AnswerLimit
from kubesched.scheduler.newer.version import (
    configuration_as_emulated,
    group_cycles_as_emulated,
    queue_as_emulated,
    registry_as_emulated,
    track_forest_as_emulated,
)
from kubesched.scheduler.plugins import registry as in_tree
from kubesched.scheduler.queue import QueueProfile, QueueSettings, SchedulingQueue, registered_events
from kubesched.scheduler.queue.hints import MeasuredHint


class Variant(Protocol):
    """Another scheduler in the place of today's, made of the same kinds of parts."""

    def build_schedulers(
        self,
        cluster: Cluster,
        tie_break: TieBreak,
        *,
        percentage: int | None,
        watch: ExtensionPointWatch | None,
        observers: Observers,
        state: LoopState | None,
    ) -> Mapping[str, ProfileScheduler]:
        """By scheduler name."""
        ...

    def make_metrics(self, clock: Clock | None) -> LoopMetrics: ...

    def make_queue(
        self, settings: QueueSettings, profiles: Mapping[str, QueueProfile], measured_hint: MeasuredHint | None
    ) -> SchedulingQueue: ...

    def complete(self, loop: Scheduler) -> None:
        """Puts its words in the place of today's."""
        ...


def build_schedulers(
    cluster: Cluster,
    config: KubeSchedulerConfiguration,
    tie_break: TieBreak,
    *,
    registry: Registry | None = None,
    percentage: int | None = None,
    keeps_classes: bool = False,
    watch: ExtensionPointWatch | None = None,
    observers: Observers | None = None,
    source: str = "",
    variant: Variant | None = None,
    state: LoopState | None = None,
) -> dict[str, ProfileScheduler]:
    """Schedulers by scheduler name. `percentage` stands in where the configuration leaves the share of nodes open;
    `keeps_classes` makes pods with the same signature cheap, and pays when many pods are decided. A `variant` builds
    them in its own way, from profiles of its own. A loop gives its `state`, for plugins to ask about."""
    if variant is not None:
        own = variant.build_schedulers(
            cluster, tie_break, percentage=percentage, watch=watch, observers=observers or Observers(), state=state
        )
        return {**own}
    plugins = in_tree.REGISTRY if registry is None else registry
    config, plugins = configuration_as_emulated(config), registry_as_emulated(plugins, config)
    plugins = in_tree.with_shared_devices(plugins)
    features = group_features(config.gates, config.emulate)
    schedulers = {}
    for resolved in resolve_profiles(config, in_tree.capabilities(plugins), source):
        handle = EngineHandle(cluster, tie_break, state, features)
        profile = build_profile(resolved, plugins, handle, watch, observers)
        share = profile.percentage_of_nodes_to_score
        if share is None:
            share = config.percentage_of_nodes_to_score
        if not share and percentage is not None:
            share = percentage
        schedulers[profile.scheduler_name] = ProfileScheduler(
            cluster, profile, tie_break, share or 0, handle, keeps_classes=keeps_classes
        )
    if features.groups and cluster.groups is None:
        cluster.track_groups(schedulers.keys())
    track_forest_as_emulated(config, features, cluster)
    return schedulers


def build_loop(
    config: KubeSchedulerConfiguration,
    tie_break: TieBreak,
    *,
    registry: Registry | None = None,
    percentage: int | None = None,
    max_unschedulable_s: float = 300.0,
    keeps_classes: bool = True,
    clock: Clock | None = None,
    source: str = "",
    variant: Variant | None = None,
    answer_limit: AnswerLimit | None = None,
) -> Scheduler:
    """A loop over a cluster of which nothing is known yet. With a clock (seconds that only ever grow), it measures how
    long things take; decisions do not depend on it. With an `answer_limit`, it looks for effects without an answer."""
    metrics = LoopMetrics(clock) if variant is None else variant.make_metrics(clock)
    cluster = Cluster()
    state = LoopState(cluster)
    observers = Observers()
    schedulers = build_schedulers(
        cluster,
        config,
        tie_break,
        registry=registry,
        percentage=percentage,
        keeps_classes=keeps_classes,
        watch=metrics.watch,
        observers=observers,
        source=source,
        variant=variant,
        state=state,
    )
    settings = QueueSettings(
        initial_backoff_s=config.pod_initial_backoff_seconds,
        max_backoff_s=config.pod_max_backoff_seconds,
        max_unschedulable_s=max_unschedulable_s,
    )
    extenders = build_extenders(config.extenders)
    profiles = {name: queue_profile(s.profile, has_extenders=bool(extenders)) for name, s in schedulers.items()}
    measured_hint = None if clock is None else metrics.measured_hint
    groups = configuration_as_emulated(config)
    features = None if variant is not None else group_features(groups.gates, groups.emulate)
    if variant is not None:
        queue = variant.make_queue(settings, profiles, measured_hint)
    else:
        queue = queue_as_emulated(config, features, cluster, settings, profiles, measured_hint)
    if features is not None and features.groups:
        for scheduler in schedulers.values():
            scheduler.has_only_in_tree_plugins = is_in_tree(scheduler)
        cluster.signatures.ignores_groups = all(one.has_only_in_tree_plugins for one in schedulers.values())
    loop = Scheduler(
        cluster,
        state,
        schedulers,
        queue,
        extenders,
        metrics,
        answer_limit,
        observers,
        features,
        group_cycles_as_emulated(config),
    )
    for scheduler in schedulers.values():
        scheduler.compares_nodes |= any(extender.compares_nodes for extender in extenders)
    if variant is not None:
        variant.complete(loop)
    return loop


def is_in_tree(scheduler: ProfileScheduler) -> bool:
    """Whether all its plugins are ours, none of which looks at which pod group a pod names when it seeks a node."""
    return all(in_tree.REGISTRY.get(name) is type(plugin) for name, plugin in scheduler.profile.plugins.items())


def queue_profile(profile: Profile, *, has_extenders: bool) -> QueueProfile:
    """What the queue needs to know of a profile."""
    events = registered_events(profile.plugins.values())
    if has_extenders:
        events[EXTENDER] = EVERY_CHANGE
    return QueueProfile(
        sort_key=profile.queue_sort[0].sort_key,
        pre_enqueue=partial(checked_pre_enqueue, profile),
        events=events,
        gates={plugin.name: partial(checked_gate, plugin) for plugin in profile.pre_enqueue},
    )


def reload_plugins(
    loop: Scheduler, config: KubeSchedulerConfiguration, registry: Registry, now_s: float, source: str = ""
) -> None:
    """`config` is the one that the loop was built from, `registry` has the new plugins. Raises `ConfigError`, and then
    all is as before."""
    profiles: dict[str, Profile] = {}
    for resolved in resolve_profiles(config, in_tree.capabilities(registry), source):
        scheduler = loop.schedulers[resolved.scheduler_name]
        assert scheduler.handle is not None
        kept = _with_objects_of(scheduler.profile, registry)
        watch, observers = scheduler.profile.watch, scheduler.profile.observers
        profiles[resolved.scheduler_name] = build_profile(resolved, kept, scheduler.handle, watch, observers)
    has_extenders = bool(loop.extenders)
    queue_profiles = {name: queue_profile(profile, has_extenders=has_extenders) for name, profile in profiles.items()}
    for name, profile in profiles.items():
        loop.schedulers[name].take_profile(profile)
    loop.metrics.profiles_changed()
    loop.queue.take_profiles(queue_profiles, now_s)


def _with_objects_of(profile: Profile, registry: Registry) -> Registry:
    """The same plugins, of which those in-tree are the objects that the profile has."""
    known = {name: partial(_the_same, plugin) for name, plugin in profile.plugins.items() if name in in_tree.REGISTRY}
    return Registry({**registry, **known})


def _the_same(plugin: Plugin, _args: Any, _handle: Handle) -> Plugin:
    return plugin
