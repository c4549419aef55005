"""The defaults of Kubernetes 1.36 that depend on more than one field, and the default plugins.

Plain default values stand in the structs themselves. Here: empty text, zero numbers and empty lists that count as
"not given"; the default plugins of every profile; and an entry in `pluginConfig` for every enabled plugin that takes
arguments. Feature gates have their values of 1.36.

Next: `configuration` for how plugins are merged, `load` for when this happens.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from kubesched.scheduler.config.configuration import (
    ALL_PLUGINS,
    ClientConnectionConfiguration,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    PluginConfig,
    PluginRef,
    Plugins,
    PluginSet,
    enabled_names,
    merge_plugins,
)
from kubesched.scheduler.config.feature_gates import GANG_SCHEDULING, TOPOLOGY_AWARE
from kubesched.scheduler.config.plugin_args import (
    ARGS_BY_PLUGIN,
    DEFAULT_RESOURCES,
    SYSTEM_DEFAULTING,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
)

DEFAULT_SCHEDULER_NAME: Final = "default-scheduler"

DEFAULT_PLUGINS: Final = Plugins(
    multi_point=PluginSet(
        enabled=(
            PluginRef("SchedulingGates"),
            PluginRef("PrioritySort"),
            PluginRef("NodeUnschedulable"),
            PluginRef("NodeName"),
            PluginRef("TaintToleration", 3),
            PluginRef("NodeAffinity", 2),
            PluginRef("NodePorts"),
            PluginRef("NodeResourcesFit", 1),
            PluginRef("VolumeRestrictions"),
            PluginRef("NodeVolumeLimits"),
            PluginRef("VolumeBinding"),
            PluginRef("VolumeZone"),
            PluginRef("PodTopologySpread", 2),
            PluginRef("InterPodAffinity", 2),
            # Before DefaultPreemption: giving back an idle claim is better than evicting a pod.
            PluginRef("DynamicResources", 2),
            PluginRef("DefaultPreemption"),
            PluginRef("NodeResourcesBalancedAllocation", 1),
            PluginRef("ImageLocality", 1),
            PluginRef("DefaultBinder"),
            PluginRef("NodeDeclaredFeatures"),
        )
    )
)
"""The plugins of a profile that says nothing, in order."""

GATED_PLUGINS: Final = (
    (GANG_SCHEDULING, PluginRef("GangScheduling")),
    (TOPOLOGY_AWARE, PluginRef("TopologyPlacementGenerator")),
    (TOPOLOGY_AWARE, PluginRef("PodGroupPodsCount", 1)),
)
"""Behind these, with their feature gates."""


def set_defaults(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """The configuration with everything filled in that the file left open."""
    profiles = config.profiles or (KubeSchedulerProfile(DEFAULT_SCHEDULER_NAME),)
    return replace(
        config,
        leader_election=_set_leader_election_defaults(config.leader_election),
        client_connection=_set_client_connection_defaults(config.client_connection),
        profiles=tuple(_set_profile_defaults(profile, config.gates) for profile in profiles),
    )


def default_plugins(gates: Mapping[str, bool]) -> Plugins:
    """The plugins of a profile that says nothing, with these feature gates."""
    added = tuple(plugin for gate, plugin in GATED_PLUGINS if gates.get(gate, False))
    enabled = DEFAULT_PLUGINS.multi_point.enabled
    return Plugins(multi_point=PluginSet(enabled=(*enabled, *added))) if added else DEFAULT_PLUGINS


def with_gates(config: KubeSchedulerConfiguration, gates: Mapping[str, bool]) -> KubeSchedulerConfiguration:
    """The configuration, which has its defaults, as if it had set these feature gates, too."""
    together = {**config.gates, **gates}
    if together == config.gates:
        return config
    profiles = tuple(
        replace(profile, plugins=_with_gated_plugins(profile.plugins, together)) for profile in config.profiles
    )
    return replace(config, feature_gates=together, profiles=profiles)


def _with_gated_plugins(plugins: Plugins, gates: Mapping[str, bool]) -> Plugins:
    """Each where it would stand if it had been a default plugin from the beginning, or gone if its gate is off."""
    given = plugins.multi_point
    if {ALL_PLUGINS} & {plugin.name for plugin in given.disabled}:
        return plugins
    disabled = {plugin.name for plugin in given.disabled}
    defaults = {plugin.name for plugin in DEFAULT_PLUGINS.multi_point.enabled}
    gated = {plugin.name for _, plugin in GATED_PLUGINS}
    kept = [plugin for plugin in given.enabled if plugin.name not in gated]
    place = max((index + 1 for index, plugin in enumerate(kept) if plugin.name in defaults), default=0)
    added = [
        next((own for own in given.enabled if own.name == plugin.name), plugin)
        for gate, plugin in GATED_PLUGINS
        if gates.get(gate, False) and plugin.name not in disabled
    ]
    enabled = (*kept[:place], *added, *kept[place:])
    return replace(plugins, multi_point=PluginSet(enabled, given.disabled))


def _set_leader_election_defaults(given: LeaderElectionConfiguration) -> LeaderElectionConfiguration:
    default = LeaderElectionConfiguration()
    return replace(
        given,
        lease_duration=given.lease_duration if given.lease_duration.nanoseconds else default.lease_duration,
        renew_deadline=given.renew_deadline if given.renew_deadline.nanoseconds else default.renew_deadline,
        retry_period=given.retry_period if given.retry_period.nanoseconds else default.retry_period,
        resource_lock=given.resource_lock or default.resource_lock,
        resource_name=given.resource_name or default.resource_name,
        resource_namespace=given.resource_namespace or default.resource_namespace,
    )


def _set_client_connection_defaults(given: ClientConnectionConfiguration) -> ClientConnectionConfiguration:
    default = ClientConnectionConfiguration()
    return replace(
        given,
        content_type=given.content_type or default.content_type,
        qps=given.qps or default.qps,
        burst=given.burst or default.burst,
    )


def _set_profile_defaults(profile: KubeSchedulerProfile, gates: Mapping[str, bool]) -> KubeSchedulerProfile:
    plugins = merge_plugins(default_plugins(gates), profile.plugins)
    given = tuple(PluginConfig(entry.name, _set_args_defaults(entry.args)) for entry in profile.plugin_config)
    missing = enabled_names(plugins) & ARGS_BY_PLUGIN.keys() - {entry.name for entry in given}
    added = tuple(PluginConfig(name, ARGS_BY_PLUGIN[name]()) for name in sorted(missing))
    return replace(profile, plugins=plugins, plugin_config=given + added)


def _set_args_defaults(args: Any) -> Any:
    match args:
        case NodeResourcesFitArgs():
            strategy = args.scoring_strategy
            return replace(args, scoring_strategy=replace(strategy, resources=_resources(strategy.resources)))
        case NodeResourcesBalancedAllocationArgs():
            return replace(args, resources=_resources(args.resources))
        case PodTopologySpreadArgs():
            return replace(args, defaulting_type=args.defaulting_type or SYSTEM_DEFAULTING)
    return args


def _resources(given: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    return tuple(ResourceSpec(spec.name, spec.weight or 1) for spec in given) or DEFAULT_RESOURCES
