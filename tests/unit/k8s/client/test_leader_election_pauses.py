"""A process, or its machine, that stands still for longer than its lease lasts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from test_leader_election import Copy, end, now_s, play, zero

from harness.fake_leases import LeaseStore, Trip
from harness.virtual_asyncio import VirtualTimeLoop
from kubesched.k8s.client.leader_election import ElectionClocks, LeaderElectionHealth

PAUSES_S = (9.0, 12.0, 40.0, 300.0)


def pause(for_s: float) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualTimeLoop)
    loop.pause(for_s)


@pytest.mark.parametrize("for_s", PAUSES_S)
@pytest.mark.parametrize("before_s", [1.0, 2.35, 3.3], ids=["between renewals", "in a renewal", "after one"])
def test_the_only_copy_goes_on_leading_after_a_pause(for_s: float, before_s: float) -> None:
    async def scene() -> None:
        a = Copy(LeaseStore(), "a")
        a.requests.trip = lambda: Trip(there_s=0.05, back_s=0.05)
        task = a.start()
        await asyncio.sleep(before_s)
        pause(for_s)
        if for_s > 10:
            assert not a.elector.may_write()
        woke_s = now_s()
        await asyncio.sleep(5)
        assert a.elector.may_write() and not task.done()
        assert [what for _, what in a.told] == ["leader a", "started"]
        assert any(at_s > woke_s for at_s in a.renewed_s), "whoever waits for the lease is told"
        await end(task)

    play(scene())


@pytest.mark.parametrize("before_s", [1.0, 2.32], ids=["between renewals", "in a renewal"])
def test_a_leader_that_was_paused_ends_when_another_took_over(before_s: float) -> None:
    async def scene() -> None:
        store = LeaseStore()
        a = Copy(store, "a")
        a.requests.trip = lambda: Trip(there_s=0.05, back_s=0.05)
        a_runs = a.start()
        await asyncio.sleep(before_s)
        pause(40)
        store.lease["spec"]["holderIdentity"] = "b"  # type: ignore[index]
        store.lease["metadata"]["resourceVersion"] = "other"  # type: ignore[index]
        for _ in range(50):
            await asyncio.sleep(0.1)
            assert not a.elector.may_write()
        assert a_runs.done()
        assert a.told[-1][1] == "stopped"
        assert max(a.renewed_s) <= before_s

    play(scene())


def test_a_machine_that_was_asleep_does_not_believe_in_the_lease_it_had() -> None:
    """Then timers do not run on, but the clock that counts the lease does."""

    async def scene() -> None:
        asleep_s = 0.0
        clocks = ElectionClocks(lambda: now_s() + asleep_s, lambda: 1.7e9 + now_s() + asleep_s, random=zero)
        a = Copy(LeaseStore(), "a", clocks)
        task = a.start()
        await asyncio.sleep(3)
        assert a.elector.may_write()
        asleep_s = 40.0
        assert not a.elector.may_write()
        await asyncio.sleep(2)
        assert a.elector.may_write() and not task.done()
        await end(task)

    play(scene())


def _jumps_ahead(at_s: float) -> float:
    return at_s + 3600 if at_s > 5 else at_s


def _falls_back(at_s: float) -> float:
    return at_s - 3600 if at_s > 5 else at_s


@pytest.mark.parametrize("step", [_jumps_ahead, _falls_back])
def test_a_wall_clock_that_is_set_changes_nothing(step: Callable[[float], float]) -> None:
    async def scene() -> None:
        a = Copy(LeaseStore(), "a", ElectionClocks(now_s, lambda: 1.7e9 + step(now_s()), random=zero))
        task = a.start()
        for _ in range(20):
            await asyncio.sleep(1)
            assert a.elector.may_write()
        await end(task)

    play(scene())


def test_a_server_that_hangs_costs_the_lease_as_ever() -> None:
    """Who tried all the time, and in vain, was not paused."""

    async def scene() -> None:
        a = Copy(LeaseStore(), "a")
        task = a.start()
        await asyncio.sleep(1)
        a.requests.trip = lambda: Trip(there_s=1000)
        await asyncio.sleep(12)
        assert task.done() or a.told[-1][1] == "stopped"
        await end(task)

    play(scene())


def test_the_health_check_tells_of_a_lease_that_is_long_over() -> None:
    async def scene() -> None:
        a = Copy(LeaseStore(), "a")
        health = LeaderElectionHealth(a.elector)
        task = a.start()
        await asyncio.sleep(1)
        pause(40)
        assert health.problem().startswith("failed election to renew leadership on lease")
        await asyncio.sleep(3)
        assert health.problem() == ""
        await end(task)

    play(scene())
