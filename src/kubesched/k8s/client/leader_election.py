"""Leader election on a Lease: of many copies of the scheduler one leads, and only that one writes.

The guarantee: by any copy's own clock, from the moment at which `must_not_write_after_s` has passed until that copy has
renewed the lease again, it must not write; and as long as clocks run at about the same speed (leaseDuration to
renewDeadline, 15 to 10 by default) no two copies may write at the same moment. It rests on this:

- a copy that does not lead takes the lease only when it saw no change of it for leaseDuration, by its own clock;
- the leader counts from the moment at which it *sent* its last successful renewal, which is before anybody saw it,
  and for renewDeadline only, which is shorter;
- the server refuses a write of the Lease by a copy that has not seen the latest one.

The durations are checked as client-go checks them. The election has a REST client of its own, whose requests wait
behind no others: the lease must be renewed in time also when the scheduler has used up its rate. A leader whose lease
expired long ago fails the health check `leaderElection`.

Next: `lease` (the lock).
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import socket
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kubesched.k8s.client.event_forms import NORMAL, EventToRecord
from kubesched.k8s.client.lease import LOCK_ERRORS, LeaseLock, LeaseSpec, print_micro_time
from kubesched.k8s.client.rest import RestClient, RetryPolicy
from kubesched.k8s.client.target import ServerTarget
from kubesched.k8s.errors import KubeschedError

JITTER_FACTOR = 1.2
"""How much longer than `retryPeriod` a copy may wait between two tries to become the leader, as a share of it."""

LEAST_REQUEST_TIMEOUT_S = 1.0


class ElectionTimingError(KubeschedError, ValueError):
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


def make_election_client(target: ServerTarget, timing: ElectionTiming) -> RestClient:
    return RestClient(
        target,
        timeout_s=timing.request_timeout_s,
        user_agent="kubesched/leader-election",
        retries=RetryPolicy(max_attempts=1),
    )


_log = logging.getLogger("kubesched.k8s.client.leader_election")
_NEVER_S = -math.inf
_RENEW_STEP_S = 2e-6  # the Lease knows microseconds
_LEAST_PAUSE_S = 1e-3
_PAUSED_S = 1.0
"""A try is cut off at its deadline: who notices so much later that it has passed was paused."""


def identity_of_this_process() -> str:
    """A name that no other copy has, not even the next one on this machine."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"


def _ignore(_: object = None) -> None:
    """Nobody listens."""


async def _nothing_to_await() -> None:
    """No write is under way."""


@dataclass(frozen=True, slots=True)
class LeaderCallbacks:
    """Callbacks. None of them may block."""

    on_started_leading: Callable[[], object] = _ignore
    on_renewed: Callable[[], object] = _ignore
    """The lease is ours for another while, also if it had run out before."""
    on_stopped_leading: Callable[[], object] = _ignore
    """The lease is lost or given up, writes are refused already. Only called after `on_started_leading`."""
    on_new_leader: Callable[[str], object] = _ignore
    """Another identity than before holds the lease (ours, too); "" when it was released."""
    record_event: Callable[[EventToRecord], object] = _ignore
    writes_answered: Callable[[], Awaitable[object]] = _nothing_to_await
    """Waits until no write is under way any more. The lease is not released before: another copy starts at once."""


