"""Looks for the smallest changes that would make a pod fit, kind by kind, each tried out on the engine.

A search stays within bounds however large the cluster is: what speaks against each node is known beforehand, so that
only nodes that fail for one thing (or few) are considered, and of these only the most promising are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kubesched.explanation.changes.adding import add_node
from kubesched.explanation.changes.change import Change, Proposal
from kubesched.explanation.changes.evictions import evict_pods, raise_priority
from kubesched.explanation.changes.fixes import Fixes
from kubesched.explanation.changes.freeing import free_resources
from kubesched.explanation.changes.moving import move_pods_in_the_way
from kubesched.explanation.changes.opening import tolerate_taints, uncordon_node
from kubesched.explanation.changes.relaxing import correct_labels, drop_node_affinity
from kubesched.explanation.changes.requests import lower_requests
from kubesched.explanation.changes.situation import Situation
from kubesched.explanation.changes.what_if import WhatIf
from kubesched.explanation.failing import LEFT_OUT, Failures, nominated_pods_by_row
from kubesched.framework.pod_info import PodInfo
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.cycle import Decision, ProfileScheduler
from kubesched.scheduler.plugins.inter_pod_affinity import InterPodAffinity
from kubesched.scheduler.plugins.node_affinity import NodeAffinity
from kubesched.scheduler.plugins.node_ports import NodePorts
from kubesched.scheduler.plugins.pod_topology_spread import PodTopologySpread
from kubesched.scheduler.plugins.pod_topology_spread.constraints import SpreadConstraint

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
    what_if = WhatIf(cluster, scheduler, pod)
    known = failures or Failures(len(cluster.nodes), {}, {}, decision.diagnosis_of_absent(), frozenset())
    nominated_pods = nominated_pods_by_row(cluster, pod)
    situation = Situation(cluster, scheduler, pod, decision, known, nominated_pods, spread_constraints, what_if)
    found = _against_rejection(situation) if failures is None else _against_failures(situation)
    by_actions: dict[str, Change] = {}
    for change in sorted(found, key=lambda change: change.proposal.acceptance):
        by_actions.setdefault(str(change.proposal.actions), change)
    return tuple(by_actions.values())


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
        *correct_labels(situation),
        *uncordon_node(situation),
        *tolerate_taints(situation),
        *lower_requests(situation),
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
