"""From today's configuration and plugins to those of v1.37: the order, the feature gates, and what each plugin does.

Plugins that say something else than today's, or count otherwise, are here. Volumes: nodes are scored by how full their
storage would be, and those without a driver are rejected. In v1.36 both are behind feature gates that are off
(StorageCapacityScoring, VolumeLimitScaling). Plugins from outside run with it as they do today.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from msgspec.structs import replace

from kubesched.framework.caching import ClaimQuestion
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.events import Hint
from kubesched.framework.groups import GroupFeatures
from kubesched.framework.handle import Handle, Objects, Registry
from kubesched.framework.nodes import IntArray, NodeInfo, NodeTable
from kubesched.framework.pod_info import AffinityTerm, PodInfo
from kubesched.framework.results import NodeStatuses, PostFilterResult, PreFilterResult, Scores
from kubesched.framework.status import OK, Status
from kubesched.framework.verdicts import Verdicts
from kubesched.k8s.model import quantity, selectors
from kubesched.k8s.model.core import PodSpec
from kubesched.k8s.model.selectors import SelectorError
from kubesched.k8s.model.storage import PersistentVolumeClaim, class_of_claim, requested_storage
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.config import DefaultPreemptionArgs, KubeSchedulerConfiguration, PluginSet
from kubesched.scheduler.config.configuration import KubeSchedulerProfile
from kubesched.scheduler.config.defaults import with_gates
from kubesched.scheduler.config.feature_gates import (
    GANG_SCHEDULING,
    GENERIC_WORKLOAD,
    NEXT_VERSION,
    WORKLOAD_AWARE_PREEMPTION,
)
from kubesched.scheduler.config.plugin_args import UtilizationShapePoint
from kubesched.scheduler.engine.group_cycle import GroupCycles
from kubesched.scheduler.engine.preemption import Preemption
from kubesched.scheduler.newer.composites import CompositeCycles
from kubesched.scheduler.newer.gangs import NewerGangScheduling
from kubesched.scheduler.newer.queue import GroupQueue, NewerQueue
from kubesched.scheduler.plugins.default_preemption import DefaultPreemption
from kubesched.scheduler.plugins.dynamic_resources import DynamicResources
from kubesched.scheduler.plugins.image_locality import MAX_CONTAINER_THRESHOLD_BYTES, ImageLocality
from kubesched.scheduler.plugins.inter_pod_affinity import InterPodAffinity, after_pod_change, any_matches_as_written
from kubesched.scheduler.plugins.inter_pod_affinity.terms import ScopedTerm, scoped
from kubesched.scheduler.plugins.node_name import NodeName
from kubesched.scheduler.plugins.node_resources_fit.scoring import broken_linear
from kubesched.scheduler.plugins.node_unschedulable import NodeUnschedulable
from kubesched.scheduler.plugins.node_volume_limits import NodeVolumeLimits, WantedVolumes
from kubesched.scheduler.plugins.volume_binding import VolumeBinding, VolumesOfPod
from kubesched.scheduler.plugins.volume_binding.finding import Findings
from kubesched.scheduler.plugins.volume_binding.matching import looks_at_capacity, rows_meeting, volume_limit
from kubesched.scheduler.queue import QueueProfile, QueueSettings, SchedulingQueue
from kubesched.scheduler.queue.hints import MeasuredHint

_NOTHING_TO_FREE = ("no new claims to deallocate", "still not schedulable")


class NewerNodeName(NodeName):
    """A pod that names its node is not tried on any other."""

    def pre_filter(self, _cycle: CycleState, pod: PodInfo, _nodes: NodeTable) -> PreFilterResult:
        wanted = pod.spec.node_name
        return PreFilterResult(node_names=frozenset((wanted,)) if wanted else None)


class NewerImageLocality(ImageLocality):
    """Images of volumes raise the upper bound, as those of containers do."""

    def most_bytes(self, spec: PodSpec) -> int:
        n_volumes = sum(volume.image is not None for volume in spec.volumes or ())
        return super().most_bytes(spec) + MAX_CONTAINER_THRESHOLD_BYTES * n_volumes


class NewerInterPodAffinity(InterPodAffinity):
    """A namespace selector matches the namespaces that it matches; only an empty one matches all. A pod that leaves may
    help if any term of anti-affinity was about it."""

    def scoped(self, terms: Iterable[AffinityTerm]) -> tuple[ScopedTerm, ...]:
        return scoped(terms, self._handle.objects.namespaces, matches_all=lambda selector: not selector.requirements)

    def after_pod_change(self, pod: PodInfo, old: object | None, new: object | None) -> Hint:
        return after_pod_change(pod, old, new, is_kept_away=any_matches_as_written)


class NewerDynamicResources(DynamicResources):
    """Says nothing where there is nothing to free."""

    def post_filter(self, cycle: CycleState, pod: PodInfo, statuses: NodeStatuses) -> PostFilterResult:
        found = super().post_filter(cycle, pod, statuses)
        if found.status.message not in _NOTHING_TO_FREE:
            return found
        return PostFilterResult(Status.unschedulable(), found.mode, found.node_name, found.lasts)


@dataclass(frozen=True, slots=True)
class _NewerLimits:
    min_candidate_nodes_percentage: int
    min_candidate_nodes_absolute: int
    stops_at_broken_budget: bool = True


class NewerDefaultPreemption(DefaultPreemption):
    """Says so when it found somebody to evict, and counts disruption budgets up to the first that is broken."""

    def __init__(self, args: DefaultPreemptionArgs, handle: Handle) -> None:
        limits = _NewerLimits(args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute)
        super().__init__(limits, handle)

    def post_filter(self, cycle: CycleState, pod: PodInfo, statuses: NodeStatuses) -> PostFilterResult:
        found = super().post_filter(cycle, pod, statuses)
        chosen = cycle.find(Preemption) if found.status.is_success else None
        if chosen is None:
            return found
        where = f"found a potential placement for pod on node {chosen.node_name}"
        told = Status(found.status.code, (f"preemption: {where}, preempting {len(chosen.victims)} victims",))
        return PostFilterResult(told, found.mode, found.node_name, found.lasts)


_CURVE = broken_linear((UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0)))
"""The score for each percent of utilization: storage that is less full is better."""
_FULL = 100
_UNKNOWN = -1


class NewerVolumeBinding(VolumeBinding):
    """With StorageCapacityScoring: the less of a node's storage the pod's new volumes would take, the better."""

    def question_of(self, pod: PodInfo) -> ClaimQuestion | None:
        """What a node has left counts, so that no two pods with volumes ask the same."""
        return None

    def pre_score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Status:
        return OK

    def score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        scores = np.zeros(len(nodes), dtype=np.int64)
        state = cycle.find(VolumesOfPod)
        if state is None or state.findings is None or not (state.findings.matches or state.findings.selected):
            return scores
        left: dict[str, IntArray | None] = {}
        for claim in (*(match.claim for match in state.findings.matches), *state.findings.selected):
            left[claim.key] = _capacity_by_row(nodes.whole, self._handle.objects, claim)
        for at, row in enumerate(nodes.rows.tolist()):
            scores[at] = _score(state.findings, row, left)
        return scores


def _score(findings: Findings, row: int, left: dict[str, IntArray | None]) -> int:
    """The mean over storage classes. Volumes that exist are compared with what was asked of them; only without any do
    new ones count."""
    if not findings.fits(row):
        return 0
    volumes = findings.volumes_on(row)
    requested: defaultdict[str, int] = defaultdict(int)
    capacity: defaultdict[str, int] = defaultdict(int)
    for volume, claim in volumes.bindings:
        amount = (volume.spec.capacity or {}).get("storage")
        requested[volume.spec.storage_class_name] += requested_storage(claim).value
        capacity[volume.spec.storage_class_name] += 0 if amount is None else quantity.parse(amount).value
    for claim in () if volumes.bindings else volumes.provisions:
        known = left[claim.key]
        if known is not None and known[row] != _UNKNOWN:
            requested[class_of_claim(claim)] += requested_storage(claim).value
            capacity[class_of_claim(claim)] = int(known[row])
    if not requested:
        return 0
    total = sum(_class_score(requested[name], capacity[name]) for name in requested)
    return math.floor(total / len(requested) + 0.5)


def _class_score(requested: int, capacity: int) -> int:
    if capacity == 0 or requested > capacity:
        return int(_CURVE[_FULL])
    return int(_CURVE[requested * _FULL // capacity])


def _capacity_by_row(nodes: NodeTable, objects: Objects, claim: PersistentVolumeClaim) -> IntArray | None:
    """(n_nodes,) what the driver has left for a node, by the first of its CSIStorageCapacities that is large enough;
    None if it does not say."""
    storage_class = objects.storage_classes.get(class_of_claim(claim))
    if storage_class is None or not looks_at_capacity(objects, storage_class, claim):
        return None
    found = np.full(len(nodes), _UNKNOWN, dtype=np.int64)
    for _, known in sorted(objects.csi_storage_capacities.items()):
        limit = volume_limit(known)
        if known.storage_class_name != storage_class.name or known.node_topology is None or limit is None:
            continue
        if limit.value < requested_storage(claim).value:
            continue
        try:
            rows = rows_meeting(nodes, selectors.from_label_selector(known.node_topology).requirements)
        except SelectorError:
            continue
        amount = 0 if known.capacity is None else quantity.parse(known.capacity).value
        found[rows & (found == _UNKNOWN)] = amount
    return found


class NewerNodeVolumeLimits(NodeVolumeLimits):
    """With VolumeLimitScaling: a driver may ask that no pod with its volumes goes where it is not installed."""

    def question_of(self, pod: PodInfo) -> ClaimQuestion | None:
        return None if self._demanding() else super().question_of(pod)

    def filter_node(self, cycle: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        missing = self._missing(cycle, node.name)
        return super().filter_node(cycle, pod, node) if not missing else _not_installed(missing)

    def filter(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdicts:
        found = super().filter(cycle, pod, nodes)
        if not self._demanding():
            return found
        missing = [self._missing(cycle, name) for name in nodes.names]
        if not any(missing):
            return found
        statuses = [_not_installed(driver) if driver else found.status(at) for at, driver in enumerate(missing)]
        return Verdicts.from_statuses(statuses)

    def _demanding(self) -> set[str]:
        drivers = self._handle.objects.csi_drivers.values()
        return {driver.name for driver in drivers if driver.spec.prevent_pod_scheduling_if_missing}

    def _missing(self, cycle: CycleState, node_name: str) -> str:
        """The first driver that the pod needs and the node lacks; empty if there is none."""
        wanted = cycle.find(WantedVolumes)
        if wanted is None or isinstance(wanted.with_csi_node, Status):
            return ""
        known = self._handle.objects.csi_nodes.get(node_name)
        installed = set() if known is None else {driver.name for driver in known.spec.drivers or ()}
        needed = self._demanding() & {volume.driver for volume in wanted.with_csi_node}
        return min(needed - installed, default="")


def _not_installed(driver: str) -> Status:
    return Status.unschedulable(f"{driver} CSI driver is not installed on the node")


_PLUGINS = (
    NewerDefaultPreemption,
    NewerDynamicResources,
    NewerGangScheduling,
    NewerImageLocality,
    NewerInterPodAffinity,
    NewerNodeName,
    NewerNodeVolumeLimits,
    NewerVolumeBinding,
)


def registry_as_emulated(registry: Registry, config: KubeSchedulerConfiguration) -> Registry:
    """With the plugins of v1.37 in the place of today's, if that is emulated; others stay."""
    if config.emulate != NEXT_VERSION:
        return registry
    newer = {plugin.name: plugin for plugin in _PLUGINS if registry.get(plugin.name) in plugin.__bases__}
    return Registry({**registry, **newer})


