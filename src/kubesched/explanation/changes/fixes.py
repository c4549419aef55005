"""Node by node: what would have to change for a node to take the pod, plugin by plugin.

A fix answers one plugin's rejection of one node. Nodes that fail for one plugin need one fix; for others, the fixes
of all their plugins together are a combined change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from kubesched.explanation.changes.change import ChangeKind, Proposal, Reluctance
from kubesched.explanation.changes.freeing import propose_freeing
from kubesched.explanation.changes.opening import propose_tolerations, propose_uncordoning
from kubesched.explanation.changes.relaxing import propose_node_affinity, propose_pod_affinity, propose_ports
from kubesched.explanation.changes.requests import propose_requests
from kubesched.explanation.changes.situation import Situation
from kubesched.explanation.changes.spreading import propose_spread
from kubesched.explanation.failing import LEFT_OUT
from kubesched.explanation.findings.pod_affinity import UnmetPodAffinity
from kubesched.explanation.findings.spread import domain_counts
from kubesched.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from kubesched.scheduler.plugins.node_affinity import NodeAffinity
from kubesched.scheduler.plugins.node_ports import NodePorts
from kubesched.scheduler.plugins.node_resources_fit import NodeResourcesFit
from kubesched.scheduler.plugins.node_unschedulable import NodeUnschedulable
from kubesched.scheduler.plugins.pod_topology_spread import PodTopologySpread
from kubesched.scheduler.plugins.taint_toleration import TaintToleration

Fix = Callable[[int], Proposal | None]
"""What to change for a row; None if this plugin's rejection of it cannot be undone that way."""


class Fixes:
    """The fixes for one pod, by plugin."""

    def __init__(self, situation: Situation) -> None:
        self._situation = situation
        pod_affinity = UnmetPodAffinity(situation.cluster, situation.pod, situation.nominated_pods)
        counts = domain_counts(situation.cluster, situation.pod, situation.spread_constraints)
        self._by_plugin: dict[str, Sequence[Fix]] = {
            NodeUnschedulable.name: [partial(propose_uncordoning, situation)],
            TaintToleration.name: [partial(propose_tolerations, situation)],
            NodeAffinity.name: [partial(propose_node_affinity, situation)],
            LEFT_OUT: [partial(propose_node_affinity, situation)],
            NodePorts.name: [partial(propose_ports, situation)],
            PodTopologySpread.name: [partial(propose_spread, situation, counts=counts)],
            InterPodAffinity.name: [partial(propose_pod_affinity, situation, unmet_terms=pod_affinity)],
            NodeResourcesFit.name: [partial(propose_requests, situation), partial(propose_freeing, situation)],
        }

    @property
    def plugins(self) -> frozenset[str]:
        """The plugins whose rejections can be undone."""
        return frozenset(self._by_plugin)

    def of_plugin(self, plugin: str, rows: Iterable[int]) -> list[Proposal]:
        """The different fixes of these rows, smallest first."""
        found: dict[str, Proposal] = {}
        for row in rows:
            for fix in self._by_plugin[plugin]:
                proposal = fix(row)
                if proposal is not None:
                    found.setdefault(str(proposal.actions), proposal)
        return sorted(found.values(), key=lambda proposal: proposal.size)

    def of_row(self, row: int) -> Proposal | None:
        """All fixes that the row needs, as one proposal; None if something about it cannot be undone."""
        parts = []
        is_cordoned = self._situation.cluster.table.nodes[row].spec.unschedulable
        for status in self._situation.failures.statuses(row):
            proposal = self._first_fix(status.plugin, row)
            if proposal is not None:
                parts.append(proposal)
            elif not (is_cordoned and status.plugin == TaintToleration.name):
                return None  # uncordoning takes the one taint away that needs no toleration
        return combined(parts) if parts else None

    def _first_fix(self, plugin: str, row: int) -> Proposal | None:
        for fix in self._by_plugin.get(plugin, ()):
            proposal = fix(row)
            if proposal is not None:
                return proposal
        return None


def combined(parts: Sequence[Proposal]) -> Proposal:
    if len(parts) == 1:
        return parts[0]
    return Proposal(
        kind=ChangeKind.COMBINED,
        description=" and ".join(part.description for part in parts),
        node=parts[0].node,
        actions=tuple(action for part in parts for action in part.actions),
        details={"parts": [{"kind": p.kind.value, "description": p.description, **p.details} for p in parts]},
        n_edits=sum(part.n_edits for part in parts),
        cost=sum(part.cost for part in parts),
        reluctance=max(Reluctance.MUCH, *(part.reluctance for part in parts)),
        cost_to_others="; ".join(dict.fromkeys(part.cost_to_others for part in parts if part.cost_to_others)),
        is_drastic=any(part.is_drastic for part in parts),
    )
