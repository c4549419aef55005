"""What the feature gates of v1.36 mean for kubesched, whose decisions are those of the defaults.

A gate that is neither here nor locked concerns other components; a scheduler takes it and does nothing, as
kube-scheduler does.

Next: `gates` for how gates are set.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_POD_GROUPS = "pod groups are not implemented"

REFUSED_GATES: Mapping[str, str] = MappingProxyType(
    {
        "ComponentFlagz": "/flagz is always served",
        "ComponentStatusz": "/statusz is always served",
        "CoordinatedLeaderElection": "lease candidates are not implemented",
        "DRAConsumableCapacity": "consumable capacity is always taken into account",
        "DRADeviceBindingConditions": "binding always waits for the conditions of devices",
        "DRADeviceTaints": "taints of devices are always taken into account",
        "DRAExtendedResource": "extended resources are always served by device classes that name them",
        "DRAListTypeAttributes": "attributes that are lists are not implemented",
        "DRANodeAllocatableResources": "devices that stand for resources of a node are not implemented",
        "DRAPartitionableDevices": "shared counters of devices are always taken into account",
        "DRAPrioritizedList": "alternatives in requests are always tried",
        "DRAResourceClaimDeviceStatus": "the status of devices in claims is always taken into account",
        "DRASchedulerFilterTimeout": "the search for devices has a time limit, which filterTimeout sets",
        "DRAWorkloadResourceClaims": _POD_GROUPS,
        "GangScheduling": _POD_GROUPS,
        "GenericWorkload": _POD_GROUPS,
        "InPlacePodLevelResourcesVerticalScaling": "resized resources of whole pods always count",
        "LoggingAlphaOptions": "the log cannot be split into two streams",
        "MatchLabelKeysInPodTopologySpread": "matchLabelKeys of topology spread constraints always count",
        "NativeHistograms": "native histograms are not implemented",
        "NodeDeclaredFeatures": "the plugin NodeDeclaredFeatures is always there; a configuration can disable it",
        "NominatedNodeNameForExpectation": "a node is always nominated before a pod waits for its binding",
        "PodLevelResources": "resources of whole pods always count",
        "RemoteRequestHeaderUID": "proxies may always name the UID of a user",
        "SchedulerAsyncAPICalls": "a queue of API calls is not implemented",
        "SchedulerAsyncPreemption": "preemption never holds up the scheduling of other pods",
        "SchedulerPopFromBackoffQ": "pods that back off are always tried when no others are there",
        "StorageCapacityScoring": "scoring by storage capacity is not implemented",
        "TaintTolerationComparisonOperators": "the operators Lt and Gt of tolerations are not implemented",
        "TopologyAwareWorkloadScheduling": _POD_GROUPS,
        "VolumeLimitScaling": "a node is never rejected because a CSI driver is not installed on it",
        "WorkloadAwarePreemption": _POD_GROUPS,
    }
)
"""Gates that cannot be taken away from their defaults, since decisions or what is seen of them would be wrong."""

SWITCHES: Mapping[str, str] = MappingProxyType(
    {"DRADeviceTaintRules": "objects of kind DeviceTaintRule are read, and the taints that they put on devices count"}
)
"""Gates that can be turned on and off, and what they turn on."""

_GO_CLIENT = "it concerns Go's client"

GATES_WITHOUT_EFFECT: Mapping[str, str] = MappingProxyType(
    {
        "AllowParsingUserUIDFromCertAuth": "UIDs in certificates are not looked at",
        "AtomicFIFO": _GO_CLIENT,
        "ClientsAllowCARotation": _GO_CLIENT,
        "ClientsAllowCBOR": _GO_CLIENT,
        "ClientsAllowTLSCacheGC": _GO_CLIENT,
        "ClientsPreferCBOR": _GO_CLIENT,
        "ContextualLogging": "it concerns Go's logging",
        "InOrderInformersBatchProcess": _GO_CLIENT,
        "InformerResourceVersion": _GO_CLIENT,
        "LoggingBetaOptions": "it concerns Go's logging",
        "OpportunisticBatching": "it makes Go's scheduler faster, decisions are the same",
        "UnauthenticatedHTTP2DOSMitigation": "only HTTP/1.1 is served",
        "UnlockWhileProcessingFIFO": _GO_CLIENT,
        "WatchListClient": _GO_CLIENT,
    }
)
"""Gates whose other value changes nothing that a scheduler decides; a warning says so."""