class LeaderElector:
    """One copy's part in the election. `run` it once."""

    def __init__(
        self,
        lock: LeaseLock,
        timing: ElectionTiming,
        callbacks: LeaderCallbacks,
        *,
        clocks: ElectionClocks | None = None,
        release_on_cancel: bool = True,
        reporting_controller: str = "default-scheduler",
    ) -> None:
        self.timing = timing
        self._lock = lock
        self._callbacks = callbacks
        self._clocks = clocks or ElectionClocks()
        self._release_on_cancel = release_on_cancel
        self._reporting_controller = reporting_controller
        self._observed = LeaseSpec()
        self._observed_at_s = _NEVER_S
        self._reported_leader = ""
        self._last_renew_wall_s = _NEVER_S
        self._must_not_write_after_s = _NEVER_S

    @property
    def leader(self) -> str:
        """The last observed holder; "" when none was observed, or the lease is free."""
        return self._observed.holder

    @property
    def is_leader(self) -> bool:
        """The last observation says that we hold the lease. To decide about a write, ask `may_write`."""
        return self._observed.holder == self._lock.identity

    @property
    def must_not_write_after_s(self) -> float:
        """Until when, on our clock, no one else can hold the lease; minus infinity when we do not."""
        return self._must_not_write_after_s

    def may_write(self) -> bool:
        return self._clocks.now_s() < self._must_not_write_after_s

    def lease_expired_for_s(self) -> float:
        """How long ago the lease that we should hold ended; negative while it is valid or when we do not lead."""
        if not self.is_leader:
            return _NEVER_S
        return self._clocks.now_s() - self._observed_at_s - self.timing.lease_duration_s

    def describe(self) -> str:
        return self._lock.describe()

    async def run(self) -> None:
        """Becomes the leader, leads, and returns when the lease is lost. Cancel it to give the lease up."""
        await self._acquire()
        try:
            self._callbacks.on_started_leading()
            await self._renew_until_lost()
        finally:
            self._must_not_write_after_s = _NEVER_S
            self._callbacks.on_stopped_leading()
            if self._release_on_cancel:
                await self._release()
            self._record_event("stopped leading")

    async def _acquire(self) -> None:
        self._tell("Attempting to acquire leader lease...")
        while not await self._try_within(self.timing.renew_deadline_s):
            self._tell("Failed to acquire lease", v=4)
            await self._clocks.sleep(self._clocks.retry_pause_s(self.timing))
        self._record_event("became leader")
        self._tell("Successfully acquired lease")

    async def _renew_until_lost(self) -> None:
        while await self._renew():
            self._tell("Successfully renewed lease", v=5)
            self._callbacks.on_renewed()
            await self._clocks.sleep(self.timing.retry_period_s)
        self._tell("Failed to renew lease")

    async def _renew(self) -> bool:
        """Tries until it succeeds, the deadline has passed, or the lease is seen in other hands.

        Time in which this process did not run (a suspended machine, a stopped process) does not count: it was not
        trying. Whether it may write meanwhile is another matter, and counted without mercy.
        """
        now_s = self._clocks.now_s
        deadline_s = now_s() + self.timing.renew_deadline_s
        while (left_s := deadline_s - now_s()) > _LEAST_PAUSE_S:
            started_s = now_s()
            if await self._try_within(left_s):
                return True
            if self.leader and not self.is_leader:
                return False
            if now_s() <= deadline_s + _PAUSED_S:
                next_try_s = min(started_s + self.timing.retry_period_s, deadline_s)
                await self._clocks.sleep(max(_LEAST_PAUSE_S, next_try_s - now_s()))
            if now_s() > deadline_s + _PAUSED_S:
                deadline_s = now_s() + self.timing.renew_deadline_s
        return False

    async def _try_within(self, limit_s: float) -> bool:
        """One try to acquire or renew. One that was cut off counts as failed, whether the server did it or not."""
        try:
            async with asyncio.timeout(limit_s):
                return await self._try_acquire_or_renew()
        except TimeoutError:
            self._tell("Failed to update lease", level=logging.ERROR, err="no answer in time")
            return False
        finally:
            self._report_transition()

    async def _try_acquire_or_renew(self) -> bool:
        tried_at_s = self._clocks.now_s()
        if self.is_leader and self._is_lease_valid(tried_at_s):
            try:
                await self._write(self._lock.update, self._renewed(self._observed))
                return True
            except LOCK_ERRORS as error:
                self._tell("Failed to update lease optimistically, falling back to slow path", v=2, err=error)
        try:
            return await self._read_and_write(tried_at_s)
        except LOCK_ERRORS as error:
            self._tell("Error retrieving or updating lease lock", level=logging.ERROR, err=error)
            return False

    async def _read_and_write(self, tried_at_s: float) -> bool:
        """The slow path: look who holds the lease, and take or renew it if that is allowed."""
        found = await self._lock.get()
        if found is not None:
            self._observe(found)
        if self.leader and not self.is_leader and self._is_lease_valid(tried_at_s):
            # Also when the Lease was deleted: its holder may write until it notices.
            self._tell("Lease is held by and has not yet expired", v=4, holder=self.leader)
            return False
        if found is None:
            await self._write(self._lock.create, self._renewed(LeaseSpec(lease_transitions=0)))
        elif self.is_leader:
            await self._write(self._lock.update, self._renewed(found))
        else:
            taken = LeaseSpec(lease_transitions=found.transitions + 1)
            await self._write(self._lock.update, self._renewed(taken))
        return True

    async def _write(self, write: Callable[[LeaseSpec], Awaitable[None]], spec: LeaseSpec) -> None:
        sent_at_s = self._clocks.now_s()
        await write(spec)
        self._set_observed(spec)
        self._must_not_write_after_s = sent_at_s + self.timing.renew_deadline_s

    def _renewed(self, held: LeaseSpec) -> LeaseSpec:
        """What to write. renewTime always grows, whatever the wall clock does: others see a renewal by its change."""
        self._last_renew_wall_s = max(self._clocks.wall_s(), self._last_renew_wall_s + _RENEW_STEP_S)
        now = print_micro_time(self._last_renew_wall_s)
        return LeaseSpec(
            holder_identity=self._lock.identity,
            lease_duration_seconds=self.timing.lease_duration_seconds,
            acquire_time=held.acquire_time or now,
            renew_time=now,
            lease_transitions=held.transitions,
        )

    def _observe(self, found: LeaseSpec) -> None:
        """The wait for the holder starts over whenever the Lease changed, whatever times are written in it."""
        if found != self._observed:
            self._set_observed(found)

    def _set_observed(self, spec: LeaseSpec) -> None:
        self._observed = spec
        self._observed_at_s = self._clocks.now_s()
        if spec.holder != self._lock.identity:
            self._must_not_write_after_s = _NEVER_S

    def _is_lease_valid(self, at_s: float) -> bool:
        return self._observed_at_s + self._observed.duration_s > at_s

    async def _release(self) -> None:
        """Makes the lease free at once, if it is still ours; otherwise others wait until it has expired."""
        try:
            async with asyncio.timeout(self.timing.renew_deadline_s):
                await self._callbacks.writes_answered()
                found = await self._lock.get()
                if found is None or found.holder != self._lock.identity:
                    return
                now = print_micro_time(self._clocks.wall_s())
                released = LeaseSpec("", 1, acquire_time=now, renew_time=now, lease_transitions=found.transitions)
                await self._lock.update(released)
                self._set_observed(released)
        except (*LOCK_ERRORS, TimeoutError) as error:
            self._tell("Failed to release lease", level=logging.ERROR, err=str(error) or "no answer in time")

    def _report_transition(self) -> None:
        if self.leader != self._reported_leader:
            self._reported_leader = self.leader
            self._callbacks.on_new_leader(self._reported_leader)

    def _record_event(self, what: str) -> None:
        note = f"{self._lock.identity} {what}"
        about = self._lock.reference()
        self._callbacks.record_event(
            EventToRecord(about, NORMAL, "LeaderElection", "", note, self._reporting_controller)
        )

    def _tell(self, message: str, *, v: int = 0, level: int = logging.INFO, **fields: object) -> None:
        texts = {key: str(value) for key, value in fields.items()}
        _log.log(level, message, extra={"fields": {"lock": self._lock.describe(), **texts}, "v": v})


TOLERATED_S = 20.0
"""How long after the end of the lease kube-scheduler still calls itself healthy."""


class LeaderElectionHealth:
    """`problem` says what is wrong; it is empty when all is well."""

    name = "leaderElection"

    def __init__(self, elector: LeaderElector | None = None, tolerated_s: float = TOLERATED_S) -> None:
        self.elector = elector
        self._tolerated_s = tolerated_s

    def problem(self) -> str:
        if self.elector is None or self.elector.lease_expired_for_s() <= self._tolerated_s:
            return ""
        return f"failed election to renew leadership on lease {self.elector.describe()}"
