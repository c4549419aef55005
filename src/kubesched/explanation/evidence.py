"""The reasons against each node: every filter asked about every node, and the numbers behind every rejection.

The scheduler stops at the first plugin that rejects a node. Whoever wants to make a pod fit needs the rest, too: a node
that lacks memory behind a taint is not helped by a toleration. `Evidence` asks, for each plugin that rejects a node,
the module of `findings` that knows that plugin; plugins that are not known there have said all they have to say.

Next: `findings`; `groups`, which puts nodes together of which the same is true.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from kubesched.explanation.findings.devices import DevicesOfNodes
from kubesched.explanation.findings.finding import (
    FAR,
    NEAR,
    CauseKind,
    Fact,
    Finding,
    FindingSource,
    Nearness,
    ResourceShortages,
    lacking,
)
from kubesched.explanation.findings.node_affinity import UnmetNodeAffinity
from kubesched.explanation.findings.pod_affinity import UnmetPodAffinity
from kubesched.explanation.findings.spread import SkewedDomains
from kubesched.explanation.findings.taints import Cordoned, TakenPorts, UntoleratedTaints
from kubesched.explanation.findings.volumes import AttachedVolumes, LabelledVolumes, PlacedVolumes, VolumesInUse
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import NodeTable, RowArray
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Code, Status
from kubesched.framework.verdicts import ACCEPT_ALL, BoolArray, Verdicts
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.config import PodTopologySpreadArgs
from kubesched.scheduler.engine.filter import ask, change_state
from kubesched.scheduler.engine.handle import EngineHandle
from kubesched.scheduler.engine.plugin_call import PluginError
from kubesched.scheduler.engine.postfilter import absent_status
from kubesched.scheduler.engine.prefilter import PreFilterOutcome, run_pre_filter
from kubesched.scheduler.engine.profile import FilterStep, Profile
from kubesched.scheduler.engine.row_check import nominated_pods_on
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

LEFT_OUT = ""
"""Stands for the plugin's name on nodes that PreFilter left out of the search and no filter rejects."""


class Failures:
    """Rejections by plugin and row of the whole table; plugins in the order of the profile.

    `crowded` has the rows with nominated pods, and the reasons against them beside those pods; `left_out` is
    what is said of the rows that PreFilter left out.
    """

    def __init__(
        self,
        n_nodes: int,
        verdicts: Mapping[str, Verdicts],
        crowded: Mapping[int, tuple[Status, ...]],
        left_out: Status,
        left_out_rows: frozenset[int],
    ) -> None:
        self.n_nodes = n_nodes
        self.crowded = crowded
        self._verdicts = {plugin: found for plugin, found in verdicts.items() if found is not ACCEPT_ALL}
        self._left_out = left_out
        self._left_out_rows = left_out_rows
        self._order = {plugin: index for index, plugin in enumerate(verdicts)}
        self._masks = {plugin: self._mask(plugin) for plugin in verdicts}

    def verdicts_of(self, plugin: str) -> Verdicts:
        """What a plugin said of the nodes as they are, without the pods nominated to them."""
        return self._verdicts.get(plugin, ACCEPT_ALL)

    def statuses(self, row: int) -> tuple[Status, ...]:
        """Every rejection of this node, in the order of the profile."""
        found = {
            plugin: said.status(row).by(plugin) for plugin, said in self._verdicts.items() if self._said[plugin][row]
        }
        found.update((status.plugin, status) for status in self.crowded.get(row, ()))
        if not found and row in self._left_out_rows:
            return (self._left_out,)
        return tuple(sorted(found.values(), key=lambda status: self._order[status.plugin]))

    def patterns(self, rows: Sequence[int]) -> Iterator[tuple[tuple[Status, ...], list[int]]]:
        """The rows by the reasons against them: nodes with the same rejections share them, so that a large cluster is
        no longer in the telling than a small one."""
        special = {*self.crowded, *self._left_out_rows}
        for said in self._verdicts.values():
            special.update(said.errors)
        plain = np.array([row for row in rows if row not in special], dtype=np.intp)
        if len(plain) and self._verdicts:
            columns = [np.vstack([said.bits, said.unresolvable]) for said in self._verdicts.values()]
            packed = np.packbits(np.vstack(columns)[:, plain], axis=0).T
            _, own = np.unique(packed, axis=0, return_inverse=True)
            own = own.reshape(-1)
            for number in range(int(own.max()) + 1):
                alike = plain[own == number].tolist()
                yield self.statuses(alike[0]), alike
        for row in rows:
            if row in special:
                yield self.statuses(row), [row]

    def rejected_by(self, plugin: str) -> BoolArray:
        """(n_nodes,) the nodes that this plugin rejects."""
        return self._masks.get(plugin, np.zeros(self.n_nodes, dtype=np.bool_))

    def rejecting(self) -> tuple[str, ...]:
        """The plugins that reject any node."""
        return tuple(plugin for plugin, mask in self._masks.items() if mask.any())

    def only(self, plugins: Iterable[str]) -> RowArray:
        """Rows that these plugins reject, and no other does."""
        wanted = set(plugins)
        mask = np.zeros(self.n_nodes, dtype=np.bool_)
        for plugin in wanted & self._masks.keys():
            mask |= self._masks[plugin]
        for plugin in self._masks.keys() - wanted:
            mask &= ~self._masks[plugin]
        if LEFT_OUT not in wanted:
            mask[list(self._left_out_rows)] = False
        return np.flatnonzero(mask)

    def n_failing(self) -> RowArray:
        """(n_nodes,) how many plugins reject each node."""
        total = np.zeros(self.n_nodes, dtype=np.intp)
        for mask in self._masks.values():
            total += mask
        return total

    @cached_property
    def _said(self) -> dict[str, BoolArray]:
        """Who rejects whom, without the pods nominated to nodes."""
        return {plugin: said.rejected for plugin, said in self._verdicts.items()}

    def _mask(self, plugin: str) -> BoolArray:
        mask = self._said[plugin].copy() if plugin in self._verdicts else np.zeros(self.n_nodes, dtype=np.bool_)
        for row, statuses in self.crowded.items():
            mask[row] |= any(status.plugin == plugin for status in statuses)
        return mask


