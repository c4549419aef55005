"""One connection: one request at a time, its answer or why there is none.

Keeps the guarantee of `errors`: a failure before the first byte was written is `Unreachable` (the pool sees to that, by
never lending a dead connection); after it, `AnswerLost`.

Next: `pool`, which lends connections; `answer_reader`, which reads the answers.
"""

from __future__ import annotations

import asyncio
import ssl

from kubesched.k8s.client.http1.answer_reader import AnswerReader, MalformedAnswer, read_at_once
from kubesched.k8s.client.transport import Answer


class NoAnswer(Exception):  # noqa: N818 - a fact about the exchange; the transport makes an `AnswerLost` of it
    """A request was written and no whole answer came; says why.

    `was_refused`: the server turned the connection down before it read anything, so the request did not count.
    """

    def __init__(self, why: str, *, was_refused: bool = False) -> None:
        super().__init__(why)
        self.was_refused = was_refused


class Http1Connection(asyncio.Protocol):
    """`send` a request, await the answer. `is_open` and `can_be_reused` are the pool's questions."""

    def __init__(self, loop: asyncio.AbstractEventLoop, epoch: int) -> None:
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._reader: AnswerReader | None = None
        self._waiting: asyncio.Future[Answer] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.can_be_reused = True
        self.epoch = epoch
        self.idle_since_s = 0.0
        self.closed: asyncio.Future[None] = loop.create_future()
        self._has_answered = False

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    def send(self, request: bytes, timeout_s: float) -> asyncio.Future[Answer]:
        """Writes the request; the future fails with `NoAnswer`. Cancelling it makes the connection useless."""
        assert self._transport is not None and self._waiting is None
        self._reader = None
        self.can_be_reused = False  # until the whole answer is here
        self._waiting = self._loop.create_future()
        self._timer = self._loop.call_later(timeout_s, self._time_is_up, timeout_s)
        self._transport.write(request)
        return self._waiting

    def close(self) -> None:
        """Ends the connection at once; a request under way fails."""
        self.can_be_reused = False
        if self._transport is not None:
            self._transport.abort()
        self._fail("the connection was closed")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._waiting is None:
            self.close()  # nobody asked: whatever it is, it must not be taken for the next answer
            return
        reader = self._reader
        if reader is None:
            answer = read_at_once(data)
            if answer is not None:
                self._succeed(answer, keeps_connection=True)
                return
            reader = self._reader = AnswerReader()
        try:
            answer = reader.feed(data)
        except MalformedAnswer as malformed:
            self._fail(str(malformed))
            self.close()
            return
        if answer is not None:
            self._succeed(answer, keeps_connection=reader.keeps_connection)

    def eof_received(self) -> None:
        self._finish_at_end()

    def connection_lost(self, failure: Exception | None) -> None:
        self.can_be_reused = False
        if not self.closed.done():
            self.closed.set_result(None)
        if isinstance(failure, ssl.SSLError):
            # With TLS 1.3 a server judges the client certificate after the client has begun to write.
            why = f"the server ended the TLS connection ({failure.reason or failure}); check the client certificate"
            self._fail(why, was_refused=not self._has_answered)
        elif failure is not None:
            self._fail(f"the connection broke ({failure})")
        self._finish_at_end()

    def _finish_at_end(self) -> None:
        self.can_be_reused = False
        if self._waiting is None:
            return
        reader = self._reader or AnswerReader()
        try:
            answer = reader.end()
        except MalformedAnswer as malformed:
            self._fail(str(malformed))
            return
        if answer is not None:
            self._succeed(answer, keeps_connection=False)
        elif reader.has_begun:
            self._fail("the server closed the connection in the middle of the answer")
        else:
            self._fail("the server closed the connection" + self._hint())

    def _hint(self) -> str:
        is_tls = self._transport is not None and self._transport.get_extra_info("ssl_object") is not None
        return (
            " right after the TLS handshake; check the client certificate" if is_tls and not self._has_answered else ""
        )

    def _succeed(self, answer: Answer, *, keeps_connection: bool) -> None:
        waiting = self._stop_waiting()
        self._has_answered = True
        self.can_be_reused = keeps_connection
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def _fail(self, why: str, *, was_refused: bool = False) -> None:
        waiting = self._stop_waiting()
        if waiting is not None and not waiting.done():
            waiting.set_exception(NoAnswer(why, was_refused=was_refused))

    def _time_is_up(self, timeout_s: float) -> None:
        self._fail(f"timeout after {timeout_s:g} s")
        self.close()

    def _stop_waiting(self) -> asyncio.Future[Answer] | None:
        waiting, self._waiting = self._waiting, None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return waiting
