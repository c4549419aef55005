"""Plugins of v1.37 that say something else than today's, or count otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.handle import Handle
from kubesched.framework.nodes import NodeTable
from kubesched.framework.pod_info import AffinityTerm, PodInfo
from kubesched.framework.results import NodeStatuses, PostFilterResult, PreFilterResult
from kubesched.framework.status import Status
from kubesched.k8s.model.core import PodSpec
from kubesched.scheduler.config import DefaultPreemptionArgs
from kubesched.scheduler.engine.preemption import Preemption
from kubesched.scheduler.plugins.default_preemption import DefaultPreemption
from kubesched.scheduler.plugins.dynamic_resources.plugin import DynamicResources
from kubesched.scheduler.plugins.image_locality import MAX_CONTAINER_THRESHOLD_BYTES, ImageLocality
from kubesched.scheduler.plugins.inter_pod_affinity.plugin import InterPodAffinity
from kubesched.scheduler.plugins.inter_pod_affinity.terms import ScopedTerm, scoped
from kubesched.scheduler.plugins.node_name import NodeName

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
    """A namespace selector matches the namespaces that it matches; only an empty one matches all."""

    def scoped(self, terms: Iterable[AffinityTerm]) -> tuple[ScopedTerm, ...]:
        return scoped(terms, self._handle.objects.namespaces, matches_all=lambda selector: not selector.requirements)


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
