"""Requests and watches carried by aiohttp, where there is a proxy.

The session is made when it is first needed, because that must happen while the event loop runs.

Next: `transport` (the texts of failures), `http1_transport` (the cheaper carrier).
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from yarl import URL

from kubesched.k8s.client.errors import AnswerLost, Unreachable
from kubesched.k8s.client.target import Headers, ServerTarget
from kubesched.k8s.client.transport import (
    CONNECT_TIMEOUT_S,
    IDLE_CONNECTION_S,
    MAX_CONNECTIONS,
    Answer,
    ByteStream,
    answer_lost,
    unreachable,
    watch_for_dead_peer,
)


class AiohttpTransport:
    """Implements `StreamTransport`."""

    def __init__(self, target: ServerTarget) -> None:
        self._target = target
        self._session: aiohttp.ClientSession | None = None
        self._epoch = 0

    async def exchange(
        self, method: str, path: str, headers: Headers, body: bytes | None, *, timeout_s: float, epoch: int = 0
    ) -> Answer:
        async with self._open(method, path, headers, body, timeout_s, epoch) as response:
            try:
                return Answer(response.status, _lowered(response), await response.read())
            except (aiohttp.ClientError, TimeoutError, OSError) as failure:
                raise answer_lost(self._target, method, path, _reading_failed(failure)) from failure

    @asynccontextmanager
    async def open_stream(
        self, path: str, headers: Headers, *, timeout_s: float, epoch: int = 0
    ) -> AsyncIterator[Answer | ByteStream]:
        async with self._open("GET", path, headers, None, timeout_s, epoch) as response:
            if response.status == 200:
                watch_for_dead_peer(_socket_of(response))
                yield _ResponseStream(self._target, path, response)
                return
            try:
                answer = Answer(response.status, _lowered(response), await response.read())
            except (aiohttp.ClientError, TimeoutError, OSError) as failure:
                raise answer_lost(self._target, "GET", path, _reading_failed(failure)) from failure
        yield answer

    @asynccontextmanager
    async def _open(
        self, method: str, path: str, headers: Headers, body: bytes | None, timeout_s: float, epoch: int
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        session = await self._session_for(epoch)
        try:
            response = await session.request(
                method,
                URL(self._target.url + path, encoded=True),
                headers=headers,
                data=body,
                timeout=aiohttp.ClientTimeout(total=timeout_s, connect=None, sock_connect=CONNECT_TIMEOUT_S),
                proxy=self._target.proxy,
                server_hostname=self._target.tls_server_name,
                allow_redirects=False,
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as failure:
            raise self._classify(method, path, failure) from failure
        try:
            yield response
        finally:
            # A body read to its end has given the connection back already; any other connection is of no further use.
            response.close()

    def _classify(self, method: str, path: str, failure: BaseException) -> Unreachable | AnswerLost:
        """Whether the request may have been seen by the server."""
        if isinstance(failure, aiohttp.ClientHttpProxyError):
            return unreachable(self._target, OSError(f"the proxy answered {failure.status} {failure.message}"))
        if isinstance(failure, aiohttp.ClientConnectorCertificateError):
            return unreachable(self._target, failure.certificate_error)
        if isinstance(failure, aiohttp.ClientConnectorError):
            return unreachable(self._target, failure.os_error)
        if isinstance(failure, aiohttp.ConnectionTimeoutError):
            return unreachable(self._target, TimeoutError())
        if isinstance(failure, (aiohttp.InvalidURL, ssl.SSLError)):
            return unreachable(self._target, failure)
        return answer_lost(self._target, method, path, _reading_failed(failure))

    async def _session_for(self, epoch: int) -> aiohttp.ClientSession:
        """The session; a new one, with new connections, after the client certificate changed."""
        old = self._session
        if old is not None and epoch == self._epoch:
            return old
        self._epoch = epoch
        self._session = session = self._make_session()
        if old is not None:
            await old.close()
        return session

    def _make_session(self) -> aiohttp.ClientSession:
        # Behind a proxy, watches and requests share the connections.
        connector = aiohttp.TCPConnector(
            limit=2 * MAX_CONNECTIONS, keepalive_timeout=IDLE_CONNECTION_S, ssl=self._target.ssl_context or True
        )
        session = aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), skip_auto_headers=("Content-Type",)
        )
        # aiohttp would repeat PUT and DELETE by itself when a kept connection breaks; only RetryPolicy may decide that.
        session._retry_connection = False
        return session

    async def close(self) -> None:
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()


class _ResponseStream:
    """The body of an open answer, as it comes."""

    def __init__(self, target: ServerTarget, path: str, response: aiohttp.ClientResponse) -> None:
        self._target = target
        self._path = path
        self._response = response

    async def read(self) -> bytes:
        try:
            return await self._response.content.readany()
        except (aiohttp.ClientError, TimeoutError, OSError) as failure:
            raise answer_lost(self._target, "GET", self._path, _reading_failed(failure)) from failure


def _lowered(response: aiohttp.ClientResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


def _socket_of(response: aiohttp.ClientResponse) -> socket.socket | None:
    connection = response.connection
    if connection is None or connection.transport is None:
        return None
    found: socket.socket | None = connection.transport.get_extra_info("socket")
    return found


def _reading_failed(failure: BaseException) -> str:
    if isinstance(failure, TimeoutError):
        return "timeout"
    if isinstance(failure, aiohttp.ServerDisconnectedError):
        return "the server closed the connection"
    return f"{failure or type(failure).__name__}"
