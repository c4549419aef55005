"""From today's configuration and plugins to those of v1.37: the order, the feature gates, and what each plugin does.

Plugins from outside run with it as they do today.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from msgspec.structs import replace

from kubesched.framework.groups import GroupFeatures
from kubesched.framework.handle import Registry
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.config import KubeSchedulerConfiguration, PluginSet
from kubesched.scheduler.config.configuration import KubeSchedulerProfile
from kubesched.scheduler.config.defaults import with_gates
from kubesched.scheduler.config.feature_gates import (
    GANG_SCHEDULING,
    GENERIC_WORKLOAD,
    NEXT_VERSION,
    WORKLOAD_AWARE_PREEMPTION,
)
from kubesched.scheduler.engine.group_cycle import GroupCycles
from kubesched.scheduler.newer.groups import NewerGroupCycles
from kubesched.scheduler.newer.plugins import (
    NewerDefaultPreemption,
    NewerDynamicResources,
    NewerImageLocality,
    NewerInterPodAffinity,
    NewerNodeName,
    NewerNodeVolumeLimits,
    NewerVolumeBinding,
)
from kubesched.scheduler.newer.queue import GroupQueue, NewerQueue
from kubesched.scheduler.plugins.node_name import NodeName
from kubesched.scheduler.plugins.node_unschedulable import NodeUnschedulable
from kubesched.scheduler.queue import QueueProfile, QueueSettings, SchedulingQueue
from kubesched.scheduler.queue.hints import MeasuredHint

_PLUGINS = (
    NewerDefaultPreemption,
    NewerDynamicResources,
    NewerImageLocality,
    NewerInterPodAffinity,
    NewerNodeName,
    NewerNodeVolumeLimits,
    NewerVolumeBinding,
)


def registry_as_emulated(registry: Registry, config: KubeSchedulerConfiguration) -> Registry:
    """With the plugins of v1.37 in the place of today's, if that is emulated; others stay."""
    if config.emulate != NEXT_VERSION:
        return registry
    newer = {plugin.name: plugin for plugin in _PLUGINS if registry.get(plugin.name) in plugin.__bases__}
    return Registry({**registry, **newer})


def configuration_as_emulated(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """In v1.37 gangs and preemption by groups are part of pod groups, and NodeName filters first."""
    if config.emulate != NEXT_VERSION:
        return config
    if config.gates.get(GENERIC_WORKLOAD):
        config = with_gates(config, {GANG_SCHEDULING: True, WORKLOAD_AWARE_PREEMPTION: True})
    return replace(config, profiles=tuple(map(_with_node_name_first, config.profiles)))


def group_cycles_as_emulated(config: KubeSchedulerConfiguration) -> type[GroupCycles]:
    return NewerGroupCycles if config.emulate == NEXT_VERSION else GroupCycles


def queue_as_emulated(
    config: KubeSchedulerConfiguration,
    features: GroupFeatures | None,
    cluster: Cluster,
    settings: QueueSettings,
    profiles: Mapping[str, QueueProfile],
    measured_hint: MeasuredHint | None,
) -> SchedulingQueue:
    if config.emulate != NEXT_VERSION:
        return SchedulingQueue(settings, profiles, measured_hint)
    if features is None or not features.groups:
        return NewerQueue(settings, profiles, measured_hint)
    return GroupQueue(settings, profiles, measured_hint, cluster.objects.pod_groups)


def _with_node_name_first(profile: KubeSchedulerProfile) -> KubeSchedulerProfile:
    """Where both stand as the defaults have them, one after the other."""
    everywhere = profile.plugins.multi_point
    names = [plugin.name for plugin in everywhere.enabled]
    for at, pair in enumerate(pairwise(names)):
        if pair == (NodeUnschedulable.name, NodeName.name):
            order = list(everywhere.enabled)
            order[at], order[at + 1] = order[at + 1], order[at]
            changed = PluginSet(tuple(order), everywhere.disabled)
            return replace(profile, plugins=replace(profile.plugins, multi_point=changed))
    return profile
