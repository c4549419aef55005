"""Whatever the network and the clocks do: never two copies that may write at the same moment."""

from __future__ import annotations

import asyncio
import itertools
import logging
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from harness.fake_leases import LeaseRequester, LeaseStore, Trip
from harness.virtual_asyncio import run_virtually
from kubesched.k8s.client.leader_election import ElectionClocks, ElectionTiming, LeaderCallbacks, LeaderElector
from kubesched.k8s.client.lease import LeaseLock, LeaseSpec

SCENE_S = 75.0
TIMING = ElectionTiming()

trips = st.one_of(
    st.just(Trip()),
    st.builds(Trip, there_s=st.sampled_from([0.0, 0.5, 3.0, 7.0, 25.0]), back_s=st.sampled_from([0.0, 1.0, 4.9])),
    st.sampled_from([Trip(is_lost_there=True), Trip(is_lost_back=True)]),
)


@dataclass(frozen=True)
class Part:
    """One copy: its clock, its network (trips over and over, each so many times), and how it ends."""

    trips: tuple[tuple[Trip, int], ...]
    clock_rate: float
    clock_offset_s: float
    jitter: float
    starts_at_s: float
    ends_at_s: float
    is_killed: bool


parts = st.builds(
    Part,
    trips=st.lists(st.tuples(trips, st.integers(1, 8)), min_size=1, max_size=6).map(tuple),
    clock_rate=st.sampled_from([0.85, 1.0, 1.15]),
    clock_offset_s=st.sampled_from([0.0, -1e6, 1e9]),
    jitter=st.sampled_from([0.0, 0.3, 1.0]),
    starts_at_s=st.sampled_from([0.0, 0.1, 20.0]),
    ends_at_s=st.sampled_from([21.5, 40.0, SCENE_S]),
    is_killed=st.booleans(),
)
scenes = st.lists(parts, min_size=2, max_size=3)


class Outcome:
    """What was seen at every turn of the loop."""

    def __init__(self) -> None:
        self.electors: dict[str, LeaderElector] = {}
        self.leaders: list[str] = []
        self.had_two = False

    def look(self) -> None:
        writers = [name for name, elector in self.electors.items() if elector.may_write()]
        self.had_two |= len(writers) > 1
        if writers and writers[-1:] != self.leaders[-1:]:
            self.leaders += writers


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "kubesched.k8s.client.leader_election")


def play(scene: list[Part], elector_class: type[LeaderElector] = LeaderElector) -> Outcome:
    outcome = Outcome()

    async def all_parts() -> None:
        store = LeaseStore()
        async with asyncio.TaskGroup() as group:
            for number, part in enumerate(scene):
                group.create_task(live(part, f"copy-{number}", store, outcome, elector_class))

    run_virtually(all_parts(), outcome.look)
    return outcome


async def live(part: Part, name: str, store: LeaseStore, outcome: Outcome, elector_class: type[LeaderElector]) -> None:
    await asyncio.sleep(part.starts_at_s)
    now = asyncio.get_running_loop().time
    network = itertools.cycle([trip for trip, times in part.trips for _ in range(times)])
    requests = LeaseRequester(store, lambda: next(network))
    clocks = ElectionClocks(
        now_s=lambda: part.clock_offset_s + part.clock_rate * now(),
        wall_s=lambda: 1.7e9 + now(),
        random=lambda: part.jitter,
    )
    lock = LeaseLock(requests, name, timeout_s=TIMING.request_timeout_s)
    elector = elector_class(lock, TIMING, LeaderCallbacks(), clocks=clocks, release_on_cancel=not part.is_killed)
    outcome.electors[name] = elector
    running = asyncio.create_task(elector.run())
    await asyncio.wait({running}, timeout=part.ends_at_s - part.starts_at_s)
    if part.is_killed:
        del outcome.electors[name]
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await requests.settle()


@given(scenes)
@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
def test_never_two_copies_may_write(scene: list[Part]) -> None:
    outcome = play(scene)
    event(f"changes of the leader: {min(len(outcome.leaders), 4)}")
    assert not outcome.had_two


class _CountsFromTheAnswer(LeaderElector):
    async def _write(self, write: object, spec: LeaseSpec) -> None:
        await super()._write(write, spec)  # type: ignore[arg-type]
        self._must_not_write_after_s = self._clocks.now_s() + self.timing.renew_deadline_s


class _TakesWithoutWaiting(LeaderElector):
    def _is_lease_valid(self, at_s: float) -> bool:
        return self.is_leader and super()._is_lease_valid(at_s)


class _ReleasesWhatAnotherHolds(LeaderElector):
    async def _release(self) -> None:
        if await self._lock.get() is not None:
            await self._lock.update(LeaseSpec("", 1))


class _WritesAfterRelease(LeaderElector):
    async def _release(self) -> None:
        kept_s = self._clocks.now_s() + 1.0
        await super()._release()
        self._must_not_write_after_s = kept_s + self.timing.renew_deadline_s


LOST = Trip(is_lost_there=True)
FINE = ((Trip(), 1),)


def part(*network: tuple[Trip, int], rate: float = 1.0, start: float = 0.0, stop: float = SCENE_S) -> Part:
    return Part(network or FINE, rate, 0.0, 0.0, start, stop, is_killed=False)


LATE_ANSWER_THEN_CUT_OFF = part((Trip(), 2), (Trip(back_s=4.9), 1), (LOST, 1000), rate=0.85)
LATE_RELEASE = part((Trip(), 3), (LOST, 10), (Trip(there_s=4.9), 1), (Trip(), 1000))
SECOND = part(rate=1.15, start=0.1)


@pytest.mark.parametrize(
    ("planted", "scenes_to_try"),
    [
        pytest.param(_CountsFromTheAnswer, [[LATE_ANSWER_THEN_CUT_OFF, SECOND]], id="counts from the answer"),
        pytest.param(_TakesWithoutWaiting, [[part(), SECOND]], id="takes the lease without waiting"),
        pytest.param(
            _ReleasesWhatAnotherHolds,
            [[LATE_RELEASE, SECOND, part(start=tenths / 10)] for tenths in range(1, 21, 3)],
            id="releases what another holds",
        ),
        pytest.param(_WritesAfterRelease, [[part(stop=21.5), SECOND]], id="writes after the release"),
    ],
)
def test_a_planted_bug_lets_two_write(planted: type[LeaderElector], scenes_to_try: list[list[Part]]) -> None:
    assert any(play(scene, planted).had_two for scene in scenes_to_try)
    assert not any(play(scene).had_two for scene in scenes_to_try)
