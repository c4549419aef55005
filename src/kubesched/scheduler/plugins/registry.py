"""The in-tree plugins: factories by name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from kubesched.framework.extension_points import extension_points_of
from kubesched.framework.handle import Registry
from kubesched.scheduler.plugins.default_binder import DefaultBinder
from kubesched.scheduler.plugins.default_preemption import DefaultPreemption
from kubesched.scheduler.plugins.dynamic_resources import DynamicResources
from kubesched.scheduler.plugins.dynamic_resources.allocator import SharedDevices
from kubesched.scheduler.plugins.gang_scheduling import GangScheduling
from kubesched.scheduler.plugins.image_locality import ImageLocality
from kubesched.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from kubesched.scheduler.plugins.node_affinity import NodeAffinity
from kubesched.scheduler.plugins.node_declared_features import NodeDeclaredFeatures
from kubesched.scheduler.plugins.node_name import NodeName
from kubesched.scheduler.plugins.node_ports import NodePorts
from kubesched.scheduler.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from kubesched.scheduler.plugins.node_resources_fit import NodeResourcesFit
from kubesched.scheduler.plugins.node_unschedulable import NodeUnschedulable
from kubesched.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from kubesched.scheduler.plugins.pod_group_pods_count import PodGroupPodsCount
from kubesched.scheduler.plugins.pod_topology_spread import PodTopologySpread
from kubesched.scheduler.plugins.priority_sort import PrioritySort
from kubesched.scheduler.plugins.scheduling_gates import SchedulingGates
from kubesched.scheduler.plugins.taint_toleration import TaintToleration
from kubesched.scheduler.plugins.topology_placement_generator import TopologyPlacementGenerator
from kubesched.scheduler.plugins.volume_binding import VolumeBinding
from kubesched.scheduler.plugins.volume_restrictions import VolumeRestrictions
from kubesched.scheduler.plugins.volume_zone import VolumeZone

_IN_TREE = (
    SchedulingGates,
    PrioritySort,
    NodeUnschedulable,
    NodeName,
    TaintToleration,
    NodeAffinity,
    NodePorts,
    NodeResourcesFit,
    VolumeRestrictions,
    NodeVolumeLimits,
    VolumeBinding,
    VolumeZone,
    PodTopologySpread,
    InterPodAffinity,
    DynamicResources,
    DefaultPreemption,
    NodeResourcesBalancedAllocation,
    ImageLocality,
    DefaultBinder,
    NodeDeclaredFeatures,
    GangScheduling,
    TopologyPlacementGenerator,
    PodGroupPodsCount,
)

REGISTRY = Registry({plugin.name: plugin for plugin in _IN_TREE})


def capabilities(registry: Mapping[str, object] = REGISTRY) -> dict[str, frozenset[str]]:
    """The extension points that each plugin takes part in, by the plugin's name."""
    return {name: extension_points_of(_plugin_class(factory)) for name, factory in registry.items()}


def _plugin_class(factory: object) -> object:
    """A factory is the class itself, a `partial` of it, or an object that knows it."""
    return factory.func if isinstance(factory, partial) else getattr(factory, "plugin_class", factory)


def with_shared_devices(registry: Registry) -> Registry:
    """The same plugins, of which those of all profiles see each other's device allocations that are not written yet."""
    plugin = registry.get(DynamicResources.name)
    if not (isinstance(plugin, type) and issubclass(plugin, DynamicResources)):
        return registry
    shared = SharedDevices()
    others = {name: factory for name, factory in registry.items() if name != DynamicResources.name}
    return Registry({**others, DynamicResources.name: partial(plugin, shared=shared)})
