"""What a search for changes knows: the pod, the cluster, everything that speaks against each node, and how to try."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kubesched.explanation.changes.what_if import WhatIf
from kubesched.explanation.failing import Failures
from kubesched.framework.pod_info import PodInfo
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.cycle import Decision, ProfileScheduler
from kubesched.scheduler.plugins.pod_topology_spread.constraints import SpreadConstraint


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
