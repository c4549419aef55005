"""A class of pods that fits nowhere: why each node rejects them, kept up to date row by row.

As long as that stays so, the next pod of the class is turned down at once, with the same message, and preemption begins
with what is known of each node. Only for classes whose filters look at one node at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from kubesched.cluster import Cluster
from kubesched.engine.filter import FilterOutcome
from kubesched.engine.preemption.plans import PreemptionPlans
from kubesched.engine.prefilter import PreFilterOutcome
from kubesched.engine.profile import Profile
from kubesched.engine.row_check import check_row_with_nominated
from kubesched.framework.cycle import Cycle
from kubesched.framework.nodes import NodeTable
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.stages import FollowsPods, PodChange, Scope
from kubesched.framework.status import Code, Status
from kubesched.framework.verdicts import BoolArray

_MANY_ROWS = 200
"""With more changed rows than this, asking all plugins about all nodes is cheaper."""


@dataclass(slots=True)
class KeptRejections:
    """Why every node rejects the pod; takes the place of a `FilterOutcome`."""

    nodes: NodeTable
    statuses: list[Status]
    fits: BoolArray
    unresolvable: BoolArray
    _reasons: Counter[str] = field(default_factory=Counter)
    _plugins: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, outcome: FilterOutcome) -> KeptRejections:
        statuses = [outcome.status(row) for row in range(len(outcome.nodes))]
        kept = cls(outcome.nodes, statuses, outcome.fits.copy(), outcome.unresolvable.copy())
        for status in statuses:
            kept._count(status, 1)
        return kept

    def status(self, position: int) -> Status:
        return self.statuses[position]

    def reason_counts(self) -> dict[str, int]:
        return {reason: count for reason, count in self._reasons.items() if count}

    def rejecting_plugins(self) -> list[str]:
        return sorted(plugin for plugin, count in self._plugins.items() if count)

    def replace(self, row: int, status: Status) -> None:
        self._count(self.statuses[row], -1)
        self._count(status, 1)
        self.statuses[row] = status
        self.unresolvable[row] = status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE

    def _count(self, status: Status, by: int) -> None:
        self._plugins[status.plugin] += by
        for reason in status.reasons:
            self._reasons[reason] += by


@dataclass(slots=True)
class FailedClass:
    cluster: Cluster
    profile: Profile
    pod: PodInfo
    """Stands for any pod of the class: it has no uid, so every nominated pod is a rival."""
    cycle: Cycle
    prefilter: PreFilterOutcome
    rejections: KeptRejections
    plans: PreemptionPlans
    followers: list[FollowsPods]
    nodes_version: int
    objects_version: int
    pods_position: int
    nominations_position: int

    def catch_up(self) -> bool:
        """Takes in what changed; False if a node may let the pod in now, or the class has to be prepared anew."""
        journal, nominations = self.cluster.table.journal, self.cluster.nominations
        if journal.nodes_version != self.nodes_version or journal.objects_version != self.objects_version:
            return False
        changes = journal.since(self.pods_position)
        names = nominations.changed_since(self.nominations_position)
        if changes is None or names is None:
            return False
        rows = {row for row, _, _ in changes}
        rows.update(row for name in names if (row := self.cluster.table.rows.get(name)) is not None)
        if len(rows) > _MANY_ROWS or not self._follow(changes):
            return False
        self.pods_position, self.nominations_position = journal.position, nominations.position
        return all(self._still_rejects(row) for row in rows)

    def _follow(self, changes: Sequence[PodChange]) -> bool:
        return all(follower.pods_changed(self.cycle, self.pod, changes) for follower in self.followers)

    def _still_rejects(self, row: int) -> bool:
        self.plans.forget(row)
        status = check_row_with_nominated(self.cluster, self.profile, self.cycle, self.pod, row)
        if status.is_success:
            return False
        self.rejections.replace(row, status)
        return True


def failed_class(
    cluster: Cluster, profile: Profile, pod: PodInfo, cycle: Cycle, prefilter: PreFilterOutcome, outcome: FilterOutcome
) -> FailedClass | None:
    """From a search over all nodes that found none; None if its findings cannot be kept."""
    if len(outcome.nodes) != len(cluster.nodes) or outcome.fits.any():
        return None
    steps = [step for step in profile.filter if step.name not in cycle.skip_filter]
    if any(step.scope_for(pod) not in (Scope.NODE, Scope.ROW) for step in steps):
        return None
    stand_in = PodInfo(pod.pod, pod.shape)
    stand_in.uid = ""
    journal = cluster.table.journal
    return FailedClass(
        cluster=cluster,
        profile=profile,
        pod=stand_in,
        cycle=cycle.fork(),
        prefilter=prefilter,
        rejections=KeptRejections.of(outcome),
        plans=PreemptionPlans(cluster.table.names),
        followers=list(profile.followers.values()),
        nodes_version=journal.nodes_version,
        objects_version=journal.objects_version,
        pods_position=journal.position,
        nominations_position=cluster.nominations.position,
    )
