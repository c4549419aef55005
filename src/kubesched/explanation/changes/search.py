"""Looks for the smallest changes that would make a pod fit, kind by kind, each tried out on the engine.

A search stays within bounds however large the cluster is: the reasons against each node are known beforehand, so that
only nodes that fail for one thing (or few) are considered, and of these only the most promising are tried. A fix
answers one plugin's rejection of one node; for a node that fails for several, the fixes of all are a combined change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from kubesched.explanation.changes.adding import add_node
from kubesched.explanation.changes.freeing import (
    evict_pods,
    free_resources,
    move_pods_in_the_way,
    propose_freeing,
    propose_tolerations,
    propose_uncordoning,
    raise_priority,
    tolerate_taints,
    uncordon_node,
)
from kubesched.explanation.changes.relaxing import (
    correct_slips,
    drop_node_affinity,
    label_node,
    lower_min_domains,
    propose_node_affinity,
    propose_pod_affinity,
    propose_ports,
    propose_spread,
)
from kubesched.explanation.changes.requests import lower_requests, propose_requests
from kubesched.explanation.changes.what_if import Change, ChangeKind, Proposal, Reluctance, Situation, WhatIf
from kubesched.explanation.evidence import LEFT_OUT, Failures, nominated_pods_by_row
from kubesched.explanation.findings.pod_affinity import UnmetPodAffinity
from kubesched.explanation.findings.spread import domain_counts
from kubesched.framework.pod_info import PodInfo
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.cycle import Decision, ProfileScheduler
from kubesched.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from kubesched.scheduler.plugins.node_affinity import NodeAffinity
from kubesched.scheduler.plugins.node_ports import NodePorts
from kubesched.scheduler.plugins.node_resources_fit import NodeResourcesFit
from kubesched.scheduler.plugins.node_unschedulable import NodeUnschedulable
from kubesched.scheduler.plugins.pod_topology_spread import PodTopologySpread
from kubesched.scheduler.plugins.pod_topology_spread.constraints import SpreadConstraint
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


ROWS_CONSIDERED = 500
"""Nodes for which fixes are worked out, of those that fail for a plugin or a combination."""

_RELAXED = (NodeAffinity.name, NodePorts.name, PodTopologySpread.name, InterPodAffinity.name)


def smallest_changes(
    cluster: Cluster,
    scheduler: ProfileScheduler,
    pod: PodInfo,
    decision: Decision,
    failures: Failures | None,
    spread_constraints: Sequence[SpreadConstraint],
) -> tuple[Change, ...]:
    """The smallest change of each kind, the most acceptable first. The cluster is changed for each trial, and changed
    back."""
    known = failures or Failures(len(cluster.nodes), {}, {}, decision.diagnosis_of_absent(), frozenset())
    situation = _situation(cluster, scheduler, pod, decision, known, spread_constraints)
    found = _against_rejection(situation) if failures is None else _against_failures(situation)
    by_actions: dict[str, Change] = {}
    for change in sorted(found, key=lambda change: change.proposal.acceptance):
        by_actions.setdefault(str(change.proposal.actions), change)
    return tuple(by_actions.values())


def smallest_change_on(
    node: str,
    cluster: Cluster,
    scheduler: ProfileScheduler,
    pod: PodInfo,
    decision: Decision,
    failures: Failures,
    spread_constraints: Sequence[SpreadConstraint],
) -> Change | None:
    """The most acceptable change after which the pod fits on this very node, of those that were tried."""
    situation = _situation(cluster, scheduler, pod, decision, failures, spread_constraints)
    row = cluster.table.rows[node]
    fixes = Fixes(situation)
    plugins = [status.plugin for status in failures.statuses(row)]
    proposals = fixes.of_plugin(plugins[0], [row]) if len(plugins) == 1 and plugins[0] in fixes.plugins else []
    whole = fixes.of_row(row)
    proposals.extend([] if whole is None or proposals else [whole])
    for proposal in sorted(proposals, key=lambda proposal: proposal.acceptance):
        if node in situation.what_if.fits_on(proposal.actions):
            return Change(proposal, node)
    return None


def _situation(
    cluster: Cluster,
    scheduler: ProfileScheduler,
    pod: PodInfo,
    decision: Decision,
    failures: Failures,
    spread_constraints: Sequence[SpreadConstraint],
) -> Situation:
    what_if, nominated_pods = WhatIf(cluster, scheduler, pod), nominated_pods_by_row(cluster, pod)
    return Situation(cluster, scheduler, pod, decision, failures, nominated_pods, spread_constraints, what_if)


def _against_rejection(situation: Situation) -> list[Change]:
    """Changes for a pod that was rejected as a whole."""
    found = evict_pods(situation)
    prefilter = situation.decision.prefilter
    if prefilter is not None and prefilter.status.plugin == NodeAffinity.name:
        proposal = drop_node_affinity(situation, row=0)
        change = situation.what_if.first_that_helps([] if proposal is None else [proposal])
        found.extend([] if change is None else [change])
    return found


def _against_failures(situation: Situation) -> list[Change]:
    """Changes for a pod that every node was looked at for."""
    found = [
        *correct_slips(situation),
        *label_node(situation),
        *uncordon_node(situation),
        *tolerate_taints(situation),
        *lower_requests(situation),
        *lower_min_domains(situation, domain_counts(situation.cluster, situation.pod, situation.spread_constraints)),
        *_relaxations(situation),
    ]
    if all(change.proposal.is_drastic for change in found):
        found.extend(_combinations(situation, drastic_too=not found))
    for search in (free_resources, move_pods_in_the_way, evict_pods, raise_priority, add_node):
        found.extend(search(situation))
    return found


def _relaxations(situation: Situation) -> Iterator[Change]:
    """For each plugin that has terms to relax, the smallest relaxation that helps."""
    fixes = Fixes(situation)
    rejecting = situation.failures.rejecting()
    for plugin in _RELAXED:
        if plugin in rejecting:
            wanted = {plugin, LEFT_OUT} if plugin == NodeAffinity.name else {plugin}
            rows = situation.failures.only(wanted)[:ROWS_CONSIDERED].tolist()
            change = situation.what_if.first_that_helps(fixes.of_plugin(plugin, rows))
            if change is not None:
                yield change


def _combinations(situation: Situation, *, drastic_too: bool) -> list[Change]:
    """No change of one kind helps: the smallest combination for a single node, if there is one."""
    failures = situation.failures
    fixes = Fixes(situation)
    hopeful = failures.n_failing() > 1
    for plugin in set(failures.rejecting()) - fixes.plugins:
        hopeful &= ~failures.rejected_by(plugin)
    rows = np.flatnonzero(hopeful)
    rows = rows[np.argsort(failures.n_failing()[rows], kind="stable")][:ROWS_CONSIDERED]
    found: dict[str, Proposal] = {}
    for row in rows.tolist():
        proposal = fixes.of_row(row)
        if proposal is not None and (drastic_too or not proposal.is_drastic):
            found.setdefault(str(proposal.actions), proposal)
    change = situation.what_if.first_that_helps(sorted(found.values(), key=lambda proposal: proposal.size))
    return [] if change is None else [change]
