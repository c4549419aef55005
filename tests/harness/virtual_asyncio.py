"""An asyncio event loop whose time jumps to the next timer: hours of waiting run in milliseconds, always alike.

`run_virtually(main)` runs a coroutine on it. Code under test may use `asyncio.sleep` and `asyncio.timeout` as ever. For
code that does no real input or output: a socket that is not ready would be jumped over.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class NothingWillHappenError(RuntimeError):
    """Every task waits, and no timer is set that would wake one."""


class _JumpingSelector(selectors.SelectSelector):
    """Instead of waiting, moves the time. `before_wait` is called at every turn of the loop."""

    def __init__(self, before_wait: Callable[[], None]) -> None:
        super().__init__()
        self.now_s = 0.0
        self._before_wait = before_wait

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._before_wait()
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise NothingWillHappenError("all tasks wait and no timer is set")
        self.now_s += max(0.0, timeout)
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """`time()` starts at 0 and moves only when all tasks wait."""

    def __init__(self, before_wait: Callable[[], None] = lambda: None) -> None:
        self._jumping = _JumpingSelector(before_wait)
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s

    def pause(self, for_s: float) -> None:
        """The process is stopped for so long: timers that were due meanwhile come all at once, and late."""
        self._jumping.now_s += for_s


def run_virtually(main: Coroutine[Any, Any, T], before_wait: Callable[[], None] = lambda: None) -> T:
    """Runs `main` to its end. `before_wait` is called whenever the loop has done what it could do at one moment."""
    with asyncio.Runner(loop_factory=lambda: VirtualTimeLoop(before_wait)) as runner:
        return runner.run(main)
