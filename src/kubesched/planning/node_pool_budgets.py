"""How much of a NodePool Karpenter may disrupt, and when: its policy, `consolidateAfter`, and budgets.

Of the budgets that are active at a time and are for a reason, the smallest counts; percentages round up. Nodes that are
not ready count as disrupted already.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec

from kubesched.k8s.model.autoscaling import NodePool, NodePoolBudget, NodePoolDisruption
from kubesched.k8s.model.cron_schedule import CronError, CronSchedule
from kubesched.k8s.model.times import Duration, DurationError
from kubesched.planning.catalogue import CatalogueError

EMPTY, UNDERUTILIZED = "Empty", "Underutilized"
_REASONS = (UNDERUTILIZED, EMPTY, "Drifted")
WHEN_EMPTY, WHEN_UNDERUTILIZED, BALANCED = "WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"
_POLICIES = (WHEN_EMPTY, WHEN_UNDERUTILIZED, BALANCED)
_OLD_POLICY = "WhenUnderutilized"
"""So v1beta1 calls it."""
_NEVER = "Never"
_NODES = re.compile(r"(100|[0-9]{1,2})%|[0-9]{1,9}")
_SPAN = re.compile(r"([0-9]+[smh])+")
_HOURS_AND_MINUTES = re.compile(r"([0-9]+[hm]|[0-9]+h[0-9]+m)(0s)?")
_MOST_CHANGES = 1000
"""Of schedules that are looked through for a time at which nodes may be disrupted."""


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """Of a NodePool."""

    nodes: str
    reasons: tuple[str, ...] | None = None
    schedule: CronSchedule | None = None
    duration_s: float = 0.0

    def is_active(self, at_s: float) -> bool:
        """Whether the schedule came due no longer ago than it lasts."""
        if self.schedule is None:
            return True
        due_s = self.schedule.next_after(at_s - self.duration_s)
        return due_s is not None and due_s <= at_s

    def next_change_s(self, at_s: float) -> float | None:
        """When it next begins or ends to be active."""
        if self.schedule is None:
            return None
        begins_s, due_s = self.schedule.next_after(at_s), self.schedule.next_after(at_s - self.duration_s)
        ends_s = None if due_s is None else due_s + self.duration_s
        return min((time_s for time_s in (begins_s, ends_s) if time_s is not None), default=None)

    def most(self, n_nodes: int) -> int:
        text = self.nodes.removesuffix("%")
        return -(-n_nodes * int(text) // 100) if text != self.nodes else int(text)


@dataclass(frozen=True, slots=True)
class PoolDisruption:
    policy: str = WHEN_UNDERUTILIZED
    consolidate_after_s: float | None = 0.0
    """So long nothing must have come to a node or left it; None: never."""
    budgets: tuple[DisruptionBudget, ...] = (DisruptionBudget("10%"),)
    is_static: bool = False
    """It has as many nodes as it says, whatever pods there are."""
    written: NodePoolDisruption = field(default=NodePoolDisruption(), compare=False)

    def allowed(self, reason: str, n_nodes: int, n_not_ready: int, at_s: float | None) -> int | None:
        """How many nodes may be disrupted at a time; None: any. Where nobody knows what time it is, budgets with a
        schedule do not count."""
        for_it = [one for one in self.budgets if one.reasons is None or reason in one.reasons]
        active = [one for one in for_it if (one.schedule is None if at_s is None else one.is_active(at_s))]
        least = min((one.most(n_nodes) for one in active), default=None)
        return None if least is None else max(0, least - n_not_ready)

    def opens_at_s(self, reason: str, n_nodes: int, n_not_ready: int, at_s: float) -> float | None:
        """When schedules next allow a node to be disrupted; None if that is not in sight."""
        for time_s in islice(self._changes_s(at_s), _MOST_CHANGES):
            if self.allowed(reason, n_nodes, n_not_ready, time_s) != 0:
                return time_s
        return None

    def _changes_s(self, at_s: float) -> Iterator[float]:
        while True:
            times_s = (one.next_change_s(at_s) for one in self.budgets)
            next_s = min((time_s for time_s in times_s if time_s is not None), default=None)
            if next_s is None:
                return
            yield (at_s := next_s)

    @property
    def has_schedule(self) -> bool:
        return any(one.schedule is not None for one in self.budgets)

    def to_dict(self) -> dict[str, Any]:
        """As a NodePool writes it."""
        return dict(msgspec.to_builtins(self.written))


def disruption_of(pool: NodePool, source: str) -> PoolDisruption:
    """Raises CatalogueError."""
    is_static = pool.spec.replicas is not None
    return checked_disruption(pool.spec.disruption, is_static, source, f"NodePool {pool.name}", "spec.disruption")


def checked_disruption(
    given: NodePoolDisruption, is_static: bool, source: str, where: str, prefix: str
) -> PoolDisruption:
    """Raises CatalogueError."""
    policy = given.consolidation_policy or WHEN_UNDERUTILIZED
    policy = WHEN_UNDERUTILIZED if policy == _OLD_POLICY else policy
    if policy not in _POLICIES:
        expected = ", ".join(_POLICIES)
        problem = f"{prefix}.consolidationPolicy: one of {expected} is expected, not {policy}"
        raise CatalogueError(source, where, problem)
    after = given.consolidate_after or "0s"
    if after != _NEVER and not _SPAN.fullmatch(after):
        problem = f"{prefix}.consolidateAfter: {after!r} is not a duration such as 1h30m, or Never"
        raise CatalogueError(source, where, problem)
    budgets = (NodePoolBudget(),) if given.budgets is None else given.budgets
    return PoolDisruption(
        policy,
        None if after == _NEVER else _seconds(after, source, where, f"{prefix}.consolidateAfter"),
        tuple(_budget(one, source, where, f"{prefix}.budgets[{i}]") for i, one in enumerate(budgets)),
        is_static,
        given,
    )


def _budget(given: NodePoolBudget, source: str, where: str, field: str) -> DisruptionBudget:
    nodes = str(given.nodes)
    if not _NODES.fullmatch(nodes):
        raise CatalogueError(source, where, f"{field}.nodes: {nodes!r} is neither a number of nodes nor a percentage")
    for reason in given.reasons or ():
        if reason not in _REASONS:
            problem = f"{field}.reasons: one of {', '.join(_REASONS)} is expected, not {reason}"
            raise CatalogueError(source, where, problem)
    if (given.schedule is None) != (given.duration is None):
        raise CatalogueError(source, where, f"{field}: schedule and duration belong together")
    if given.schedule is None or given.duration is None:
        return DisruptionBudget(nodes, given.reasons)
    try:
        schedule = CronSchedule.parse(given.schedule)
    except CronError as error:
        raise CatalogueError(source, where, f"{field}.{error}") from None
    if not _HOURS_AND_MINUTES.fullmatch(given.duration):
        problem = f"{field}.duration: {given.duration!r} is not a duration of hours and minutes, such as 8h30m"
        raise CatalogueError(source, where, problem)
    return DisruptionBudget(
        nodes, given.reasons, schedule, _seconds(given.duration, source, where, f"{field}.duration")
    )


def _seconds(text: str, source: str, where: str, field: str) -> float:
    try:
        return Duration.parse(text).seconds
    except DurationError as problem:
        raise CatalogueError(source, where, f"{field}: {problem}") from None
