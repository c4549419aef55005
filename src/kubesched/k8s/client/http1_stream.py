"""A watch over a connection of its own: an answer whose body is read while it comes.

What was received before the connection broke is read first. When nobody reads, no more is taken from the network than
`_MOST_UNREAD` and what is on its way.

Next: `http1_transport`, which opens them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kubesched.k8s.client.errors import AnswerLost
from kubesched.k8s.client.http1_connection import AnswerReader, MalformedAnswer, NoAnswer, why_lost
from kubesched.k8s.client.transport import Answer

_MOST_UNREAD = 4 * 1024 * 1024


class Http1Stream(asyncio.Protocol):
    """Implements `ByteStream`. `opened` is None once a 200 began to be answered, else the whole answer; it fails with
    `NoAnswer`. `lost` makes the error of a stream that broke."""

    def __init__(self, loop: asyncio.AbstractEventLoop, lost: Callable[[str], AnswerLost]) -> None:
        self._loop = loop
        self._lost = lost
        self._reader = AnswerReader()
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.opened: asyncio.Future[Answer | None] = loop.create_future()
        self._unread: list[bytes] = []
        self._n_unread = 0
        self._is_paused = False
        self._has_ended = False
        self._why_lost = ""
        self._news: asyncio.Future[None] | None = None

    def begin(self, request: bytes, timeout_s: float) -> None:
        assert self._transport is not None
        self._timer = self._loop.call_later(timeout_s, self._break, f"timeout after {timeout_s:g} s")
        self._transport.write(request)

    def close(self) -> None:
        """Nobody reads it any more."""
        self.opened.cancel()
        if self._timer is not None:
            self._timer.cancel()
        if self._transport is not None:
            self._transport.abort()

    async def read(self) -> bytes:
        while not self._unread:
            if self._why_lost:
                raise self._lost(self._why_lost)
            if self._has_ended:
                return b""
            self._news = self._loop.create_future()
            await self._news
        data = self._unread[0] if len(self._unread) == 1 else b"".join(self._unread)
        self._unread.clear()
        self._n_unread = 0
        if self._is_paused and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()
        return data

    # -- the connection's calls ----------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            answer = self._reader.feed(data)
        except MalformedAnswer as malformed:
            self._break(str(malformed))
            return
        self._came(answer)

    def eof_received(self) -> None:
        self._finish(None)

    def connection_lost(self, failure: Exception | None) -> None:
        self._finish(failure)

    # ------------------------------------------------------------------------------------------------------------------

    def _came(self, answer: Answer | None) -> None:
        if self._reader.status != 200:
            if answer is not None and not self.opened.done():
                self.opened.set_result(answer)
            return
        if not self.opened.done():
            self.opened.set_result(None)
        body = self._reader.take() if answer is None else answer.body
        if body:
            self._unread.append(body)
            self._n_unread += len(body)
            if self._n_unread > _MOST_UNREAD and not self._is_paused and self._transport is not None:
                self._is_paused = True
                self._transport.pause_reading()
        self._has_ended = answer is not None
        self._tell()

    def _finish(self, failure: Exception | None) -> None:
        """The connection ended; that may be how the body ends."""
        if self._has_ended or self._why_lost:
            return
        try:
            answer = None if failure is not None else self._reader.end()
        except MalformedAnswer as malformed:
            self._break(str(malformed))
            return
        if answer is not None:
            self._came(answer)
            return
        why, was_refused = why_lost(failure, self._reader.has_begun)
        self._break(why, was_refused=was_refused)

    def _break(self, why: str, *, was_refused: bool = False) -> None:
        self._why_lost = why
        if not self.opened.done():
            self.opened.set_exception(NoAnswer(why, was_refused=was_refused))
        self._tell()
        self.close()

    def _tell(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)
