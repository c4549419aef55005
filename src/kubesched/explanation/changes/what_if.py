"""Tries changes out: the engine on the changed pod and the changed cluster, which is taken back as trials are.

A trial asks only whether and where the pod fits: its scheduler has the same plugins up to Filter, and none after it.
What a search knows beforehand (the pod, the cluster, every reason against each node) is a Situation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from kubesched.explanation.changes.change import (
    Action,
    Change,
    CreateNode,
    DeletePods,
    FreeOnNode,
    PatchNode,
    PatchOperation,
    PatchPod,
    Proposal,
    patched,
    put,
)
from kubesched.explanation.evidence import Failures
from kubesched.explanation.layout import exact
from kubesched.framework.pod_info import PodInfo
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.requests import node_units
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.undo import UndoLog
from kubesched.scheduler.engine.cycle import Decision, ProfileScheduler
from kubesched.scheduler.engine.score import ByName
from kubesched.scheduler.plugins.pod_topology_spread.constraints import SpreadConstraint

TRIES = 6
"""How many proposals of a kind are tried, smallest first, before the search gives up on that kind."""

_ALL_NODES = 100


class WhatIf:
    """Questions about one pod on one cluster."""

    def __init__(self, cluster: Cluster, scheduler: ProfileScheduler, pod: PodInfo) -> None:
        self.cluster = cluster
        self.pod = pod
        filters_only = replace(scheduler.profile, post_filter=[], pre_score=[], score=[])
        self._trial = ProfileScheduler(cluster, filters_only, ByName(), _ALL_NODES)

    def fits_on(self, actions: Iterable[Action]) -> tuple[str, ...]:
        """The nodes on which the pod would fit after these actions, by name; none if a plugin breaks."""
        with self._after(actions) as pod:
            decision = self._trial.decide(pod, complete=True)
            if decision.error or decision.filtered is None:
                return ()
            names = decision.filtered.nodes.names
            return tuple(sorted(names[position] for position in np.flatnonzero(decision.filtered.fits).tolist()))

    def first_that_helps(self, proposals: Iterable[Proposal], n_most: int = TRIES) -> Change | None:
        """The first of at most so many proposals after which the pod fits."""
        for proposal in islice(proposals, n_most):
            nodes = self.fits_on(proposal.actions)
            if nodes:
                return Change(proposal, proposal.node if proposal.node in nodes else nodes[0])
        return None

    @contextmanager
    def _after(self, actions: Iterable[Action]) -> Iterator[PodInfo]:
        """The changed pod, and for as long, the changed cluster."""
        changes = UndoLog(self.cluster)
        operations: list[PatchOperation] = []
        try:
            for action in actions:
                if isinstance(action, PatchPod):
                    operations.extend(action.operations)
                else:
                    carry_out(action, self.cluster, changes)
            yield self._changed_pod(operations)
        finally:
            changes.revert()

    def _changed_pod(self, operations: Sequence[PatchOperation]) -> PodInfo:
        if not operations:
            return self.pod
        return self.cluster.signatures.info(patched(self.pod.pod, operations))


def carry_out(action: PatchNode | FreeOnNode | DeletePods | CreateNode, cluster: Cluster, changes: UndoLog) -> None:
    """Does it, such that it can be taken back."""
    match action:
        case PatchNode(name, operations):
            changes.put_node(patched(cluster.table.nodes[cluster.table.rows[name]], operations))
        case FreeOnNode(name, amounts):
            changes.put_node(_with_more(cluster.table.nodes[cluster.table.rows[name]], dict(amounts)))
        case DeletePods(_, keys):
            for key in keys:
                changes.remove_pod(key)
        case CreateNode(manifest, taken=taken):
            changes.put_node(_with_more(manifest, {resource: -units for resource, units in taken.items()}))


def _with_more(node: Node, amounts: dict[str, int]) -> Node:
    """To a filter, less used and more allocatable are the same: as much more is free."""
    units = node_units(node.status.allocatable, "status.allocatable")
    operations = [
        put("status", "allocatable", resource, value=exact(resource, units.get(resource, 0) + more))
        for resource, more in amounts.items()
    ]
    return patched(node, operations)


@dataclass(frozen=True, slots=True)
class Situation:
    """A pod that fits nowhere."""

    cluster: Cluster
    scheduler: ProfileScheduler
    pod: PodInfo
    decision: Decision
    failures: Failures
    nominated_pods: Mapping[int, Sequence[PodInfo]]
    """Pods nominated to a row that this one must not overtake."""
    spread_constraints: Sequence[SpreadConstraint]
    what_if: WhatIf

    def name(self, row: int) -> str:
        return self.cluster.table.names[row]
