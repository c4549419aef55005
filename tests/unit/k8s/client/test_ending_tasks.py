"""Background tasks end, though a cancellation may get lost on its way."""

from __future__ import annotations

import asyncio

from kubesched.k8s.client.work_queue import end_all


def test_a_task_that_loses_its_first_cancellation_is_cancelled_again() -> None:
    async def forgetful() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await asyncio.sleep(3600)

    async def run() -> None:
        task = asyncio.create_task(forgetful())
        await asyncio.sleep(0)
        await end_all([task], again_s=0.01)
        assert task.cancelled()

    asyncio.run(run())


def test_tasks_that_ended_by_themselves_are_no_matter() -> None:
    async def failing() -> None:
        raise ValueError("before")

    async def run() -> None:
        tasks = [asyncio.create_task(failing()), asyncio.create_task(asyncio.sleep(0))]
        await asyncio.wait(tasks)
        await end_all(tasks)
        await end_all([])

    asyncio.run(run())
