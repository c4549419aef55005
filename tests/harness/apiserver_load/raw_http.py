"""HTTP/1.1 with as little work as possible, so that what is measured is the server: one request in flight for each of
many connections, and streams whose bytes are only counted.

Next: `requests.py` has what is sent, `run.py` sends it.
"""

from __future__ import annotations

import asyncio
import base64
import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class UnexpectedAnswerError(Exception):
    """The server answered something else than success, or went away."""


@dataclass(frozen=True, slots=True)
class ServerAccess:
    """Where the server is and how to be let in."""

    host: str
    port: int
    token: str
    context: ssl.SSLContext | None

    def head(self, method: str, path: str, more: str = "") -> bytes:
        """The head of a request but for its length and the empty line."""
        return (
            f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\nAccept: application/json\r\n"
            f"User-Agent: kube-scheduler/v1.36.4\r\nAuthorization: Bearer {self.token}\r\n{more}"
        ).encode()


def read_access(kubeconfig: Path) -> ServerAccess:
    """From a kubeconfig as `kubesched apiserver` writes it, or one that trusts any server."""
    content: dict[str, Any] = yaml.safe_load(kubeconfig.read_text())
    cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
    url = urlsplit(cluster["server"])
    context = None
    if url.scheme == "https":
        authority = base64.b64decode(cluster.get("certificate-authority-data", "")).decode()
        context = ssl.create_default_context(cadata=authority or None)
        if cluster.get("insecure-skip-tls-verify"):
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return ServerAccess(url.hostname or "127.0.0.1", url.port or 443, user["token"], context)


class Connection(asyncio.Protocol):
    """Sends one request at a time; `ask` gives the body of the answer."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._wanted = 0  # length of the whole answer, 0 while its head is not complete
        self._answer: asyncio.Future[bytes] | None = None
        self._closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def ask(self, request: bytes) -> asyncio.Future[bytes]:
        assert self._transport is not None and self._answer is None
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._answer

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._wanted:
            end = self._received.find(b"\r\n\r\n")
            if end < 0:
                return
            length = _LENGTH.search(self._received, 0, end)
            self._wanted = end + 4 + (int(length[1]) if length else 0)
        if len(self._received) >= self._wanted:
            self._complete()

    def _complete(self) -> None:
        answer, self._answer = self._answer, None
        status = bytes(self._received[9:12])
        body = bytes(self._received[self._received.index(b"\r\n\r\n") + 4 : self._wanted])
        self._received.clear()
        self._wanted = 0
        assert answer is not None
        if answer.done():
            return
        if status[:1] == b"2":
            answer.set_result(body)
        else:
            answer.set_exception(UnexpectedAnswerError(f"{status.decode()}: {body[:500].decode(errors='replace')}"))

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(UnexpectedAnswerError("the connection broke"))
        self._closed.set_result(None)

    async def close(self) -> None:
        assert self._transport is not None
        self._transport.close()
        await self._closed


async def connect(access: ServerAccess) -> Connection:
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(Connection, access.host, access.port, ssl=access.context)
    return connection


async def send_all(connections: list[Connection], requests: Iterator[bytes]) -> int:
    """Sends all requests, one at a time over each connection; returns how many they were."""
    sent = 0

    async def work(connection: Connection) -> None:
        nonlocal sent
        for request in requests:
            await connection.ask(request)
            sent += 1

    await asyncio.gather(*(work(connection) for connection in connections))
    return sent


class CountedStream(asyncio.Protocol):
    """A watch whose lines are counted, nothing more: outside of lines every \\n has its \\r."""

    def __init__(self, expected: int, end: bytes = b"") -> None:
        self.n_bytes = 0
        self.n_lines = 0
        loop = asyncio.get_running_loop()
        self.complete: asyncio.Future[None] = loop.create_future()
        self._closed: asyncio.Future[None] = loop.create_future()
        self._transport: asyncio.BaseTransport | None = None
        self._expected = expected
        self._end = end
        self._is_ending = False  # the line with the end has begun
        self._last = b""  # what was received before, as far as the end may have begun in it

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self.n_bytes += len(data)
        self.n_lines += data.count(b"\n") - data.count(b"\r")
        is_over = self._has_end(data) if self._end else self.n_lines >= self._expected
        if is_over and not self.complete.done():
            self.complete.set_result(None)

    def _has_end(self, data: bytes) -> bool:
        joined = self._last + data
        self._last = joined[-len(self._end) :]
        self._is_ending = self._is_ending or self._end in joined
        return self._is_ending and joined.endswith(b"\n")

    def connection_lost(self, error: Exception | None) -> None:
        if not self.complete.done():
            self.complete.set_exception(UnexpectedAnswerError(f"a watch ended after {self.n_lines} events"))
        self._closed.set_result(None)

    async def close(self) -> None:
        assert self._transport is not None
        self._transport.close()
        await self._closed


async def open_stream(access: ServerAccess, path: str, expected: int, end: bytes = b"") -> CountedStream:
    """Begins a watch that is complete with so many events, or with a line that has ``end`` in it."""
    loop = asyncio.get_running_loop()
    transport, stream = await loop.create_connection(
        lambda: CountedStream(expected, end), access.host, access.port, ssl=access.context
    )
    transport.write(access.head("GET", path) + b"\r\n")
    return stream
