"""The numbers behind every rejection: requested, used and free; the taint, the label, the port, the pod in the way.

`Evidence` asks, for each plugin that rejects a node, the module of `findings` that knows that plugin. Plugins that are
not known there have said all they have to say in their reasons.

Next: `findings`.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubesched.explanation.failing import Failures, nominated_pods_by_row
from kubesched.explanation.findings.devices import DevicesOfNodes
from kubesched.explanation.findings.finding import FAR, NEAR, CauseKind, Fact, Finding, FindingSource, Nearness
from kubesched.explanation.findings.node_affinity import UnmetNodeAffinity
from kubesched.explanation.findings.pod_affinity import UnmetPodAffinity
from kubesched.explanation.findings.ports import TakenPorts
from kubesched.explanation.findings.resources import ResourceShortages
from kubesched.explanation.findings.spread import SkewedDomains
from kubesched.explanation.findings.taints import Cordoned, UntoleratedTaints
from kubesched.explanation.findings.volume_use import AttachedVolumes, VolumesInUse
from kubesched.explanation.findings.volumes import LabelledVolumes, PlacedVolumes
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Code, Status
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.config import PodTopologySpreadArgs
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.engine.score import ByName
from kubesched.scheduler.plugins.dynamic_resources import DynamicResources
from kubesched.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from kubesched.scheduler.plugins.node_affinity import NodeAffinity
from kubesched.scheduler.plugins.node_declared_features import NodeDeclaredFeatures
from kubesched.scheduler.plugins.node_ports import NodePorts
from kubesched.scheduler.plugins.node_resources_fit import NodeResourcesFit
from kubesched.scheduler.plugins.node_unschedulable import NodeUnschedulable
from kubesched.scheduler.plugins.node_volume_limits import NodeVolumeLimits
from kubesched.scheduler.plugins.pod_topology_spread import PodTopologySpread
from kubesched.scheduler.plugins.pod_topology_spread.constraints import (
    DO_NOT_SCHEDULE,
    ConstraintError,
    ConstraintSource,
    SpreadConstraint,
)
from kubesched.scheduler.plugins.taint_toleration import TaintToleration
from kubesched.scheduler.plugins.volume_binding import VolumeBinding
from kubesched.scheduler.plugins.volume_restrictions import VolumeRestrictions
from kubesched.scheduler.plugins.volume_zone import VolumeZone


class Evidence:
    """What stands behind the rejections of one pod, by row. Looks at the cluster as it is when asked."""

    def __init__(
        self, cluster: Cluster, pod: PodInfo, failures: Failures, spread_constraints: Sequence[SpreadConstraint]
    ) -> None:
        self._failures = failures
        nominated_pods = nominated_pods_by_row(cluster, pod)
        self.shortages = ResourceShortages(cluster, pod, failures, nominated_pods)
        self._sources: dict[str, FindingSource] = {
            NodeResourcesFit.name: self.shortages,
            NodeUnschedulable.name: Cordoned(),
            TaintToleration.name: UntoleratedTaints(cluster, pod),
            NodeAffinity.name: UnmetNodeAffinity(cluster, pod),
            NodePorts.name: TakenPorts(cluster, pod, nominated_pods),
            PodTopologySpread.name: SkewedDomains(cluster, pod, spread_constraints),
            InterPodAffinity.name: UnmetPodAffinity(cluster, pod, nominated_pods),
            VolumeBinding.name: PlacedVolumes(cluster, pod),
            VolumeZone.name: LabelledVolumes(cluster, pod),
            NodeVolumeLimits.name: AttachedVolumes(cluster, pod),
            VolumeRestrictions.name: VolumesInUse(cluster, pod),
            DynamicResources.name: DevicesOfNodes(cluster, pod),
        }

    def by(self, plugin: str, row: int) -> tuple[Finding, ...]:
        """What stands behind this plugin's rejection of the row."""
        source = self._sources.get(plugin or NodeAffinity.name)  # it is node affinity that leaves nodes out
        return () if source is None else source.of(row)

    def behind(self, status: Status, row: int) -> tuple[Finding, ...]:
        """What stands behind the reasons of one rejection; the reasons themselves where nothing more is known."""
        found = tuple(f for f in self.by(status.plugin, row) if not f.reason or f.reason in status.reasons)
        return found or (_own_words(status),)

    def of(self, row: int) -> tuple[Finding, ...]:
        """What stands behind all rejections of the row."""
        return tuple(finding for status in self._failures.statuses(row) for finding in self.by(status.plugin, row))


def _own_words(status: Status) -> Fact:
    """A plugin that is not known here has said all it has to say."""
    is_passing = status.code is Code.UNSCHEDULABLE
    return Fact(
        status.plugin,
        ", ".join(sorted(status.reasons)) or "rejected without a reason",
        {"reasons": sorted(status.reasons)},
        NEAR if is_passing else FAR / 2,
        "",
        CauseKind.FEATURES if status.plugin == NodeDeclaredFeatures.name else CauseKind.PLUGIN,
        Nearness.LACKS if is_passing else Nearness.EXCLUDED,
    )


def hard_constraints(cluster: Cluster, pod: PodInfo, args: object) -> tuple[SpreadConstraint, ...]:
    """The pod's own hard constraints, or the profile's for a pod that has none; none if they cannot be understood."""
    known = args if isinstance(args, PodTopologySpreadArgs) else PodTopologySpreadArgs()
    try:
        return ConstraintSource(known, EngineHandle(cluster, ByName())).of(pod.pod, DO_NOT_SCHEDULE)
    except ConstraintError:
        return ()
