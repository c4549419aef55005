"""The work queue: each key once, to one worker at a time, and again later after failures."""

from __future__ import annotations

import asyncio

from harness.virtual_asyncio import run_virtually
from kubesched.k8s.client.work_queue import WorkQueue


def test_a_key_that_waits_is_not_added_twice() -> None:
    async def scenario() -> list[str]:
        queue = WorkQueue()
        for key in ("a", "b", "a"):
            queue.add(key)
        return [await queue.take(), await queue.take()] + ["more"] * len(queue)

    assert run_virtually(scenario()) == ["a", "b"]


def test_a_key_that_is_worked_on_comes_again_only_when_that_is_done() -> None:
    async def scenario() -> tuple[int, int]:
        queue = WorkQueue()
        queue.add("a")
        key = await queue.take()
        queue.add(key)
        before = len(queue)
        queue.done(key)
        return before, len(queue)

    assert run_virtually(scenario()) == (0, 1)


def test_the_wait_after_failures_doubles_up_to_a_limit_and_starts_anew_after_success() -> None:
    async def scenario() -> list[float]:
        queue = WorkQueue(first_backoff_s=1.0, longest_backoff_s=5.0)
        waits = [queue.failed("a") for _ in range(5)]
        queue.succeeded("a")
        waits.append(queue.failed("a"))
        queue.close()
        return waits

    assert run_virtually(scenario()) == [1.0, 2.0, 4.0, 5.0, 5.0, 1.0]


def test_the_soonest_of_several_wishes_counts() -> None:
    async def scenario() -> float:
        queue = WorkQueue()
        for for_s in (30.0, 10.0, 20.0):
            queue.add_after("a", for_s)
        await queue.take()
        return asyncio.get_running_loop().time()

    assert run_virtually(scenario()) == 10.0


def test_after_closing_nothing_is_handed_out() -> None:
    async def scenario() -> int:
        queue = WorkQueue()
        queue.add_after("a", 1.0)
        queue.close()
        queue.add("b")
        await asyncio.sleep(2.0)
        return len(queue)

    assert run_virtually(scenario()) == 0
