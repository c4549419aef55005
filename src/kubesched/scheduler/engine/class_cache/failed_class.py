"""A class of pods that fits nowhere: why each node rejects them, kept up to date row by row.

As long as that stays so, the next pod of the class is rejected at once, with the same message, and preemption begins
with what is known of each node. Only for classes whose filters look at one node at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from kubesched.framework.caching import WITHIN_NODE, PodChange
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import NodeTable, RowArray
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Code, Status
from kubesched.framework.verdicts import BoolArray
from kubesched.k8s.model.core import PodDisruptionBudget
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.journal import Journal, Places
from kubesched.scheduler.engine.class_cache.layers import objects_do_not_matter
from kubesched.scheduler.engine.filter import FilterOutcome
from kubesched.scheduler.engine.preemption.plans import PreemptionPlans
from kubesched.scheduler.engine.prefilter import PreFilterOutcome
from kubesched.scheduler.engine.profile import Profile
from kubesched.scheduler.engine.row_check import check_row_with_nominated

_MANY_ROWS = 200
"""With more changed rows than this, asking all plugins about all nodes is cheaper."""


@dataclass(slots=True)
class KeptRejections:
    """Why every node rejects the pod; takes the place of a `FilterOutcome`."""

    outcome: FilterOutcome
    """Of the search that found no node."""
    fits: BoolArray
    unresolvable: BoolArray
    _since: dict[int, Status] = field(default_factory=dict)
    """Where that is another now."""
    _reasons: Counter[str] = field(default_factory=Counter)
    _plugins: Counter[str] = field(default_factory=Counter)
    _resolvable: RowArray | None = None
    _rejecting: list[str] | None = None
    messages: dict[str, str] = field(default_factory=dict)
    """What was said of them, by what PostFilter added; until one of them changes."""

    @classmethod
    def of(cls, outcome: FilterOutcome) -> KeptRejections:
        kept = cls(outcome, outcome.fits.copy(), outcome.unresolvable.copy())
        kept._reasons.update(outcome.reason_counts())
        kept._plugins.update(outcome.plugin_counts())
        return kept

    @property
    def nodes(self) -> NodeTable:
        return self.outcome.nodes

    def resolvable(self) -> RowArray:
        if self._resolvable is None:
            self._resolvable = np.flatnonzero(~(self.fits | self.unresolvable))
        return self._resolvable

    def status(self, position: int) -> Status:
        return self._since.get(position) or self.outcome.status(position)

    def reason_counts(self) -> dict[str, int]:
        return {reason: count for reason, count in self._reasons.items() if count}

    def rejecting_plugins(self) -> list[str]:
        if self._rejecting is None:
            self._rejecting = sorted(plugin for plugin, count in self._plugins.items() if count)
        return self._rejecting

    def replace(self, row: int, status: Status) -> None:
        before = self.status(row)
        if status == before:
            return
        self._count(before, -1)
        self._count(status, 1)
        self._rejecting = None
        self.messages.clear()
        self._since[row] = status
        is_unresolvable = status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        if self.unresolvable[row] != is_unresolvable:
            self.unresolvable[row] = is_unresolvable
            self._resolvable = None

    def _count(self, status: Status, by: int) -> None:
        self._plugins[status.plugin] += by
        for reason in status.reasons:
            self._reasons[reason] += by


@dataclass(slots=True)
class FailedClass:
    cluster: Cluster
    profile: Profile
    pod: PodInfo
    """Stands for any pod of the class: it has no uid, so every nominated pod counts as another."""
    cycle: CycleState
    prefilter: PreFilterOutcome
    rejections: KeptRejections
    plans: PreemptionPlans
    places: Places
    nominations_position: int

    def catch_up(self) -> bool:
        """Takes in what changed; False if a node may let the pod in now, or the class has to be prepared anew."""
        journal, nominations = self.cluster.table.journal, self.cluster.nominations
        places = self.places
        if places.nodes != journal.nodes.end:
            return False
        if places.objects != journal.objects.end and not self._objects_do_not_matter(journal):
            return False
        if places.pods == journal.pods.end and self.nominations_position == nominations.changed.end:
            return True
        changes = journal.pods.since(places.pods)
        names = nominations.changed.since(self.nominations_position)
        if changes is None or names is None:
            return False
        rows = {row for row, _, _ in changes}
        rows.update(row for name in names if (row := self.cluster.table.rows.get(name)) is not None)
        if len(rows) > _MANY_ROWS or not self._follow(changes):
            return False
        self.places, self.nominations_position = journal.places, nominations.changed.end
        return all(self._still_rejects(row) for row in rows)

    def _objects_do_not_matter(self, journal: Journal) -> bool:
        changed = journal.objects.since(self.places.objects)
        if changed is None or not objects_do_not_matter(self.profile, self.cycle, self.pod, changed):
            return False
        if any(isinstance(item, PodDisruptionBudget) for item in changed):
            self.plans = PreemptionPlans(self.cluster.table.names)
        return True

    def _follow(self, changes: Sequence[PodChange]) -> bool:
        followers = self.profile.followers.values()
        return all(follower.pods_changed(self.cycle, self.pod, changes) for follower in followers)

    def _still_rejects(self, row: int) -> bool:
        self.plans.forget(row)
        status = check_row_with_nominated(self.cluster, self.profile, self.cycle, self.pod, row)
        if status.is_success:
            return False
        self.rejections.replace(row, status)
        return True


def failed_class(
    cluster: Cluster,
    profile: Profile,
    pod: PodInfo,
    cycle: CycleState,
    prefilter: PreFilterOutcome,
    outcome: FilterOutcome,
) -> FailedClass | None:
    """From a search over all nodes that found none; None if its findings cannot be kept."""
    if len(outcome.nodes) != len(cluster.nodes) or outcome.fits.any():
        return None
    steps = [step for step in profile.filter if step.name not in cycle.skip_filter]
    if any(step.scope_for(pod) not in WITHIN_NODE for step in steps):
        return None
    stand_in = PodInfo(pod.pod, pod.signature)
    stand_in.uid = ""
    return FailedClass(
        cluster=cluster,
        profile=profile,
        pod=stand_in,
        cycle=cycle.fork(),
        prefilter=prefilter,
        rejections=KeptRejections.of(outcome),
        plans=PreemptionPlans(cluster.table.names),
        places=cluster.table.journal.places,
        nominations_position=cluster.nominations.changed.end,
    )
