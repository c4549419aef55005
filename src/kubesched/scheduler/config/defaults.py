"""The defaults of Kubernetes 1.36 that depend on more than one field, and the default plugins.

Plain default values stand in the structs themselves. Here: empty text, zero numbers and empty lists that count as
"not given"; the default plugins of every profile; and an entry in `pluginConfig` for every enabled plugin that takes
arguments. Feature gates have their values of 1.36.

Next: `profile` for how plugins are merged, `load` for when this happens.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from kubesched.scheduler.config.configuration import (
    ClientConnectionConfiguration,
    KubeSchedulerConfiguration,
    LeaderElectionConfiguration,
)
from kubesched.scheduler.config.plugin_args import (
    ARGS_BY_PLUGIN,
    DEFAULT_RESOURCES,
    SYSTEM_DEFAULTING,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
)
from kubesched.scheduler.config.profile import (
    KubeSchedulerProfile,
    PluginConfig,
    PluginRef,
    Plugins,
    PluginSet,
    enabled_names,
    merge_plugins,
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


def set_defaults(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """The configuration with everything filled in that the file left open."""
    profiles = config.profiles or (KubeSchedulerProfile(DEFAULT_SCHEDULER_NAME),)
    return replace(
        config,
        leader_election=_set_leader_election_defaults(config.leader_election),
        client_connection=_set_client_connection_defaults(config.client_connection),
        profiles=tuple(_set_profile_defaults(profile) for profile in profiles),
    )


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


def _set_profile_defaults(profile: KubeSchedulerProfile) -> KubeSchedulerProfile:
    plugins = merge_plugins(DEFAULT_PLUGINS, profile.plugins)
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
