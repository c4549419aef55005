"""Feature gates: those that kube-scheduler v1.36.4 knows, which of them are on, and what that means for kubesched.

Decisions are those of the defaults of v1.36, unless a gate that can be switched here says otherwise. Errors are told as
Kubernetes tells them: a gate that does not exist, one that is locked, one that needs another. A gate that kubesched
cannot move away from its default is refused, for a decision that is silently wrong is worse.

Most gates concern other components: clusters hand the same `--feature-gates` to all of them, so every name is known
here (`KNOWN_GATES`).

Next: `defaults` for the plugins that gates add.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING

from kubesched.k8s.errors import KubeschedError

if TYPE_CHECKING:
    from kubesched.framework.groups import GroupFeatures

GENERIC_WORKLOAD = "GenericWorkload"
GANG_SCHEDULING = "GangScheduling"
TOPOLOGY_AWARE = "TopologyAwareWorkloadScheduling"
WORKLOAD_AWARE_PREEMPTION = "WorkloadAwarePreemption"
WORKLOAD_RESOURCE_CLAIMS = "DRAWorkloadResourceClaims"
COMPOSITE_POD_GROUP = "CompositePodGroup"
POD_GROUP_PREEMPTION_POLICY = "PodGroupPreemptionPolicy"

ALPHA_POD_GROUPS = "1.36-alpha"
NEXT_VERSION = "1.37"
EMULATED_IN_CONFIG = (ALPHA_POD_GROUPS, NEXT_VERSION)
"""Schedulers that can stand in for today's and have its configuration."""

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
        "VolumeLimitScaling": "a node is never rejected because a CSI driver is not installed on it",
    }
)
"""Gates that cannot be taken away from their defaults, since decisions or what is seen of them would be wrong."""

SWITCHES: Mapping[str, str] = MappingProxyType(
    {
        "DRADeviceTaintRules": "DeviceTaintRules are read, and the taints that they put on devices count",
        GENERIC_WORKLOAD: "pods that name a PodGroup are scheduled with it, and its condition is written",
        GANG_SCHEDULING: "a gang is bound when enough of its pods fit, or not at all",
        TOPOLOGY_AWARE: "a group with a topology constraint goes to nodes with one value of that label",
        WORKLOAD_AWARE_PREEMPTION: "groups preempt as a whole, and those of disruption mode PodGroup are evicted whole",
        WORKLOAD_RESOURCE_CLAIMS: "device claims that a PodGroup names are reserved for it as a whole",
        COMPOSITE_POD_GROUP: "of v1.37: groups of groups are scheduled as one",
        POD_GROUP_PREEMPTION_POLICY: "of v1.37: whether a group preempts is said by the group, not by its pods",
    }
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
        "OpportunisticBatching": "what was found for a pod always serves the next ones with the same signature",
        "UnauthenticatedHTTP2DOSMitigation": "only HTTP/1.1 is served",
        "UnlockWhileProcessingFIFO": _GO_CLIENT,
        "WatchListClient": _GO_CLIENT,
    }
)
"""Gates whose other value changes nothing that a scheduler decides; a warning says so."""


def group_features(gates: Mapping[str, bool], emulate: str | None) -> GroupFeatures:
    from kubesched.framework.groups import GroupFeatures  # with NumPy, which who reads flags need not wait for

    return GroupFeatures(
        groups=gates.get(GENERIC_WORKLOAD, False),
        gangs=gates.get(GANG_SCHEDULING, False),
        topology=gates.get(TOPOLOGY_AWARE, False),
        preemption=gates.get(WORKLOAD_AWARE_PREEMPTION, False),
        claims=gates.get(WORKLOAD_RESOURCE_CLAIMS, False),
        composites=gates.get(COMPOSITE_POD_GROUP, False),
        own_preemption_policy=gates.get(POD_GROUP_PREEMPTION_POLICY, False),
        alpha=emulate == ALPHA_POD_GROUPS,
        claims_race=emulate in (ALPHA_POD_GROUPS, NEXT_VERSION),
    )


