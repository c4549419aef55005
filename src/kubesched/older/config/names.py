"""The names of old: predicates and priorities, what does their work, and the sets that ran by default.

The work is done by plugins (`kubesched.older.plugins`), which from 1.17 on lend their names to answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubesched.older.config.generations import (
    EVEN_PODS_SPREAD,
    RESOURCE_LIMITS,
    TAINT_NODES_BY_CONDITION,
    Generation,
    OlderGates,
)
from kubesched.older.config.policy import PredicatePolicy, PriorityPolicy
from kubesched.scheduler.config.errors import ErrorList

GENERAL_PREDICATES = "GeneralPredicates"
CINDER_LIMITS = "MaxCinderVolumeCount"
LABEL_PRESENCE = "CheckNodeLabelPresence"
SERVICE_AFFINITY = "CheckServiceAffinity"
EVEN_PODS_SPREAD_PREDICATE = "EvenPodsSpread"
POD_FITS_PORTS = "PodFitsPorts"
EQUAL_PRIORITY = "EqualPriority"
EVEN_PODS_SPREAD_PRIORITY = "EvenPodsSpreadPriority"
RATIO_PRIORITY = "RequestedToCapacityRatioPriority"
RESOURCE_LIMITS_PRIORITY = "ResourceLimitsPriority"
SELECTOR_SPREAD_PRIORITY = "SelectorSpreadPriority"
SERVICE_SPREADING_PRIORITY = "ServiceSpreadingPriority"

_CONDITION_PREDICATES = (
    "CheckNodeCondition",
    "CheckNodeMemoryPressure",
    "CheckNodePIDPressure",
    "CheckNodeDiskPressure",
)

PLUGINS_OF_PREDICATES: dict[str, tuple[str, ...]] = {
    "CheckNodeCondition": ("CheckNodeCondition",),
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    GENERAL_PREDICATES: ("NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"),
    "HostName": ("NodeName",),
    "PodFitsHostPorts": ("NodePorts",),
    "MatchNodeSelector": ("NodeAffinity",),
    "PodFitsResources": ("NodeResourcesFit",),
    "NoDiskConflict": ("VolumeRestrictions",),
    "PodToleratesNodeTaints": ("TaintToleration",),
    LABEL_PRESENCE: ("NodeLabel",),
    SERVICE_AFFINITY: ("ServiceAffinity",),
    "MaxEBSVolumeCount": ("EBSLimits",),
    "MaxGCEPDVolumeCount": ("GCEPDLimits",),
    "MaxCSIVolumeCountPred": ("NodeVolumeLimits",),
    "MaxAzureDiskVolumeCount": ("AzureDiskLimits",),
    CINDER_LIMITS: ("CinderLimits",),
    "CheckVolumeBinding": ("VolumeBinding",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "CheckNodeMemoryPressure": ("CheckNodeMemoryPressure",),
    "CheckNodePIDPressure": ("CheckNodePIDPressure",),
    "CheckNodeDiskPressure": ("CheckNodeDiskPressure",),
    EVEN_PODS_SPREAD_PREDICATE: ("PodTopologySpread",),
    "MatchInterPodAffinity": ("InterPodAffinity",),
}
"""In the order in which predicates were evaluated, whatever the order in a Policy."""

NO_EXECUTE_TAINTS = "PodToleratesNodeNoExecuteTaints"
"""Has a place in the order, but no check of its own: only an argument gives it a meaning."""

EVERY_PREDICATE = frozenset(PLUGINS_OF_PREDICATES) | {POD_FITS_PORTS}

PLUGINS_OF_PRIORITIES: dict[str, str] = {
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    EVEN_PODS_SPREAD_PRIORITY: "PodTopologySpread",
    "ImageLocalityPriority": "ImageLocality",
    "InterPodAffinityPriority": "InterPodAffinity",
    "LeastRequestedPriority": "NodeResourcesLeastAllocated",
    "MostRequestedPriority": "NodeResourcesMostAllocated",
    "NodeAffinityPriority": "NodeAffinity",
    "NodePreferAvoidPodsPriority": "NodePreferAvoidPods",
    SELECTOR_SPREAD_PRIORITY: "SelectorSpread",
    "TaintTolerationPriority": "TaintToleration",
    SERVICE_SPREADING_PRIORITY: "SelectorSpread",
    RATIO_PRIORITY: "RequestedToCapacityRatio",
    RESOURCE_LIMITS_PRIORITY: "NodeResourceLimits",
    EQUAL_PRIORITY: EQUAL_PRIORITY,
}

_DEFAULT_PREDICATES = (
    "NoVolumeZoneConflict",
    "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount",
    "MaxAzureDiskVolumeCount",
    "MaxCSIVolumeCountPred",
    "MatchInterPodAffinity",
    "NoDiskConflict",
    GENERAL_PREDICATES,
    "PodToleratesNodeTaints",
    "CheckVolumeBinding",
)

_DEFAULT_PRIORITIES = {
    SELECTOR_SPREAD_PRIORITY: 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": 10000,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
    "ImageLocalityPriority": 1,
}


def check_list(
    field: str,
    entries: Iterable[PredicatePolicy | PriorityPolicy] | None,
    known: frozenset[str],
    errors: ErrorList,
) -> None:
    """A name that is not known needs an argument to mean something."""
    for index, entry in enumerate(entries or ()):
        if entry.name not in known and entry.argument is None:
            errors.unsupported(f"{field}[{index}].name", entry.name, sorted(known))


def own_order(generation: Generation) -> tuple[str, ...]:
    """Where predicates are evaluated each by itself: the names that have a place."""
    if not generation.has_predicates:
        return tuple(PLUGINS_OF_PREDICATES)
    left_out = (EVEN_PODS_SPREAD_PREDICATE, "" if generation.has_cinder_limits else CINDER_LIMITS)
    order = [name for name in PLUGINS_OF_PREDICATES if name not in left_out]
    order.insert(order.index("PodToleratesNodeTaints") + 1, NO_EXECUTE_TAINTS)
    return tuple(order)


def plugin_name(generation: Generation, kind: str) -> str:
    """What a plugin was called in this version."""
    return generation.selector_spread_name if kind == "SelectorSpread" else kind


def taints_say_conditions(generation: Generation, gates: OlderGates) -> bool:
    """Nodes are judged by their taints; else by their conditions."""
    return not generation.has_predicates or gates.enabled(TAINT_NODES_BY_CONDITION)


def has_spread(generation: Generation, gates: OlderGates) -> bool:
    if generation.has_predicates:
        return False
    return EVEN_PODS_SPREAD not in generation.gates or gates.enabled(EVEN_PODS_SPREAD)


def mandatory_predicates(generation: Generation, gates: OlderGates) -> frozenset[str]:
    """Those that run whatever a Policy says."""
    if taints_say_conditions(generation, gates):
        return frozenset({"PodToleratesNodeTaints", "CheckNodeUnschedulable"})
    return frozenset({"CheckNodeCondition"})


def known_predicates(generation: Generation, gates: OlderGates) -> frozenset[str]:
    """Those that a Policy may name without an argument."""
    left_out = set(_CONDITION_PREDICATES)
    if not taints_say_conditions(generation, gates):
        left_out = {"CheckNodeUnschedulable"}
    if not has_spread(generation, gates):
        left_out.add(EVEN_PODS_SPREAD_PREDICATE)
    if not generation.has_cinder_limits:
        left_out.add(CINDER_LIMITS)
    if generation.registers_functions:
        left_out |= {LABEL_PRESENCE, SERVICE_AFFINITY}
    return EVERY_PREDICATE - left_out


def known_priorities(generation: Generation, gates: OlderGates) -> frozenset[str]:
    left_out = set()
    if not has_spread(generation, gates):
        left_out.add(EVEN_PODS_SPREAD_PRIORITY)
    if not gates.enabled(RESOURCE_LIMITS):
        left_out.add(RESOURCE_LIMITS_PRIORITY)
    if not generation.registers_functions:
        left_out.add(RATIO_PRIORITY)
    return frozenset(PLUGINS_OF_PRIORITIES.keys() - left_out)


def default_predicates(generation: Generation, gates: OlderGates) -> frozenset[str]:
    found = set(_DEFAULT_PREDICATES)
    if taints_say_conditions(generation, gates):
        found.add("CheckNodeUnschedulable")
    else:
        found.update(_CONDITION_PREDICATES)
    if has_spread(generation, gates):
        found.add(EVEN_PODS_SPREAD_PREDICATE)
    return frozenset(found)


def default_priorities(generation: Generation, gates: OlderGates) -> Mapping[str, int]:
    found = dict(_DEFAULT_PRIORITIES)
    if has_spread(generation, gates):
        found[EVEN_PODS_SPREAD_PRIORITY] = generation.spread_weight
    if gates.enabled(RESOURCE_LIMITS):
        found[RESOURCE_LIMITS_PRIORITY] = 1
    return found