def find_failures(cluster: Cluster, profile: Profile, pod: PodInfo) -> Failures | None:
    """Asks every filter about every node; None if the pod is rejected as a whole, before any node is looked at."""
    nodes = cluster.nodes
    cycle = CycleState()
    try:
        prefilter = run_pre_filter(profile, cycle, pod, nodes)
    except PluginError:
        return None
    if not prefilter.status.is_success:
        return None
    verdicts = {
        plugin.name: _ask_all(plugin, cycle, pod, nodes)
        for plugin in profile.filter
        if plugin.name not in cycle.skip_filter
    }
    left_out = _left_out_rows(prefilter, nodes)
    crowded = {
        row: _crowded_statuses(cluster, profile, cycle, pod, row, nominated_pods)
        for row, nominated_pods in nominated_pods_by_row(cluster, pod).items()
        if row not in left_out
    }
    return Failures(len(nodes), verdicts, crowded, absent_status(prefilter), left_out)


def nominated_pods_by_row(cluster: Cluster, pod: PodInfo) -> dict[int, Sequence[PodInfo]]:
    """Pods nominated to a node that this one must not overtake, by the node's row."""
    found: dict[int, Sequence[PodInfo]] = {}
    for node_name in cluster.nominations.node_names():
        row = cluster.table.rows.get(node_name)
        nominated_pods = nominated_pods_on(cluster, pod, node_name)
        if row is not None and nominated_pods:
            found[row] = nominated_pods
    return found


def _ask_all(plugin: FilterStep, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Verdicts:
    """A plugin's verdicts; one that breaks rejects every node with what it said."""
    try:
        return ask(plugin, cycle, pod, nodes)
    except PluginError as bug:
        return Verdicts.from_statuses([Status.error(bug.message)] * len(nodes))


def _crowded_statuses(
    cluster: Cluster, profile: Profile, cycle: CycleState, pod: PodInfo, row: int, nominated_pods: Sequence[PodInfo]
) -> tuple[Status, ...]:
    alone = cluster.nodes.take(np.array([row]))
    found = []
    with cluster.with_pods(nominated_pods, row):
        for nominated_pod in nominated_pods:
            change_state(profile, cycle, pod, nominated_pod, cluster, row, adding=True)
        for plugin in profile.filter:
            if plugin.name in cycle.skip_filter:
                continue
            verdicts = _ask_all(plugin, cycle, pod, alone)
            if verdicts is not ACCEPT_ALL and not verdicts.status(0).is_success:
                found.append(verdicts.status(0).by(plugin.name))
        for nominated_pod in reversed(nominated_pods):
            change_state(profile, cycle, pod, nominated_pod, cluster, row, adding=False)
    return tuple(found)


def _left_out_rows(prefilter: PreFilterOutcome, nodes: NodeTable) -> frozenset[int]:
    if prefilter.node_names is None:
        return frozenset()
    searched = {nodes.row_of(name) for name in prefilter.node_names}
    return frozenset(row for row in nodes.rows.tolist() if row not in searched)


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
        if status.plugin == NodeResourcesFit.name:
            short = tuple(self.shortages.shortage(row, resource) for resource in lacking(status.reasons))
            return short or (_own_words(status),)
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
