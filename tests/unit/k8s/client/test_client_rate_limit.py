"""The client-side rate limit, on a clock that the test turns."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.k8s.client.rest import RateLimiter


class TurnedClock:
    """Time passes only in `sleep`, and for all sleepers in order of their waking."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now_s

    async def sleep(self, for_s: float) -> None:
        self.slept.append(round(for_s, 6))


def _waits(qps: float, burst: int, n_requests: int) -> list[float]:
    clock = TurnedClock()

    async def all_at_once() -> None:
        limiter = RateLimiter(qps, burst, clock=clock, sleep=clock.sleep)
        for _ in range(n_requests):
            await limiter.wait()

    asyncio.run(all_at_once())
    return clock.slept


@pytest.mark.parametrize(
    ("qps", "burst", "n_requests", "waits"),
    [
        pytest.param(10, 3, 3, [], id="a burst goes out at once"),
        pytest.param(10, 3, 6, [0.1, 0.2, 0.3], id="what exceeds it waits its turn, one after another"),
        pytest.param(10, 1, 3, [0.1, 0.2], id="a burst of one"),
        pytest.param(10, 0, 2, [0.1], id="a burst of nothing still lets one go"),
        pytest.param(0, 1, 50, [], id="no rate means no limit"),
        pytest.param(-1, 1, 50, [], id="nor does a negative one"),
    ],
)
def test_requests_wait_for_the_rate(qps: float, burst: int, n_requests: int, waits: list[float]) -> None:
    assert _waits(qps, burst, n_requests) == waits


def test_a_quiet_time_fills_the_bucket_but_not_beyond_the_burst() -> None:
    clock = TurnedClock()

    async def story() -> None:
        limiter = RateLimiter(10, 2, clock=clock, sleep=clock.sleep)
        await limiter.wait()
        await limiter.wait()
        clock.now_s += 1000
        for _ in range(3):
            await limiter.wait()

    asyncio.run(story())
    assert clock.slept == [0.1]


def test_who_gives_up_waiting_leaves_its_place() -> None:
    clock = TurnedClock()

    async def story() -> None:
        never = asyncio.Event()

        async def sleep(for_s: float) -> None:
            clock.slept.append(round(for_s, 6))
            await never.wait()

        limiter = RateLimiter(10, 1, clock=clock, sleep=sleep)
        await limiter.wait()
        waiting = asyncio.ensure_future(limiter.wait())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        late = asyncio.ensure_future(limiter.wait())
        await asyncio.sleep(0)
        late.cancel()
        await asyncio.gather(late, return_exceptions=True)

    asyncio.run(story())
    assert clock.slept == [0.1, 0.1]


@given(
    st.integers(1, 50),
    st.integers(1, 20),
    st.lists(st.floats(0, 0.5), min_size=1, max_size=60),
)
def test_no_window_sees_more_than_burst_and_rate(qps: int, burst: int, gaps_s: list[float]) -> None:
    """Whatever the arrivals: in any window of length t at most burst + qps * t requests go, in order of arrival."""
    clock = TurnedClock()
    left_at_s: list[float] = []

    async def story() -> None:
        async def sleep(for_s: float) -> None:
            left_at_s.append(clock.now_s + for_s)

        limiter = RateLimiter(qps, burst, clock=clock, sleep=sleep)
        for gap_s in gaps_s:
            clock.now_s += gap_s
            before = len(left_at_s)
            await limiter.wait()
            if len(left_at_s) == before:
                left_at_s.append(clock.now_s)

    asyncio.run(story())
    assert left_at_s == sorted(left_at_s)
    for i, start_s in enumerate(left_at_s):
        for j in range(i, len(left_at_s)):
            assert j - i + 1 <= burst + qps * (left_at_s[j] - start_s) + 1e-6
