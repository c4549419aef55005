"""A class of pods that fits nowhere: why each node rejects them, kept up to date row by row.

As long as that stays so, the next pod of the class is rejected at once, with the same message, and preemption begins
with what is known of each node. Where a row lets the pod in, it is open: with one such row the search is over before it
begins, and when it is taken, the class fits nowhere again. Only for classes whose filters look at one node at a time.

A row whose node was rejected by a plugin that looks at the node alone is not asked again while nodes stay as they are;
of the others, only the plugins behind these are asked. About a row with nominated pods they are asked twice, on an
imagined node; where they look at amounts alone, that is done once for all rows with the same amounts and the same
nominated pods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np

from kubesched.framework.caching import WITHIN_NODE, Scope
from kubesched.framework.cycle_state import CycleState
from kubesched.framework.nodes import NodeTable, RowArray
from kubesched.framework.pod_info import PodInfo, PodSignature
from kubesched.framework.results import PostFilterResult
from kubesched.framework.status import OK, Code, Status
from kubesched.k8s.model.core import PodDisruptionBudget
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.cluster.journal import Journal, Places
from kubesched.scheduler.cluster.view import NodeRow
from kubesched.scheduler.engine.class_cache.layers import Followers, following, needs_reserve, objects_do_not_matter
from kubesched.scheduler.engine.filter import FilterOutcome
from kubesched.scheduler.engine.postfilter import Diagnosis
from kubesched.scheduler.engine.preemption.candidates import PreemptionPlans
from kubesched.scheduler.engine.prefilter import PreFilterOutcome
from kubesched.scheduler.engine.profile import FilterStep, Profile
from kubesched.scheduler.engine.row_check import check_node, imagined_with, node_steps, nominated_pods_on

_MANY_ROWS = 200
"""With more changed rows than this, asking all plugins about all nodes is cheaper."""
_MANY_OPEN = 32
"""With more rows that let the pod in, there is room, and what is kept here is of no use for a while."""
_MOST_ALIKE = 4096

_Alike = tuple[int, tuple[PodSignature, ...]]
"""The code of a row's amounts, and the pods nominated to it."""


