"""The durations of a leader election, checked as client-go checks them, and the clocks it runs by.

All decisions are made by `ElectionClocks.now_s`, a clock of this machine that never steps. The wall clock only fills
in the times that people read in the Lease. Other copies' times are never compared with ours.

Next: `leader_election`.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

JITTER_FACTOR = 1.2
"""How much longer than `retryPeriod` a copy may wait between two tries to become the leader, as a share of it."""

LEAST_REQUEST_TIMEOUT_S = 1.0


class ElectionTimingError(ValueError):
    """The durations of the leader election do not fit together."""


@dataclass(frozen=True, slots=True)
class ElectionTiming:
    """kube-scheduler's `leaderElection` durations, in seconds."""

    lease_duration_s: float = 15.0
    """How long the others wait after the last renewal that they saw before they take the lease."""
    renew_deadline_s: float = 10.0
    """How long the leader tries to renew before it gives up; after a renewal it may write for no longer than this."""
    retry_period_s: float = 2.0
    """How long to wait between two tries."""

    def __post_init__(self) -> None:
        if self.lease_duration_s <= self.renew_deadline_s:
            raise ElectionTimingError("leaseDuration must be greater than renewDeadline")
        if self.renew_deadline_s <= JITTER_FACTOR * self.retry_period_s:
            raise ElectionTimingError("renewDeadline must be greater than retryPeriod*JitterFactor")
        for field, duration_s in (
            ("leaseDuration", self.lease_duration_s),
            ("renewDeadline", self.renew_deadline_s),
            ("retryPeriod", self.retry_period_s),
        ):
            if duration_s <= 0:
                raise ElectionTimingError(f"{field} must be greater than zero")

    @property
    def lease_duration_seconds(self) -> int:
        """The whole seconds that the Lease says. Rounded up: with fewer, others could take over before we give up."""
        return math.ceil(self.lease_duration_s)

    @property
    def request_timeout_s(self) -> float:
        """One request that hangs must not cost the leadership."""
        return max(LEAST_REQUEST_TIMEOUT_S, self.renew_deadline_s / 2)


def steady_clock() -> float:
    """Seconds on a clock that never steps and, where the system has such a clock, also runs while it is suspended.

    A machine that wakes from sleep must not believe that the lease which it renewed before is still its own.
    """
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()


@dataclass(frozen=True, slots=True)
class ElectionClocks:
    """Time and chance, handed in."""

    now_s: Callable[[], float] = steady_clock
    wall_s: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    random: Callable[[], float] = random.random

    def retry_pause_s(self, timing: ElectionTiming) -> float:
        """How long a copy that does not lead waits, drawn so that many copies do not ask in step."""
        return timing.retry_period_s * (1.0 + self.random() * JITTER_FACTOR)
