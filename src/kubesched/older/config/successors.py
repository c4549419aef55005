"""Plugins that are gone: what took their place, or what to do instead."""

from __future__ import annotations

from collections.abc import Mapping

STRATEGIES: Mapping[str, str] = {
    "NodeResourcesLeastAllocated": "LeastAllocated",
    "NodeResourcesMostAllocated": "MostAllocated",
    "RequestedToCapacityRatio": "RequestedToCapacityRatio",
}
"""Score plugins that are scoring strategies of NodeResourcesFit today."""

DISK_LIMITS = ("EBSLimits", "GCEPDLimits", "AzureDiskLimits", "CinderLimits")
"""Filters whose work NodeVolumeLimits does, for all drivers."""

SPREADING = ("SelectorSpread", "DefaultPodTopologySpread")
"""One plugin under two names, whose work PodTopologySpread does by its default constraints."""

GONE: Mapping[str, str] = {
    "ServiceAffinity": "use pod affinity in the pods of the service instead",
    "NodePreferAvoidPods": "the annotation that it went by is gone; taint such nodes",
    "NodeResourceLimits": "limits are not scored any more",
}
"""Why there is no successor, or what helps."""
