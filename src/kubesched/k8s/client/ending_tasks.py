"""Ends background tasks for sure.

A cancellation can get lost where it meets the end of what a task waits for (`asyncio.wait_for` before Python 3.12 takes
the answer and forgets the cancellation). Who then waits for the task waits for ever: so it is cancelled again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

AGAIN_S = 1.0


async def end_all(tasks: Iterable[asyncio.Task[Any]], again_s: float = AGAIN_S) -> None:
    """Returns when all have ended, however they did."""
    ending = list(tasks)
    pending = {task for task in ending if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=again_s)
    await asyncio.gather(*ending, return_exceptions=True)
