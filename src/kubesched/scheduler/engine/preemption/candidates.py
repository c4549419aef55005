"""What preemption found: nodes with their victims, and the one that was chosen."""

from __future__ import annotations

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
    """Where room can be made, kept in the cycle."""

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