class KeptRejections:
    """Why every node rejects the pod; takes the place of a `FilterOutcome`. Many nodes reject it alike: a row has the
    number of its status, and each status the number of rows that have it."""

    __slots__ = (
        "_kind_of",
        "_kinds",
        "_n_rows",
        "_rejecting",
        "_resolvable",
        "_statuses",
        "fits",
        "messages",
        "nodes",
        "unresolvable",
    )

    def __init__(self, outcome: FilterOutcome) -> None:
        """Of a search over all nodes that found none."""
        self.nodes: NodeTable = outcome.nodes
        self.fits = outcome.fits.copy()
        self.unresolvable = outcome.unresolvable.copy()
        kinds, self._statuses = outcome.kinds()
        self._n_rows: list[int] = np.bincount(kinds, minlength=len(self._statuses)).tolist()
        self._kinds: memoryview[int] = kinds.data
        self._kind_of = {status: kind for kind, status in enumerate(self._statuses)}
        self._resolvable: RowArray | None = None
        self._rejecting: list[str] | None = None
        self.messages: dict[str, str] = {}
        """What was said of them, by what PostFilter added; until one of them changes."""

    def resolvable(self) -> RowArray:
        if self._resolvable is None:
            self._resolvable = np.flatnonzero(~(self.fits | self.unresolvable))
        return self._resolvable

    def status(self, position: int) -> Status:
        return self._statuses[self._kinds[position]]

    def reason_counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for status, n_rows in zip(self._statuses, self._n_rows, strict=True):
            if n_rows:
                for reason in status.reasons:
                    counts[reason] = counts.get(reason, 0) + n_rows
        return counts

    def rejecting_plugins(self) -> list[str]:
        if self._rejecting is None:
            kinds = zip(self._statuses, self._n_rows, strict=True)
            self._rejecting = sorted({status.plugin for status, n_rows in kinds if n_rows and status is not OK})
        return self._rejecting

    def replace(self, row: int, status: Status) -> None:
        before = self._kinds[row]
        known = self._statuses[before]
        if status is known or status == known:
            return
        kind = self._kind_of.get(status)
        if kind is None:
            kind = self._kind_of[status] = len(self._statuses)
            self._statuses.append(status)
            self._n_rows.append(0)
        self._kinds[row] = kind
        self._n_rows[before] -= 1
        self._n_rows[kind] += 1
        self._rejecting = None
        self.messages.clear()
        is_unresolvable = status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        if self.unresolvable[row] != is_unresolvable:
            self.unresolvable[row] = is_unresolvable
            self._resolvable = None


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
    needs_reserve: bool
    """Whether plugins have something to reserve, or to do before the pod is bound."""
    by_node: frozenset[str]
    """Plugins that look at the node alone and come before all others: where one of them rejects, it keeps doing so."""
    steps: Sequence[FilterStep]
    """The filters behind these."""
    of_alike: dict[_Alike, Status] | None
    """What these say of rows that are alike; None if they look at more than amounts."""
    followers: Followers
    places: Places
    nominations_position: int
    open_rows: set[int] = field(default_factory=set)
    """Rows that let the pod in now, beside the pods nominated to them."""
    told: tuple[Diagnosis, PostFilterResult] | None = None
    """What the last attempt came to, if the next one comes to the same as long as nothing changes."""

    def catch_up(self) -> bool:
        """Takes in what changed; False if the class has to be prepared again."""
        journal, nominations = self.cluster.table.journal, self.cluster.nominations
        places = self.places
        if (
            places.pods == journal.pods.end
            and places.nodes == journal.nodes.end
            and places.objects == journal.objects.end
            and self.nominations_position == nominations.changed.end
        ):
            return True
        self.told = None
        if places.nodes != journal.nodes.end:
            return False
        if places.objects != journal.objects.end and not self._objects_do_not_matter(journal):
            return False
        changes = journal.pods.since(places.pods)
        names = nominations.changed.since(self.nominations_position)
        if changes is None or names is None:
            return False
        rows = {row for row, _, _ in changes}
        rows.update(row for name in names if (row := self.cluster.table.rows.get(name)) is not None)
        if len(rows) > _MANY_ROWS:
            return False
        for follower in self.followers.of_changes(journal.pods, places.pods):
            if not follower.pods_changed(self.cycle, self.pod, changes):
                return False
        self.places, self.nominations_position = journal.places, nominations.changed.end
        for row in rows:
            self._ask(row)
        return len(self.open_rows) <= _MANY_OPEN

    def _objects_do_not_matter(self, journal: Journal) -> bool:
        changed = journal.objects.since(self.places.objects)
        if changed is None or not objects_do_not_matter(self.profile, self.cycle, self.pod, changed):
            return False
        if any(isinstance(item, PodDisruptionBudget) for item in changed):
            self.plans = PreemptionPlans(self.cluster.table.n, self.cluster.name_order)
        return True

    def _ask(self, row: int) -> None:
        """The pods on the row, or those nominated to it, changed."""
        self.plans.forget(row)
        if self.rejections.status(row).plugin in self.by_node:
            return
        cluster = self.cluster
        nominations, table = cluster.nominations, cluster.table
        nominated_pods = nominated_pods_on(cluster, self.pod, table.names[row]) if nominations.node_by_uid else []
        if not nominated_pods or self.of_alike is None:
            status = self._checked(row, nominated_pods)  # without nominated pods as fast as finding out what is alike
        else:
            alike = table.amount_codes.code(row), tuple([pod.signature for pod in nominated_pods])
            known = self.of_alike.get(alike)
            if known is None:
                if len(self.of_alike) >= _MOST_ALIKE:
                    self.of_alike.clear()
                known = self.of_alike[alike] = self._checked(row, nominated_pods)
            status = known
        self.rejections.replace(row, status)
        if status is OK:
            self.open_rows.add(row)
        else:
            self.open_rows.discard(row)

    def _checked(self, row: int, nominated_pods: Sequence[PodInfo]) -> Status:
        """Beside the pods nominated to the row, and without them."""
        node = NodeRow(self.cluster.table, row)
        if nominated_pods:
            status = check_node(self.steps, self.cycle, self.pod, imagined_with(nominated_pods, node))
            if status is not OK:
                return status
        return check_node(self.steps, self.cycle, self.pod, node)


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
    if any(step.filter_node is None or step.scope_for(pod) not in WITHIN_NODE for step in steps):
        return None
    stand_in = PodInfo(pod.pod, pod.signature)
    stand_in.uid = ""
    kept_cycle = cycle.fork()
    node_steps(profile, kept_cycle, pod)  # which every attempt asks for
    by_node = list(takewhile(lambda step: step.scope_for(pod) is Scope.NODE, steps))
    behind = steps[len(by_node) :]
    return FailedClass(
        cluster=cluster,
        profile=profile,
        pod=stand_in,
        cycle=kept_cycle,
        prefilter=prefilter,
        rejections=KeptRejections(outcome),
        plans=PreemptionPlans(cluster.table.n, cluster.name_order),
        needs_reserve=needs_reserve(profile, pod),
        by_node=frozenset(step.name for step in by_node),
        steps=behind,
        of_alike={} if all(step.scope_for(pod) is Scope.AMOUNTS for step in behind) else None,
        followers=following(profile.followers.values(), cycle, pod),
        places=cluster.table.journal.places,
        nominations_position=cluster.nominations.changed.end,
    )
