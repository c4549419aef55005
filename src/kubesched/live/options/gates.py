"""Feature gates: from `A=true,B=false` to which features are on, and what that means for kubesched.

Its decisions are those of the defaults of v1.36. Errors are told as Kubernetes tells them: a gate that does not exist,
one that is locked, one that needs another. A gate that kubesched cannot move away from its default is refused, for a
decision that is silently wrong is worse. One that concerns other components is taken and does nothing, as in
kube-scheduler.

Next: `gate_table` for the gates.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from kubesched.live.options.flag import BOOL, FlagError
from kubesched.live.options.gate_table import ALL_ALPHA, ALL_BETA, GATE_NEEDS, KNOWN_GATES, GateStage

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


_KUBE = "kube"
_WHOLE_STAGES = {ALL_ALPHA: GateStage.ALPHA, ALL_BETA: GateStage.BETA}


@dataclass(frozen=True, slots=True)
class FeatureGates(Mapping[str, bool]):
    """Every known gate, and whether its feature is on. `changed` holds those away from their defaults."""

    changed: Mapping[str, bool] = field(default_factory=lambda: MappingProxyType({}))

    def __getitem__(self, name: str) -> bool:
        return self.changed[name] if name in self.changed else KNOWN_GATES[name].default

    def __iter__(self) -> Iterator[str]:
        return iter(KNOWN_GATES)

    def __len__(self) -> int:
        return len(KNOWN_GATES)


def read_gates(given: Iterable[tuple[str, str]]) -> tuple[FeatureGates, tuple[str, ...]]:
    """The gates, and warnings, from (component, `Gate=true`) as `--feature-gates` has them."""
    asked = _asked(_of_kube(tuple(given)))
    _check_locks(asked)
    gates = FeatureGates(MappingProxyType(_changed(asked)))
    _check_needs(gates)
    _check_refused(gates, asked)
    return gates, (*_stage_warnings(asked), *_effect_warnings(gates))


def _of_kube(given: tuple[tuple[str, str], ...]) -> Iterator[str]:
    components = {component for component, _ in given}
    if {"", _KUBE} <= components:
        raise FlagError("set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use")
    for component, text in given:
        if component not in ("", _KUBE):
            raise FlagError(f"component not registered: {component}")
        yield text


def _asked(texts: Iterable[str]) -> dict[str, bool]:
    """What was asked for, in order; the last one counts."""
    asked: dict[str, bool] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not equals:
            raise FlagError(f"missing bool value for {name}")
        try:
            asked[name] = BOOL.parse(value)
        except ValueError as problem:
            raise FlagError(f"invalid value of {name}={value}, err: {problem}") from None
        if name not in KNOWN_GATES:
            raise FlagError(f"unrecognized feature gate: {name}")
    return asked


def _check_locks(asked: Mapping[str, bool]) -> None:
    errors = [
        f"cannot set feature gate {name} to {_shown(is_on)}, feature is locked to {_shown(KNOWN_GATES[name].default)}"
        for name, is_on in asked.items()
        if KNOWN_GATES[name].is_locked and is_on != KNOWN_GATES[name].default
    ]
    if errors:
        raise FlagError.of(errors)


def _changed(asked: Mapping[str, bool]) -> dict[str, bool]:
    """What differs from the defaults. A gate that was asked for by its name does not follow its stage."""
    wanted: dict[str, bool] = {}
    for whole, stage in _WHOLE_STAGES.items():
        if whole in asked:
            wanted.update((name, asked[whole]) for name, spec in KNOWN_GATES.items() if spec.stage is stage)
    wanted.update(asked)
    return {name: is_on for name, is_on in wanted.items() if is_on != KNOWN_GATES[name].default}


def _check_needs(gates: FeatureGates) -> None:
    errors = []
    for name, needs in GATE_NEEDS.items():
        missing = [need for need in needs if not gates[need]]
        if gates[name] and missing:
            errors.append(f"{name} is enabled, but depends on features that are disabled: [{' '.join(missing)}]")
    if errors:
        raise FlagError.of(errors)


def _check_refused(gates: FeatureGates, asked: Mapping[str, bool]) -> None:
    errors = []
    for name, is_on in gates.changed.items():
        if name in REFUSED_GATES:
            through = "" if name in asked else f" (through {ALL_ALPHA if is_on else ALL_BETA})"
            errors.append(f"cannot set feature gate {name} to {_shown(is_on)}{through}: {REFUSED_GATES[name]}")
    if errors:
        raise FlagError.of(errors)


def _stage_warnings(asked: Mapping[str, bool]) -> Iterator[str]:
    for name, is_on in asked.items():
        stage = KNOWN_GATES[name].stage
        if stage in (GateStage.GA, GateStage.DEPRECATED):
            kind = stage.value if stage is GateStage.GA else "deprecated"
            yield f"setting {kind} feature gate {name}={_shown(is_on)}. It will be removed in a future release."


def _effect_warnings(gates: FeatureGates) -> Iterator[str]:
    for name, is_on in gates.changed.items():
        if name in GATES_WITHOUT_EFFECT:
            yield f"feature gate {name}={_shown(is_on)} has no effect: {GATES_WITHOUT_EFFECT[name]}"


def _shown(is_on: bool) -> str:
    return BOOL.show(is_on)
