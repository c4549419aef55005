"""Server-sent events: the whole state for a start, then what changes, to everybody who listens.

One look at the state serves all listeners, and nobody looks while nobody listens. A listener that does not keep up
gets the whole state again instead of all that it missed.

Next: `page`, which hands listeners in.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

import msgspec

from kubesched.playground.web.snapshot import ShownState, StateReader, changes

MOST_WAITING = 8
"""So many messages may wait for a listener."""
KEEP_ALIVE_S = 15.0
"""After so long without news a listener gets a comment: that is how we notice that it is gone."""
PAUSES_PER_LOOK = 10
"""Looking at a large cluster takes its time: at most a tenth of all, as the scheduler may be in the same loop."""

_KEEP_ALIVE = b": still here\n\n"


class StateStream:
    """`listen` yields messages, ready to be written; `stop` ends all of them."""

    def __init__(self, reader: StateReader, pause_s: float) -> None:
        self._reader = reader
        self._pause_s = pause_s
        self._listeners: set[_Listener] = set()
        self._looking: asyncio.Task[None] | None = None
        self._last: ShownState | None = None

    async def listen(self) -> AsyncGenerator[bytes]:
        listener = _Listener()
        self.look()
        assert self._last is not None
        listener.restart(_message("state", self._last.report()))
        self._listeners.add(listener)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_forever(), name="web page stream")
        try:
            while (message := await listener.next()) is not None:
                yield message
        finally:
            self._listeners.discard(listener)
            if not self._listeners:
                await self._stop_looking()

    async def stop(self) -> None:
        for listener in self._listeners:
            listener.end()
        await self._stop_looking()

    async def _look_forever(self) -> None:
        time_s = asyncio.get_running_loop().time
        pause_s = self._pause_s
        while True:
            await asyncio.sleep(pause_s)
            started_s = time_s()
            self.look()
            pause_s = max(self._pause_s, PAUSES_PER_LOOK * (time_s() - started_s))

    def look(self) -> None:
        """The changes go to all who listen already."""
        before, self._last = self._last, self._reader.read()
        if before is None or not self._listeners:
            return
        found = changes(before, self._last)
        if not found:
            return
        message = _message("change", found)
        for listener in self._listeners:
            if not listener.put(message):
                listener.restart(_message("state", self._last.report()))

    async def _stop_looking(self) -> None:
        looking, self._looking = self._looking, None
        if looking is not None:
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking


class _Listener:
    def __init__(self) -> None:
        self._waiting: deque[bytes] = deque()
        self._has_news = asyncio.Event()
        self._has_ended = False

    def put(self, message: bytes) -> bool:
        """False if too much waits already."""
        if len(self._waiting) >= MOST_WAITING:
            return False
        self._waiting.append(message)
        self._has_news.set()
        return True

    def restart(self, message: bytes) -> None:
        self._waiting.clear()
        self.put(message)

    def end(self) -> None:
        self._has_ended = True
        self._has_news.set()

    async def next(self) -> bytes | None:
        """None at the end."""
        while not self._waiting and not self._has_ended:
            self._has_news.clear()
            try:
                async with asyncio.timeout(KEEP_ALIVE_S):
                    await self._has_news.wait()
            except TimeoutError:
                return _KEEP_ALIVE
        return None if self._has_ended else self._waiting.popleft()


def _message(kind: str, body: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), msgspec.json.encode(body))
