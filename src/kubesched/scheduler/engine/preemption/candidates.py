"""What preemption found: nodes with their victims, and the choice among them, where the least harm is done.

Fewest broken budgets; then the lowest of the highest victims' priorities; then the smallest sum of priorities; then the
fewest victims; then the latest start of the most important victims. What is still equal is left to the tie-break.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kubesched.framework.pod_info import PodInfo
from kubesched.framework.status import Status
from kubesched.k8s.model.times import parse_instant

NOT_STARTED_S = float("inf")
"""When a pod that has not started yet counts as started: after every other."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node on which evicting these pods, most important first, makes the pod fit."""

    node_name: str
    victims: tuple[PodInfo, ...]
    n_budget_violations: int


@dataclass(frozen=True, slots=True)
class Preemption:
    """Where pods can be evicted for this one, kept in the cycle."""

    node_name: str
    victims: tuple[PodInfo, ...]
    candidates: tuple[Candidate, ...]
    equally_good: tuple[Candidate, ...]
    """The candidates among which nothing but chance decides; the chosen one is among them."""


@dataclass(slots=True)
class CandidateReview:
    """Kept in the cycle where others have a say in who is evicted: what is shown to them, and what they leave of it."""

    candidates: tuple[Candidate, ...] = ()
    answer: tuple[Candidate, ...] | Status | None = None


def started_at_s(info: PodInfo) -> float:
    start = info.pod.status.start_time
    return NOT_STARTED_S if start is None else parse_instant(start)


def importance(info: PodInfo) -> tuple[int, float]:
    """Sorts the most important pod first: by priority, then by how long it runs."""
    return -info.priority, started_at_s(info)


PRIORITY_SHIFT = 2**31
"""Makes all priorities positive, so that fewer victims of negative priority are better than more."""


def _budget_violations(candidate: Candidate) -> float:
    return candidate.n_budget_violations


def _highest_priority(candidate: Candidate) -> float:
    return candidate.victims[0].priority


def _sum_of_priorities(candidate: Candidate) -> float:
    return sum(victim.priority + PRIORITY_SHIFT for victim in candidate.victims)


def _n_victims(candidate: Candidate) -> float:
    return len(candidate.victims)


def _recency(candidate: Candidate) -> float:
    """The earliest start among the victims of the highest priority, later being better."""
    highest = max(victim.priority for victim in candidate.victims)
    return -min(started_at_s(victim) for victim in candidate.victims if victim.priority == highest)


Rule = Callable[[Candidate], float]
"""The lower, the less harm."""

RULES: tuple[Rule, ...] = (
    _budget_violations,
    _highest_priority,
    _sum_of_priorities,
    _n_victims,
    _recency,
)
RULES_BUT_START = RULES[:-1]


def least_harmful(candidates: Sequence[Candidate], rules: Sequence[Rule] = RULES) -> tuple[Candidate, ...]:
    """The candidates that no rule tells apart, by node name. Most rules need a victim to look at."""
    left = list(candidates)
    for rule in rules:
        least = min(rule(candidate) for candidate in left)
        left = [candidate for candidate in left if rule(candidate) == least]
    return tuple(sorted(left, key=lambda candidate: candidate.node_name))
