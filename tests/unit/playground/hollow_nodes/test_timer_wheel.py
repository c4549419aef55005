"""Many timers for the price of one: never early, in order."""

from __future__ import annotations

import asyncio
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from harness.virtual_asyncio import run_virtually
from kubesched.playground.hollow_nodes.sending import TICK_S, TimerWheel


@given(st.lists(st.floats(0, 10), min_size=1, max_size=30))
def test_nothing_is_called_early_nor_late_by_more_than_a_tick(waits_s: list[float]) -> None:
    async def scenario() -> dict[int, float]:
        events, wheel, called = asyncio.get_running_loop(), TimerWheel(), dict[int, float]()

        def note(number: int) -> None:
            called[number] = events.time()

        for number, wait_s in enumerate(waits_s):
            wheel.after(wait_s, partial(note, number))
        await asyncio.sleep(11)
        return called

    called = run_virtually(scenario())
    assert len(called) == len(waits_s)
    for number, wait_s in enumerate(waits_s):
        assert wait_s - 1e-6 <= called[number] <= wait_s + TICK_S + 1e-6


def test_what_is_called_may_set_timers_and_closing_ends_all() -> None:
    async def scenario() -> int:
        wheel, called = TimerWheel(), list[float]()

        def again() -> None:
            called.append(asyncio.get_running_loop().time())
            wheel.after(1.0, again)

        wheel.after(1.0, again)
        await asyncio.sleep(3.5)
        wheel.close()
        await asyncio.sleep(5)
        return len(called)

    assert run_virtually(scenario()) == 3
