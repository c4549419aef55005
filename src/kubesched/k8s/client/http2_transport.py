"""Carries requests over as few connections as the server lets us, many at once on each: for who writes much.

With servers that do not speak HTTP/2 it is `http1_transport`, and so are watches: each has a connection of its own, on
which the server need not wait for anybody else.

A request that the server refused to look at, as one may that meets the end of a connection on its way, is sent once
more over another connection.

Next: `http2_connection`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any, cast
from urllib.parse import urlsplit

from kubesched.k8s.client.errors import AnswerLost, Unreachable
from kubesched.k8s.client.http1_connection import NoAnswer
from kubesched.k8s.client.http1_transport import ConnectionPool, Http1Transport
from kubesched.k8s.client.http2_connection import Http2Connection
from kubesched.k8s.client.target import Headers, ServerTarget
from kubesched.k8s.client.transport import (
    CONNECT_TIMEOUT_S,
    IDLE_CONNECTION_S,
    Answer,
    ByteStream,
    answer_lost,
    unreachable,
)


class _OffersHttp2:
    """A TLS context for connections that offer HTTP/2, of one that others use, too, for theirs."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context

    def wrap_bio(self, *args: Any, **named: Any) -> ssl.SSLObject:
        """All that asyncio asks of a context. What is offered is taken over when the connection is made."""
        self._context.set_alpn_protocols(["h2", "http/1.1"])
        try:
            return self._context.wrap_bio(*args, **named)
        finally:
            self._context.set_alpn_protocols(["http/1.1"])


class Http2Transport:
    """Implements `StreamTransport`."""

    def __init__(self, target: ServerTarget) -> None:
        parts = urlsplit(target.url)
        self._target = target
        self._prefix = parts.path.rstrip("/")
        self._authority = parts.netloc.rpartition("@")[2]
        self._http1 = Http1Transport(target)
        self._pool = ConnectionPool(target)
        if self._pool.tls is not None:
            self._pool.tls = cast("ssl.SSLContext", _OffersHttp2(self._pool.tls))
        self._speaks_http2 = True
        """As far as is known."""
        self._connections: list[Http2Connection] = []
        self._opening: asyncio.Task[None] | None = None

    async def exchange(
        self, method: str, path: str, headers: Headers, body: bytes | None, *, timeout_s: float, epoch: int = 0
    ) -> Answer:
        is_first = True
        while True:
            connection = self._usable(epoch)
            if connection is None and self._speaks_http2:
                try:
                    connection = await self._opened(epoch, timeout_s)
                except (OSError, ValueError) as failure:
                    raise unreachable(self._target, failure) from failure
            if connection is None:
                return await self._http1.exchange(method, path, headers, body, timeout_s=timeout_s, epoch=epoch)
            try:
                return await connection.ask(method, self._prefix + path, headers, body, timeout_s)
            except NoAnswer as failure:
                if failure.was_refused and is_first:
                    is_first = False
                elif failure.was_refused:
                    raise unreachable(self._target, failure) from failure
                else:
                    raise answer_lost(self._target, method, path, str(failure)) from failure

    def is_ready(self, epoch: int) -> bool:
        """Whether there is a connection that can take a request."""
        return self._usable(epoch) is not None

    def begin(
        self,
        method: str,
        path: str,
        headers: Headers,
        body: bytes | None,
        *,
        timeout_s: float,
        epoch: int,
        tell: Callable[[Answer | Unreachable | AnswerLost], None],
    ) -> Callable[[], None] | None:
        """The same at once, without a task: gives how to call it off, and tells what became of it, unless it was called
        off. None, and nothing is sent, if no connection is ready."""
        connection = self._usable(epoch)
        if connection is None:
            return None

        def told(outcome: Answer | NoAnswer) -> None:
            connection.end(exchange)
            if isinstance(outcome, Answer):
                tell(outcome)
            elif outcome.was_refused:
                tell(unreachable(self._target, outcome))
            else:
                tell(answer_lost(self._target, method, path, str(outcome)))

        exchange = connection.send(method, self._prefix + path, headers, body, timeout_s, told)
        return partial(connection.end, exchange)

    def open_stream(
        self, path: str, headers: Headers, *, timeout_s: float, epoch: int = 0
    ) -> AbstractAsyncContextManager[Answer | ByteStream]:
        return self._http1.open_stream(path, headers, timeout_s=timeout_s, epoch=epoch)

    async def close(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        connections, self._connections = self._connections, []
        for connection in connections:
            connection.close()
        if connections:
            await asyncio.wait([connection.closed for connection in connections], timeout=1.0)
        await self._pool.close()
        await self._http1.close()

    # -- connections ---------------------------------------------------------------------------------------------------

    def _usable(self, epoch: int) -> Http2Connection | None:
        for connection in self._connections:
            if connection.epoch == epoch and connection.can_take():
                if not connection.is_idle or self._is_fresh(connection):
                    return connection
                connection.retire()
        return None

    def _is_fresh(self, connection: Http2Connection) -> bool:
        return asyncio.get_running_loop().time() - connection.idle_since_s <= IDLE_CONNECTION_S

    async def _opened(self, epoch: int, timeout_s: float) -> Http2Connection | None:
        """One that can take a request, opened if there is none; None if the server does not speak HTTP/2."""
        async with asyncio.timeout(timeout_s):
            while self._speaks_http2:
                connection = self._usable(epoch)
                if connection is not None:
                    return connection
                if self._opening is None or self._opening.done():
                    self._opening = asyncio.create_task(self._open(epoch), name="open an HTTP/2 connection")
                    self._opening.add_done_callback(_look_at)
                await asyncio.shield(self._opening)
        return None

    async def _open(self, epoch: int) -> None:
        for connection in self._connections:
            if connection.epoch != epoch:
                connection.retire()
        self._connections = [connection for connection in self._connections if connection.is_open]
        loop = asyncio.get_running_loop()
        connection = await self._pool.connect(lambda: Http2Connection(loop, epoch, self._authority))
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                self._speaks_http2 = await connection.ready
        except BaseException:
            connection.close()
            raise
        if self._speaks_http2:
            self._connections.append(connection)


def _look_at(opening: asyncio.Task[None]) -> None:
    """Whoever waited for it was told."""
    if not opening.cancelled():
        opening.exception()