def configuration_as_emulated(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """In v1.37 gangs and preemption by groups are part of pod groups, and NodeName filters first."""
    if config.emulate != NEXT_VERSION:
        return config
    if config.gates.get(GENERIC_WORKLOAD):
        config = with_gates(config, {GANG_SCHEDULING: True, WORKLOAD_AWARE_PREEMPTION: True})
    return replace(config, profiles=tuple(map(_with_node_name_first, config.profiles)))


def track_forest_as_emulated(config: KubeSchedulerConfiguration, features: GroupFeatures, cluster: Cluster) -> None:
    if config.emulate == NEXT_VERSION and features.groups and cluster.forest is None:
        cluster.track_forest(has_composites=features.composites)


def group_cycles_as_emulated(config: KubeSchedulerConfiguration) -> type[GroupCycles]:
    return CompositeCycles if config.emulate == NEXT_VERSION else GroupCycles


def queue_as_emulated(
    config: KubeSchedulerConfiguration,
    features: GroupFeatures | None,
    cluster: Cluster,
    settings: QueueSettings,
    profiles: Mapping[str, QueueProfile],
    measured_hint: MeasuredHint | None,
) -> SchedulingQueue:
    if config.emulate != NEXT_VERSION:
        return SchedulingQueue(settings, profiles, measured_hint)
    if features is None or not features.groups:
        return NewerQueue(settings, profiles, measured_hint)
    assert cluster.forest is not None
    return GroupQueue(settings, profiles, measured_hint, cluster.forest)


def _with_node_name_first(profile: KubeSchedulerProfile) -> KubeSchedulerProfile:
    """Where both stand as the defaults have them, one after the other."""
    everywhere = profile.plugins.multi_point
    names = [plugin.name for plugin in everywhere.enabled]
    for at, pair in enumerate(pairwise(names)):
        if pair == (NodeUnschedulable.name, NodeName.name):
            order = list(everywhere.enabled)
            order[at], order[at + 1] = order[at + 1], order[at]
            changed = PluginSet(tuple(order), everywhere.disabled)
            return replace(profile, plugins=replace(profile.plugins, multi_point=changed))
    return profile
