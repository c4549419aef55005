"""The table of older plugins: what `EmulatedPlugin.kind` stands for.

One of them is made of others: GeneralPredicates of 1.14 are four checks as one predicate, which tells the reasons of
all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.extension_points import Plugin
from kubesched.framework.handle import Handle
from kubesched.framework.nodes import NodeInfo
from kubesched.framework.pod_info import PodInfo
from kubesched.older.config import EmulatedPlugin, Generation
from kubesched.older.plugins.inter_pod_affinity import OlderInterPodAffinity
from kubesched.older.plugins.node_checks import (
    CheckNodeCondition,
    CheckNodePressure,
    NodeLabel,
    NodePreferAvoidPods,
    OlderImageLocality,
    OlderNodeAffinity,
    OlderNodeName,
    OlderNodePorts,
    OlderNodeUnschedulable,
    OlderTaintToleration,
)
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
from kubesched.older.plugins.rejection import Reason, ReasonedFilter
from kubesched.older.plugins.selector_spread import SelectorSpread
from kubesched.older.plugins.service_affinity import ServiceAffinity
from kubesched.older.plugins.volume_binding import OlderVolumeBinding
from kubesched.older.plugins.volumes import DISK_KINDS, CSILimits, DiskLimits, OlderVolumeRestrictions, OlderVolumeZone

_PARTS = (OlderNodeResourcesFit, OlderNodeName, OlderNodePorts, OlderNodeAffinity)


class GeneralPredicates(ReasonedFilter):
    def __init__(self, name: str, args: Mapping[str, Any], handle: Handle, generation: Generation) -> None:
        super().__init__(name, args, handle, generation)
        self._parts: list[ReasonedFilter] = [part(name, args, handle, generation) for part in _PARTS]

    def reasons(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Sequence[Reason]:
        return [reason for part in self._parts for reason in part.reasons(cycle, pod, node)]


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
