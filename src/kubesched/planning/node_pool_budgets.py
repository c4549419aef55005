"""How much of a NodePool Karpenter may disrupt, and when: its policy, `consolidateAfter`, and budgets.

Of the budgets that are active at a time and are for a reason, the smallest counts; percentages round up. Nodes that are
not ready count as disrupted already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kubesched.k8s.model.autoscaling import NodePool, NodePoolBudget
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

    def allowed(self, reason: str, n_nodes: int, n_not_ready: int, at_s: float) -> int | None:
        """How many nodes may be disrupted at a time; None: any."""
        for_it = [one for one in self.budgets if one.reasons is None or reason in one.reasons]
        least = min((one.most(n_nodes) for one in for_it if one.is_active(at_s)), default=None)
        return None if least is None else max(0, least - n_not_ready)

    @property
    def has_schedule(self) -> bool:
        return any(one.schedule is not None for one in self.budgets)


def disruption_of(pool: NodePool, source: str) -> PoolDisruption:
    """Raises CatalogueError."""
    given, where = pool.spec.disruption, f"NodePool {pool.name}"
    policy = given.consolidation_policy or WHEN_UNDERUTILIZED
    policy = WHEN_UNDERUTILIZED if policy == _OLD_POLICY else policy
    if policy not in _POLICIES:
        expected = ", ".join(_POLICIES)
        problem = f"spec.disruption.consolidationPolicy: one of {expected} is expected, not {policy}"
        raise CatalogueError(source, where, problem)
    after = given.consolidate_after or "0s"
    if after != _NEVER and not _SPAN.fullmatch(after):
        problem = f"spec.disruption.consolidateAfter: {after!r} is not a duration such as 1h30m, or Never"
        raise CatalogueError(source, where, problem)
    budgets = (NodePoolBudget(),) if given.budgets is None else given.budgets
    return PoolDisruption(
        policy,
        None if after == _NEVER else _seconds(after, source, where, "spec.disruption.consolidateAfter"),
        tuple(_budget(one, source, where, f"spec.disruption.budgets[{i}]") for i, one in enumerate(budgets)),
        pool.spec.replicas is not None,
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


def scheduled(pools: Iterable[PoolDisruption]) -> bool:
    """Whether it matters what time it is."""
    return any(one.has_schedule for one in pools)
