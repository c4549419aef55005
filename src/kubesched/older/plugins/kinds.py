"""The table of older plugins: what `EmulatedPlugin.kind` stands for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from kubesched.framework.extension_points import Plugin
from kubesched.framework.handle import Handle
from kubesched.older.config import EmulatedPlugin, Generation
from kubesched.older.plugins.attached_volumes import DISK_KINDS, CSILimits, DiskLimits
from kubesched.older.plugins.general_predicates import GeneralPredicates
from kubesched.older.plugins.image_locality import OlderImageLocality
from kubesched.older.plugins.inter_pod_affinity import OlderInterPodAffinity
from kubesched.older.plugins.node_affinity import OlderNodeAffinity, OlderTaintToleration
from kubesched.older.plugins.node_checks import (
    CheckNodeCondition,
    CheckNodePressure,
    OlderNodeName,
    OlderNodePorts,
    OlderNodeUnschedulable,
)
from kubesched.older.plugins.node_label import NodeLabel
from kubesched.older.plugins.node_resources import (
    EqualPriority,
    NodeResourceLimits,
    NodeResourcesLeastAllocated,
    NodeResourcesMostAllocated,
    OlderBalancedAllocation,
    OlderNodeResourcesFit,
    RequestedToCapacityRatio,
)
from kubesched.older.plugins.pod_topology_spread import OlderPodTopologySpread
from kubesched.older.plugins.prefer_avoid_pods import NodePreferAvoidPods
from kubesched.older.plugins.selector_spread import SelectorSpread
from kubesched.older.plugins.service_affinity import ServiceAffinity
from kubesched.older.plugins.volume_binding import OlderVolumeBinding
from kubesched.older.plugins.volumes import OlderVolumeRestrictions, OlderVolumeZone

OlderFactory = Callable[[str, Mapping[str, Any], Handle, Generation], Plugin]

KINDS: Mapping[str, OlderFactory] = {
    "CheckNodeCondition": CheckNodeCondition,
    "CheckNodeMemoryPressure": CheckNodePressure,
    "CheckNodePIDPressure": CheckNodePressure,
    "CheckNodeDiskPressure": CheckNodePressure,
    "GeneralPredicates": GeneralPredicates,
    "NodeUnschedulable": OlderNodeUnschedulable,
    "NodeResourcesFit": OlderNodeResourcesFit,
    "NodeName": OlderNodeName,
    "NodePorts": OlderNodePorts,
    "NodeAffinity": OlderNodeAffinity,
    "VolumeRestrictions": OlderVolumeRestrictions,
    "TaintToleration": OlderTaintToleration,
    "NodeLabel": NodeLabel,
    "ServiceAffinity": ServiceAffinity,
    **{name: partial(DiskLimits, kind=kind) for name, kind in DISK_KINDS.items()},
    "NodeVolumeLimits": CSILimits,
    "VolumeBinding": OlderVolumeBinding,
    "VolumeZone": OlderVolumeZone,
    "PodTopologySpread": OlderPodTopologySpread,
    "InterPodAffinity": OlderInterPodAffinity,
    "NodeResourcesBalancedAllocation": OlderBalancedAllocation,
    "ImageLocality": OlderImageLocality,
    "NodeResourcesLeastAllocated": NodeResourcesLeastAllocated,
    "NodeResourcesMostAllocated": NodeResourcesMostAllocated,
    "NodePreferAvoidPods": NodePreferAvoidPods,
    "SelectorSpread": SelectorSpread,
    "RequestedToCapacityRatio": RequestedToCapacityRatio,
    "NodeResourceLimits": NodeResourceLimits,
    "EqualPriority": EqualPriority,
}


def build_plugin(wanted: EmulatedPlugin, handle: Handle, generation: Generation) -> Plugin:
    return KINDS[wanted.kind](wanted.name, wanted.args, handle, generation)
