"""Preemption for a whole pod group: who has to leave the cluster so that the group fits?

Victims are *units*: a group that is disrupted as a whole counts as one, every other pod by itself. All units of lower
priority than the group are taken away. If it fits then, they are brought back one by one, the most important first and
those first whose eviction would break a budget; whoever cannot stay is a victim. Each time the whole group is tried.

What counts is the priority of the PodGroup: that of its pods does not. Where groups have parents (v1.37), it is that of
the topmost one, for victims too, and the topmost that is disrupted as a whole leaves with all groups below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from kubesched.framework.cycle_state import CycleState
from kubesched.framework.groups import GroupCycle, GroupFeatures, TrySchedule
from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import OK, Status
from kubesched.k8s.model.scheduling import AnyGroup, group_key_of, is_composite
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.preemption.candidates import started_at_s
from kubesched.scheduler.engine.preemption.victims import Budgets

NEVER = Status.unschedulable("not eligible due to preemptionPolicy=Never.")
NO_VICTIMS = Status.unresolvable("No preemption victims found for incoming preemptor")


@dataclass(frozen=True, slots=True)
class GroupPreemption:
    """Who is evicted for a group, kept in the cycle."""

    pod_group: AnyGroup
    victims: tuple[PodInfo, ...]


@dataclass(slots=True)
class VictimUnit:
    """Pods that are evicted together, or not at all."""

    priority: int
    pods: list[tuple[PodInfo, int]] = field(default_factory=list)
    """With the row of each."""
    is_of_groups: bool = False
    """Whether it is all groups below one."""

    @property
    def rank(self) -> int:
        """The higher, the more important. Whether its first pod belongs to a group counts: so does a single pod of one
        that is not disrupted as a whole."""
        return 2 if self.is_of_groups else int(bool(group_key_of(self.pods[0][0].pod)))

    def started_at_s(self, *, by_first: bool) -> float:
        """When it began to run, as far as is known; v1.36 asks the pod that it met first."""
        starts = [started_at_s(info) for info, _ in self.pods]
        return starts[0] if by_first else min(starts)


def units_of(cluster: Cluster) -> list[VictimUnit]:
    """All pods on nodes, in the order in which nodes are searched."""
    whole: dict[str, VictimUnit] = {}
    found: list[VictimUnit] = []
    above = _group_itself if cluster.forest is None else _topmost
    for row in cluster.rows_in_order.tolist():
        for info in cluster.table.pods.on(row):
            group, priority = above(cluster, info) if info.spec.scheduling_group is not None else (None, info.priority)
            if group is None:
                found.append(VictimUnit(priority, [(info, row)]))
                continue
            key = group.group_key
            unit = whole.get(key)
            if unit is None:
                unit = whole[key] = VictimUnit(priority, is_of_groups=is_composite(key))
                found.append(unit)
            unit.pods.append((info, row))
    return found


def _group_itself(cluster: Cluster, info: PodInfo) -> tuple[AnyGroup | None, int]:
    """The group with which the pod leaves as a whole, and the priority that counts."""
    group = cluster.objects.pod_groups.get(group_key_of(info.pod))
    return (None, info.priority) if group is None or not group.is_evicted_whole else (group, group.priority)


def _topmost(cluster: Cluster, info: PodInfo) -> tuple[AnyGroup | None, int]:
    assert cluster.forest is not None
    whole, priority = None, info.priority
    for group in cluster.forest.upwards(group_key_of(info.pod)):
        whole, priority = group if group.is_evicted_whole else whole, group.priority
    return whole, priority


def most_important_first(units: Sequence[VictimUnit], *, by_first_start: bool = False) -> list[VictimUnit]:
    """By priority, then groups before single pods, then larger groups, then those that run for longer."""

    def importance(unit: VictimUnit) -> tuple[float, ...]:
        n_pods = len(unit.pods) if unit.rank else 0
        return (-unit.priority, -unit.rank, -n_pods, unit.started_at_s(by_first=by_first_start))

    return sorted(units, key=importance)


class _Away:
    """Units that are taken off the table; all come back in the end, each to its place."""

    def __init__(self, cluster: Cluster) -> None:
        self._table = cluster.table
        self._orders: dict[int, list[PodInfo]] = {}
        self._away: dict[str, tuple[PodInfo, int]] = {}

    def take(self, unit: VictimUnit) -> None:
        for info, row in unit.pods:
            self._orders.setdefault(row, list(self._table.pods.on(row)))
            self._table.remove_pod(info)
            self._away[info.uid] = info, row

    def bring(self, unit: VictimUnit) -> None:
        for info, row in unit.pods:
            self._table.add_pod(info, row)
            del self._away[info.uid]

    def bring_all(self) -> None:
        for info, row in self._away.values():
            self._table.add_pod(info, row)
        self._away.clear()
        for row, pods in self._orders.items():
            self._table.pods.restore_order(row, pods)


@contextmanager
def victims_away(cluster: Cluster, victims: Sequence[PodInfo]) -> Iterator[None]:
    """The table as it will be without these pods; afterwards as before."""
    rows = cluster.table.rows
    away = _Away(cluster)
    try:
        away.take(VictimUnit(0, [(victim, rows[victim.spec.node_name]) for victim in victims]))
        yield
    finally:
        away.bring_all()


def preempt_for_group(
    cluster: Cluster,
    cycle: CycleState,
    group: GroupCycle,
    pod_group: AnyGroup,
    fits: TrySchedule,
    features: GroupFeatures,
) -> Status:
    """Decides who would be evicted; carrying it out is the loop's business. Where somebody was found, the cycle keeps
    the `GroupPreemption`."""
    if features.own_preemption_policy:
        is_calm = pod_group.spec.preemption_policy == "Never"
    else:
        is_calm = any(pod.spec.preemption_policy == "Never" for pod in group.pods)
    if is_calm:
        return NEVER
    is_alpha = features.alpha
    lower = [
        unit
        for unit in units_of(cluster)
        if unit.priority < pod_group.priority and (is_alpha or group_key_of(unit.pods[0][0].pod) != group.key)
    ]
    if not lower:
        return NO_VICTIMS
    away = _Away(cluster)
    try:
        for unit in lower:
            away.take(unit)
        status = fits()
        if not status.is_success:
            return status
        ordered = most_important_first(lower, by_first_start=is_alpha)
        victims = list(_victims(cluster, ordered, away, fits))
    finally:
        away.bring_all()
    pods = [info for unit in ordered if unit in victims for info, _ in unit.pods]
    cycle.put(GroupPreemption(pod_group, tuple(pods)))
    return OK


def _victims(cluster: Cluster, ordered: list[VictimUnit], away: _Away, fits: TrySchedule) -> Iterator[VictimUnit]:
    breaking, harmless = split_by_budgets(Budgets(cluster.objects.pod_disruption_budgets.values()), ordered)
    for unit in (*breaking, *harmless):
        away.bring(unit)
        if not fits().is_success:
            away.take(unit)
            yield unit


def split_by_budgets(budgets: Budgets, units: Sequence[VictimUnit]) -> tuple[list[VictimUnit], list[VictimUnit]]:
    """Units of which evicting a pod would break a budget, and the others, if they were evicted in this order."""
    breaks: Callable[[PodInfo], bool] = budgets.counted()
    breaking: list[VictimUnit] = []
    harmless: list[VictimUnit] = []
    for unit in units:
        (breaking if any(breaks(info) for info, _ in unit.pods) else harmless).append(unit)
    return breaking, harmless
