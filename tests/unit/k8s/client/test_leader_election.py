"""Leader election, one copy or two at a time, on a clock of our own."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from harness.fake_leases import LeaseRequester, LeaseStore, Trip
from harness.virtual_asyncio import run_virtually
from kubesched.k8s.client.event_forms import EventToRecord
from kubesched.k8s.client.leader_election import (
    ElectionClocks,
    ElectionTiming,
    ElectionTimingError,
    LeaderCallbacks,
    LeaderElectionHealth,
    LeaderElector,
    identity_of_this_process,
    steady_clock,
)
from kubesched.k8s.client.lease import LeaseLock

TIMING = ElectionTiming()


def now_s() -> float:
    return asyncio.get_running_loop().time()


@dataclass
class Copy:
    """A scheduler that takes part, and what it was told."""

    store: LeaseStore
    name: str
    clocks: ElectionClocks = field(default_factory=lambda: ElectionClocks(now_s, lambda: 1.7e9 + now_s(), random=zero))
    writes_last_s: float = 0.0

    def __post_init__(self) -> None:
        self.told: list[tuple[float, str]] = []
        self.events: list[EventToRecord] = []
        self.renewed_s: list[float] = []
        self.requests = LeaseRequester(self.store)
        lock = LeaseLock(self.requests, self.name, timeout_s=TIMING.request_timeout_s)
        callbacks = LeaderCallbacks(
            on_started_leading=lambda: self.hear("started"),
            on_renewed=lambda: self.renewed_s.append(round(now_s(), 3)),
            on_stopped_leading=lambda: self.hear("stopped"),
            on_new_leader=lambda leader: self.hear(f"leader {leader}"),
            record_event=self.events.append,
            writes_answered=lambda: asyncio.sleep(self.writes_last_s),
        )
        self.elector = LeaderElector(lock, TIMING, callbacks, clocks=self.clocks)

    def hear(self, what: str) -> None:
        self.told.append((round(now_s(), 3), what))

    def start(self) -> asyncio.Task[None]:
        return asyncio.create_task(self.elector.run())

    def cut_off(self) -> None:
        self.requests.trip = lambda: Trip(is_lost_there=True)


def zero() -> float:
    return 0.0


async def end(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def play(scene: Coroutine[Any, Any, None]) -> None:
    run_virtually(scene)


def test_the_first_copy_creates_the_lease_and_leads() -> None:
    async def scene() -> None:
        store = LeaseStore()
        a = Copy(store, "a")
        task = a.start()
        await asyncio.sleep(1)
        assert a.elector.is_leader and a.elector.may_write()
        assert store.lease is not None
        assert store.lease["metadata"]["name"] == "kube-scheduler"
        assert store.lease["metadata"]["namespace"] == "kube-system"
        assert store.spec == {
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": "2023-11-14T22:13:20.000000Z",
            "renewTime": "2023-11-14T22:13:20.000002Z",
            "leaseTransitions": 0,
        }
        assert a.told == [(0.0, "leader a"), (0.0, "started")]
        assert [(event.reason, event.note) for event in a.events] == [("LeaderElection", "a became leader")]
        assert a.events[0].regarding.kind == "Lease"
        await end(task)

    play(scene())


def test_the_leader_renews_every_retry_period_without_reading() -> None:
    async def scene() -> None:
        store = LeaseStore()
        a = Copy(store, "a")
        task = a.start()
        await asyncio.sleep(7)
        assert [at for at, _ in store.log] == [0, 0, 2, 4, 6]
        assert store.spec["acquireTime"] == "2023-11-14T22:13:20.000000Z"
        assert a.elector.must_not_write_after_s == 16
        await end(task)

    play(scene())


def test_metadata_that_others_wrote_stays() -> None:
    async def scene() -> None:
        store = LeaseStore()
        a = Copy(store, "a")
        task = a.start()
        await asyncio.sleep(1)
        assert store.lease is not None
        store.lease["metadata"]["labels"] = {"team": "x"}
        store.lease["metadata"]["resourceVersion"] = "77"
        await asyncio.sleep(4)
        assert store.lease["metadata"]["labels"] == {"team": "x"}
        assert a.elector.may_write()
        await end(task)

    play(scene())


def test_a_second_copy_waits_for_the_whole_lease_after_the_leader_fell_silent() -> None:
    async def scene() -> None:
        store = LeaseStore()
        a, b = Copy(store, "a"), Copy(store, "b")
        first, second = a.start(), b.start()
        await asyncio.sleep(9)
        assert b.elector.leader == "a" and not b.elector.may_write()
        a.cut_off()  # renewed at 8, which b saw at 8 or 10
        await asyncio.sleep(30)
        assert not a.elector.may_write()
        assert b.elector.may_write()
        taken_at = next(at for at, holder in store.log if holder == "b")
        assert 23 <= taken_at <= 28
        assert store.spec["leaseTransitions"] == 1
        await end(first, second)

    play(scene())


def test_a_leader_that_cannot_renew_stops_writing_at_the_deadline_and_stops_leading_after_it() -> None:
    async def scene() -> None:
        a = Copy(LeaseStore(), "a")
        task = a.start()
        await asyncio.sleep(0.5)
        a.cut_off()
        await asyncio.sleep(9.4)
        assert a.elector.may_write() and a.elector.is_leader
        await asyncio.sleep(0.1)
        assert not a.elector.may_write()
        await asyncio.wait_for(task, 10)
        assert a.told[-1] == (12.0, "stopped")
        assert a.events[-1].note == "a stopped leading"

    play(scene())


def test_the_time_to_write_counts_from_when_the_renewal_was_sent() -> None:
    async def scene() -> None:
        a = Copy(LeaseStore(), "a")
        a.requests.trip = lambda: Trip(back_s=4)
        task = a.start()
        await asyncio.sleep(8.1)  # get until 4, create until 8
        assert a.elector.must_not_write_after_s == 14
        await end(task)

    play(scene())


def test_a_leader_that_sees_another_holder_stops_at_once() -> None:
    async def scene() -> None:
        store = LeaseStore()
        a = Copy(store, "a")
        task = a.start()
        await asyncio.sleep(1)
        assert store.lease is not None
        store.lease["spec"] = {"holderIdentity": "b", "leaseDurationSeconds": 15, "renewTime": "whenever"}
        store.lease["metadata"]["resourceVersion"] = "99"
        await asyncio.wait_for(task, 2)
        assert not a.elector.may_write()
        assert a.told[-2:] == [(2.0, "leader b"), (2.0, "stopped")]
        assert store.spec["holderIdentity"] == "b", "what is another's is not released"

    play(scene())


def test_a_cancelled_leader_releases_the_lease_and_the_next_takes_it_at_once() -> None:
    async def scene() -> None:
        store = LeaseStore()
        a, b = Copy(store, "a"), Copy(store, "b")
        first, second = a.start(), b.start()
        await asyncio.sleep(9)
        await end(first)
        assert store.spec["holderIdentity"] == "" and store.spec["leaseDurationSeconds"] == 1
        assert store.spec["leaseTransitions"] == 0
        assert not a.elector.may_write()
        assert a.events[-1].note == "a stopped leading"
        await asyncio.sleep(2)
        assert b.elector.may_write()
        await end(second)

    play(scene())


def test_the_lease_is_not_released_while_a_write_is_under_way() -> None:
    async def scene() -> None:
        store = LeaseStore()
        a = Copy(store, "a", writes_last_s=3)
        task = a.start()
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.sleep(2)
        assert not a.elector.may_write()
        assert store.spec["holderIdentity"] == "a"
        await asyncio.sleep(2)
        assert store.spec["holderIdentity"] == ""
        await end(task)

    play(scene())


def test_a_write_that_never_ends_leaves_the_lease_to_expire() -> None:
    async def scene() -> None:
        store = LeaseStore()
        a = Copy(store, "a", writes_last_s=1000)
        task = a.start()
        await asyncio.sleep(1)
        await end(task)
        assert now_s() == 11
        assert store.spec["holderIdentity"] == "a"

    play(scene())


def test_a_lost_answer_is_found_out_by_reading() -> None:
    async def scene() -> None:
        store = LeaseStore()
        a = Copy(store, "a")
        task = a.start()
        await asyncio.sleep(1)
        trips = iter([Trip(is_lost_back=True)])
        a.requests.trip = lambda: next(trips, Trip())
        await asyncio.sleep(2)
        assert [at for at, _ in store.log] == [0, 0, 2, 2]
        assert a.elector.must_not_write_after_s == 12
        await end(task)

    play(scene())


def test_a_deleted_lease_is_not_taken_while_its_holder_may_still_write() -> None:
    async def scene() -> None:
        store = LeaseStore()
        a, b = Copy(store, "a"), Copy(store, "b")
        first, second = a.start(), b.start()
        await asyncio.sleep(3)
        a.cut_off()
        store.delete()
        while not b.elector.may_write():
            await asyncio.sleep(0.1)
        assert now_s() >= 2 + 15
        assert not a.elector.may_write()
        await end(first, second)

    play(scene())


def test_a_leader_whose_lease_was_deleted_writes_it_anew() -> None:
    async def scene() -> None:
        store = LeaseStore()
        a = Copy(store, "a")
        task = a.start()
        await asyncio.sleep(1)
        store.delete()
        await asyncio.sleep(2)
        assert store.spec["holderIdentity"] == "a"
        assert ("stopped") not in [what for _, what in a.told]
        await end(task)

    play(scene())


def test_a_wall_clock_that_stands_still_does_not_hide_renewals() -> None:
    async def scene() -> None:
        store = LeaseStore()
        frozen = ElectionClocks(now_s, lambda: 1.7e9, random=zero)
        a, b = Copy(store, "a", frozen), Copy(store, "b")
        first, second = a.start(), b.start()
        await asyncio.sleep(60)
        assert a.elector.may_write() and not b.elector.may_write()
        await end(first, second)

    play(scene())


def test_copies_that_do_not_lead_ask_after_a_jittered_pause() -> None:
    clocks = replace(ElectionClocks(), random=lambda: 0.5)
    assert clocks.retry_pause_s(TIMING) == pytest.approx(2 * 1.6)


@pytest.mark.parametrize(
    ("lease_s", "deadline_s", "period_s", "message"),
    [
        pytest.param(
            10, 10, 2, "leaseDuration must be greater than renewDeadline", id="lease not longer than deadline"
        ),
        pytest.param(
            15, 2.4, 2, "renewDeadline must be greater than retryPeriod*JitterFactor", id="no time for a second try"
        ),
        pytest.param(0, -1, -2, "leaseDuration must be greater than zero", id="no lease"),
        pytest.param(15, 0, -2, "renewDeadline must be greater than zero", id="no deadline"),
        pytest.param(15, 10, 0, "retryPeriod must be greater than zero", id="no period"),
    ],
)
def test_durations_that_do_not_fit_are_refused(
    lease_s: float, deadline_s: float, period_s: float, message: str
) -> None:
    with pytest.raises(ElectionTimingError) as caught:
        ElectionTiming(lease_s, deadline_s, period_s)
    assert str(caught.value) == message


def test_a_lease_of_broken_seconds_is_written_longer_not_shorter() -> None:
    assert ElectionTiming(10.9, 10.5, 2).lease_duration_seconds == 11


@pytest.mark.parametrize(
    ("after_s", "complaint"),
    [
        pytest.param(35.0, "", id="the lease ended not more than 20 s ago"),
        pytest.param(35.1, "failed election to renew leadership on lease kube-system/kube-scheduler", id="longer ago"),
    ],
)
def test_a_leader_that_hangs_is_unhealthy(after_s: float, complaint: str) -> None:
    async def scene() -> None:
        a = Copy(LeaseStore(), "a")
        stuck = asyncio.Event()

        async def hang(_: float) -> None:
            await stuck.wait()

        a.elector._clocks = replace(a.clocks, sleep=hang)
        health = LeaderElectionHealth()
        assert health.problem() == ""
        health.elector = a.elector
        assert health.problem() == "", "it does not lead"
        task = a.start()
        await asyncio.sleep(after_s)
        assert health.problem() == complaint
        await end(task)

    play(scene())


def test_identities_differ_and_the_clock_goes_forward() -> None:
    assert identity_of_this_process() != identity_of_this_process()
    assert steady_clock() <= steady_clock()
