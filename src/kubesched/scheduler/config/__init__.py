"""KubeSchedulerConfiguration `kubescheduler.config.k8s.io/v1`, as kube-scheduler v1.36 has it.

`load` and `default` give a configuration, `to_manifest` and `to_yaml` write it out, `resolve` and `resolve_profiles`
say which plugins run where. Validation errors are `ConfigError`s that carry every one of them.

Next: `load`, which tells the story.
"""

from __future__ import annotations

from kubesched.k8s.model.times import Duration, DurationError
from kubesched.scheduler.config.configuration import (
    EXTENSION_POINTS,
    ClientConnectionConfiguration,
    ExtenderConfiguration,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    PluginConfig,
    PluginRef,
    Plugins,
    PluginSet,
    to_manifest,
    to_yaml,
)
from kubesched.scheduler.config.errors import ConfigError, FieldError
from kubesched.scheduler.config.load import default, load
from kubesched.scheduler.config.plugin_args import (
    ARGS_BY_PLUGIN,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from kubesched.scheduler.config.resolve import Capabilities, ResolvedPlugin, ResolvedProfile, resolve, resolve_profiles

__all__ = [
    "ARGS_BY_PLUGIN",
    "EXTENSION_POINTS",
    "Capabilities",
    "ClientConnectionConfiguration",
    "ConfigError",
    "DefaultPreemptionArgs",
    "Duration",
    "DurationError",
    "DynamicResourcesArgs",
    "ExtenderConfiguration",
    "ExtenderManagedResource",
    "ExtenderTLSConfig",
    "FieldError",
    "InterPodAffinityArgs",
    "KubeSchedulerConfiguration",
    "KubeSchedulerProfile",
    "LeaderElectionConfiguration",
    "NodeAffinityArgs",
    "NodeResourcesBalancedAllocationArgs",
    "NodeResourcesFitArgs",
    "PluginArgs",
    "PluginConfig",
    "PluginRef",
    "PluginSet",
    "Plugins",
    "PodTopologySpreadArgs",
    "RequestedToCapacityRatioParam",
    "ResolvedPlugin",
    "ResolvedProfile",
    "ResourceSpec",
    "ScoringStrategy",
    "UtilizationShapePoint",
    "VolumeBindingArgs",
    "default",
    "load",
    "resolve",
    "resolve_profiles",
    "to_manifest",
    "to_yaml",
]