class GateError(KubeschedError, ValueError):
    """Gates cannot be set as asked for; says all that is wrong."""

    def __init__(self, errors: Sequence[str]) -> None:
        super().__init__(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
        self.errors = tuple(errors)


@dataclass(frozen=True, slots=True)
class FeatureGates(Mapping[str, bool]):
    """Every known gate, and whether its feature is on. `changed` holds those away from their defaults."""

    changed: Mapping[str, bool] = field(default_factory=lambda: MappingProxyType({}))

    def __getitem__(self, name: str) -> bool:
        return self.changed[name] if name in self.changed else _spec(name).default

    def __iter__(self) -> Iterator[str]:
        return iter(KNOWN_GATES)

    def __len__(self) -> int:
        return len(KNOWN_GATES)

    def beside(self, switches: Mapping[str, bool]) -> FeatureGates:
        """With what a configuration says, which knows the flags already."""
        together = {**self.changed, **switches}
        return FeatureGates(
            MappingProxyType({name: is_on for name, is_on in together.items() if is_on != _spec(name).default})
        )


def check_gates(asked: Mapping[str, bool], emulate: str | None = NEXT_VERSION) -> tuple[FeatureGates, tuple[str, ...]]:
    """The gates that were asked for, and warnings. Raises `GateError`. Where it is not known yet what is emulated, it
    may be the next version."""
    unknown = [f"unrecognized feature gate: {name}" for name in asked if not is_known_gate(name, emulate)]
    if unknown:
        raise GateError(unknown[:1])
    _check_locks(asked)
    gates = FeatureGates(MappingProxyType(_changed(asked)))
    _check_needs(gates)
    _check_refused(gates, asked)
    return gates, (*_stage_warnings(asked), *_effect_warnings(gates))


def check_switches(asked: Mapping[str, bool], emulate: str | None) -> FeatureGates:
    """As `check_gates`, for a file that is about this scheduler alone: a gate that means nothing to it is an error."""
    gone = [name for name in asked if emulate == NEXT_VERSION and name in GATES_GONE_IN_NEXT]
    if gone:
        raise GateError([f"unrecognized feature gate: {gone[0]} (in v1.37 it is part of {GENERIC_WORKLOAD})"])
    gates, _ = check_gates(asked, emulate)
    meaningless = [
        f"feature gate {name} has no meaning here: {GATES_WITHOUT_EFFECT.get(name, 'it concerns other components')}"
        for name in asked
        if name not in SWITCHES and name not in REFUSED_GATES and name not in _WHOLE_STAGES
    ]
    if meaningless:
        raise GateError(meaningless)
    return gates


def _check_locks(asked: Mapping[str, bool]) -> None:
    errors = [
        f"cannot set feature gate {name} to {_shown(is_on)}, feature is locked to {_shown(_spec(name).default)}"
        for name, is_on in asked.items()
        if _spec(name).is_locked and is_on != _spec(name).default
    ]
    if errors:
        raise GateError(errors)


def _changed(asked: Mapping[str, bool]) -> dict[str, bool]:
    """What differs from the defaults. A gate that was asked for by its name does not follow its stage."""
    wanted: dict[str, bool] = {}
    for whole, stage in _WHOLE_STAGES.items():
        if whole in asked:
            wanted.update((name, asked[whole]) for name, spec in KNOWN_GATES.items() if spec.stage is stage)
    wanted.update(asked)
    return {name: is_on for name, is_on in wanted.items() if is_on != _spec(name).default}


def _check_needs(gates: FeatureGates) -> None:
    errors = []
    for name, needs in GATE_NEEDS.items():
        missing = [need for need in needs if not gates[need]]
        if gates[name] and missing:
            errors.append(f"{name} is enabled, but depends on features that are disabled: [{' '.join(missing)}]")
    if errors:
        raise GateError(errors)


def _check_refused(gates: FeatureGates, asked: Mapping[str, bool]) -> None:
    errors = []
    for name, is_on in gates.changed.items():
        if name in REFUSED_GATES:
            through = "" if name in asked else f" (through {ALL_ALPHA if is_on else ALL_BETA})"
            errors.append(f"cannot set feature gate {name} to {_shown(is_on)}{through}: {REFUSED_GATES[name]}")
    if errors:
        raise GateError(errors)


def _stage_warnings(asked: Mapping[str, bool]) -> Iterator[str]:
    for name, is_on in asked.items():
        stage = _spec(name).stage
        if stage in (GateStage.GA, GateStage.DEPRECATED):
            kind = stage.value if stage is GateStage.GA else "deprecated"
            yield f"setting {kind} feature gate {name}={_shown(is_on)}. It will be removed in a future release."


def _effect_warnings(gates: FeatureGates) -> Iterator[str]:
    for name, is_on in gates.changed.items():
        if name in GATES_WITHOUT_EFFECT:
            yield f"feature gate {name}={_shown(is_on)} has no effect: {GATES_WITHOUT_EFFECT[name]}"


def _shown(is_on: bool) -> str:
    return "true" if is_on else "false"


ALL_ALPHA = "AllAlpha"
ALL_BETA = "AllBeta"


class GateStage(Enum):
    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = "GA"
    DEPRECATED = "DEPRECATED"


@dataclass(frozen=True, slots=True)
class GateSpec:
    stage: GateStage
    default: bool
    is_locked: bool = False


_ALPHA = """
    AllowUnsafeMalformedObjectDeletion APIServingWithRoutine CBORServingAndStorage ClientsAllowCBOR ClientsPreferCBOR
    CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook ContainerStopSignals
    CPUManagerPolicyAlphaOptions CRIListStreaming CrossNamespaceVolumeDataSource CSIVolumeHealth DRAListTypeAttributes
    DRANodeAllocatableResources DRAResourcePoolStatus DRAWorkloadResourceClaims EventedPLEG GangScheduling
    GenericWorkload HPAScaleToZero ImageVolumeWithDigest InPlacePodVerticalScalingExclusiveCPUs
    InPlacePodVerticalScalingExclusiveMemory KubeletInUserNamespace LoggingAlphaOptions
    ManifestBasedAdmissionControlConfig MemoryQoS MutablePVNodeAffinity NativeHistograms
    PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI PodLevelResourceManagers PodLogsQuerySplitStreams
    PodsAPI QOSReserved ReduceDefaultCrashLoopBackOffDecay RuntimeClassInImageCriApi ShardedListAndWatch
    StorageCapacityScoring StorageVersionAPI TaintTolerationComparisonOperators TopologyAwareWorkloadScheduling
    TopologyManagerPolicyAlphaOptions UserNamespacesHostNetworkSupport VolumeLimitScaling WindowsCPUAndMemoryAffinity
    WorkloadAwarePreemption WorkloadWithJob
"""

_BETA_ON = """
    AllowParsingUserUIDFromCertAuth APIResponseCompression APIServerIdentity AtomicFIFO
    AuthorizePodWebsocketUpgradeCreatePermission ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation
    ClientsAllowTLSCacheGC ComponentFlagz ComponentStatusz ConstrainedImpersonation ContainerCheckpoint
    ContainerRestartRules ContextualLogging CPUManagerPolicyBetaOptions CRDObservedGenerationTracking
    DeclarativeValidationBeta DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency DRAConsumableCapacity
    DRADeviceBindingConditions DRADeviceTaints DRAExtendedResource DRAPartitionableDevices
    DRAResourceClaimDeviceStatus DRAResourceClaimGranularStatusAuthorization DRASchedulerFilterTimeout EnvFiles
    ExtendWebSocketsToKubelet GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority HostnameOverride
    HPAConfigurableTolerance InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling
    InPlacePodVerticalScalingInitContainers KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages
    KubeletSeparateDiskGC KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot LoggingBetaOptions
    MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge
    MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs NodeDeclaredFeatures
    NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching PLEGOnDemandRelist PodDeletionCost
    PodLevelResources PodReadyToStartContainersCondition PodTopologyLabelsAdmission PortForwardWebsockets
    PreventStaticPodAPIReferences RelaxedServiceNameValidation ReloadKubeletClientCAFile
    ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus ResourceHealthStatusMessage
    RestartAllContainersOnContainerExits RotateKubeletServerCertificate SchedulerAsyncPreemption
    SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction SizeBasedListCostEstimate
    StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
    StaleControllerConsistencyStatefulSet StatefulSetSemanticRevisionComparison StorageVersionHash
    StrictIPCIDRValidation StructuredAuthenticationConfigurationEgressSelector
    StructuredAuthenticationConfigurationJWKSMetrics TokenRequestServiceAccountUIDValidation
    TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
    UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO WatchCacheInitializationPostStartHook WatchList
    WatchListClient WindowsGracefulNodeShutdown
"""

_BETA_OFF = """
    ClusterTrustBundle ClusterTrustBundleProjection ConcurrentWatchObjectDecode CoordinatedLeaderElection
    DRADeviceTaintRules LocalStorageCapacityIsolationFSQuotaMonitoring MaxUnavailableStatefulSet PodCertificateRequest
    SchedulerAsyncAPICalls SELinuxMount StorageVersionMigrator
"""

_GA_ON = """
    AllowServiceExternalIPs CustomCPUCFSQuotaPeriod DRAPrioritizedList InformerResourceVersion MutatingAdmissionPolicy
"""

_GA_ON_LOCKED = """
    AnonymousAuthConfigurableEndpoints AnyVolumeDataSource APIServerTracing AuthorizeNodeWithSelectors
    AuthorizeWithSelectors BtreeWatchCache ConsistentListFromCache CPUManagerPolicyOptions CRDValidationRatcheting
    CSIServiceAccountTokenSecrets CustomResourceFieldSelectors DeclarativeValidation DisableAllocatorDualWrite
    DRAAdminAccess DynamicResourceAllocation ExecProbeTimeout ExternalServiceAccountTokenSigner ImageMaximumGCAge
    ImageVolume InOrderInformers InPlacePodVerticalScaling JobBackoffLimitPerIndex JobManagedBy
    JobPodReplacementPolicy JobSuccessPolicy KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz
    KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletPSI KubeletTracing LogarithmicScaleDown
    MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator MutableCSINodeAllocatableCount NFTablesProxyMode
    NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap OrderedNamespaceDeletion PodLifecycleSleepAction
    PodLifecycleSleepActionAllowZero PodObservedGenerationTracking PodSchedulingReadiness
    PreferSameTrafficDistribution ProcMountType RecoverVolumeExpansionFailure RecursiveReadOnlyMounts
    RelaxedDNSSearchValidation RelaxedEnvironmentVariableValidation ResilientWatchCacheInitialization
    RetryGenerateName SchedulerQueueingHints SELinuxChangePolicy SELinuxMountReadWriteOncePod
    SeparateTaintEvictionController ServiceAccountTokenJTI ServiceAccountTokenNodeBinding
    ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo SidecarContainers
    StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf StructuredAuthenticationConfiguration
    SupplementalGroupsPolicy SystemdWatchdog TopologyManagerPolicyOptions UserNamespacesSupport VolumeAttributesClass
    WinDSR WinOverlay
"""

_DEPRECATED_ON = """
    DisableCPUQuotaWithExclusiveCPUs KubeletPodResourcesListUseActivePods ServiceCIDRStatusFieldWiping
    StorageNamespaceIndex
"""

_DEPRECATED_OFF = """
    AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests ChangeContainerStatusOnKubeletRestart
    DeclarativeValidationTakeover KMSv1 KubeletRegistrationGetOnExistsOnly WindowsHostNetwork
"""

_DEPRECATED_ON_LOCKED = """
    AggregatedDiscoveryRemoveBetaType DisableNodeKubeProxyVersion
"""

_DEPRECATED_OFF_LOCKED = """
    AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver SeparateCacheWatchRPC
"""

_SPECS = (
    (_ALPHA, GateSpec(GateStage.ALPHA, False)),
    (_BETA_ON, GateSpec(GateStage.BETA, True)),
    (_BETA_OFF, GateSpec(GateStage.BETA, False)),
    (_GA_ON, GateSpec(GateStage.GA, True)),
    (_GA_ON_LOCKED, GateSpec(GateStage.GA, True, is_locked=True)),
    (_DEPRECATED_ON, GateSpec(GateStage.DEPRECATED, True)),
    (_DEPRECATED_OFF, GateSpec(GateStage.DEPRECATED, False)),
    (_DEPRECATED_ON_LOCKED, GateSpec(GateStage.DEPRECATED, True, is_locked=True)),
    (_DEPRECATED_OFF_LOCKED, GateSpec(GateStage.DEPRECATED, False, is_locked=True)),
)

KNOWN_GATES: Mapping[str, GateSpec] = MappingProxyType(
    {
        ALL_ALPHA: GateSpec(GateStage.ALPHA, False),
        ALL_BETA: GateSpec(GateStage.BETA, False),
        **{name: spec for names, spec in _SPECS for name in names.split()},
    }
)

GATES_OF_NEXT: Mapping[str, GateSpec] = MappingProxyType(
    dict.fromkeys((COMPOSITE_POD_GROUP, POD_GROUP_PREEMPTION_POLICY), GateSpec(GateStage.ALPHA, False))
)
"""What only v1.37 knows, where that is emulated."""

GATES_GONE_IN_NEXT = frozenset({GANG_SCHEDULING, WORKLOAD_AWARE_PREEMPTION})
"""What it does not know any more."""


def is_known_gate(name: str, emulate: str | None) -> bool:
    return name in KNOWN_GATES or (emulate == NEXT_VERSION and name in GATES_OF_NEXT)


def _spec(name: str) -> GateSpec:
    return KNOWN_GATES[name] if name in KNOWN_GATES else GATES_OF_NEXT[name]


GATE_NEEDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "AuthorizeNodeWithSelectors": ("AuthorizeWithSelectors",),
        "ClusterTrustBundleProjection": ("ClusterTrustBundle",),
        COMPOSITE_POD_GROUP: (GENERIC_WORKLOAD, TOPOLOGY_AWARE),
        "DRAAdminAccess": ("DynamicResourceAllocation",),
        "DRAConsumableCapacity": ("DynamicResourceAllocation",),
        "DRADeviceBindingConditions": ("DRAResourceClaimDeviceStatus", "DynamicResourceAllocation"),
        "DRADeviceTaintRules": ("DRADeviceTaints",),
        "DRADeviceTaints": ("DynamicResourceAllocation",),
        "DRAExtendedResource": ("DynamicResourceAllocation",),
        "DRAListTypeAttributes": ("DynamicResourceAllocation",),
        "DRANodeAllocatableResources": ("DynamicResourceAllocation",),
        "DRAPartitionableDevices": ("DynamicResourceAllocation",),
        "DRAPrioritizedList": ("DynamicResourceAllocation",),
        "DRAResourceClaimGranularStatusAuthorization": ("DRAResourceClaimDeviceStatus", "DynamicResourceAllocation"),
        "DRAResourcePoolStatus": ("DynamicResourceAllocation",),
        "DRASchedulerFilterTimeout": ("DynamicResourceAllocation",),
        "DRAWorkloadResourceClaims": ("DynamicResourceAllocation", "GenericWorkload"),
        "DeclarativeValidationBeta": ("DeclarativeValidation",),
        "DeclarativeValidationTakeover": ("DeclarativeValidation",),
        "DisableAllocatorDualWrite": ("MultiCIDRServiceAllocator",),
        "ExtendWebSocketsToKubelet": ("NodeDeclaredFeatures",),
        "GangScheduling": ("GenericWorkload",),
        "GracefulNodeShutdownBasedOnPodPriority": ("GracefulNodeShutdown",),
        "ImageVolumeWithDigest": ("ImageVolume",),
        "InPlacePodLevelResourcesVerticalScaling": (
            "InPlacePodVerticalScaling",
            "NodeDeclaredFeatures",
            "PodLevelResources",
        ),
        "InPlacePodVerticalScalingExclusiveCPUs": ("InPlacePodVerticalScaling",),
        "InPlacePodVerticalScalingExclusiveMemory": ("InPlacePodVerticalScaling",),
        "InPlacePodVerticalScalingInitContainers": ("InPlacePodVerticalScaling", "NodeDeclaredFeatures"),
        "MatchLabelKeysInPodTopologySpreadSelectorMerge": ("MatchLabelKeysInPodTopologySpread",),
        "PodCertificateRequest": ("AuthorizeNodeWithSelectors",),
        POD_GROUP_PREEMPTION_POLICY: (GENERIC_WORKLOAD,),
        "PodLevelResourceManagers": ("PodLevelResources",),
        "PodLifecycleSleepActionAllowZero": ("PodLifecycleSleepAction",),
        "ProcMountType": ("UserNamespacesSupport",),
        "ResourceHealthStatus": ("DynamicResourceAllocation",),
        "ResourceHealthStatusMessage": ("ResourceHealthStatus",),
        "RestartAllContainersOnContainerExits": ("ContainerRestartRules", "NodeDeclaredFeatures"),
        "ServiceAccountTokenNodeBinding": ("ServiceAccountTokenNodeBindingValidation",),
        "StaleControllerConsistencyDaemonSet": ("AtomicFIFO",),
        "StaleControllerConsistencyJob": ("AtomicFIFO",),
        "StaleControllerConsistencyReplicaSet": ("AtomicFIFO",),
        "StaleControllerConsistencyStatefulSet": ("AtomicFIFO",),
        "StorageVersionAPI": ("APIServerIdentity",),
        "StructuredAuthenticationConfigurationEgressSelector": ("StructuredAuthenticationConfiguration",),
        "StructuredAuthenticationConfigurationJWKSMetrics": ("StructuredAuthenticationConfiguration",),
        "TopologyAwareWorkloadScheduling": ("GenericWorkload",),
        "UnknownVersionInteroperabilityProxy": ("APIServerIdentity",),
        "UserNamespacesHostNetworkSupport": ("NodeDeclaredFeatures", "UserNamespacesSupport"),
        "WindowsGracefulNodeShutdown": ("GracefulNodeShutdown",),
        "WorkloadAwarePreemption": ("GangScheduling",),
        "WorkloadWithJob": ("GenericWorkload",),
    }
)
"""Features that work only with others turned on."""

_WHOLE_STAGES = {ALL_ALPHA: GateStage.ALPHA, ALL_BETA: GateStage.BETA}
