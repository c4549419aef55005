"""The seam below `RestClient`: something that carries one request to the server and brings one answer back.

Two carriers exist: `http1.transport` (our own, cheap, direct connections only) and `aiohttp_transport` (through
proxies; also opens watches). A transport knows nothing of retries, rates or what an answer means; it raises
`Unreachable` and `AnswerLost` as `errors` defines them, and nothing else.

Next: `http1.transport`, `aiohttp_transport`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from kubesched.k8s.client.target import Headers

CONNECT_TIMEOUT_S = 10.0
MAX_CONNECTIONS = 64
IDLE_CONNECTION_S = 20.0
"""Idle connections older than this are not used: load balancers and servers close theirs after 30 s and more, and a
write that meets the close on its way would have to be reported as `AnswerLost`."""


@dataclass(slots=True)
class Answer:
    """What the server said. Header names are in lower case, and only `retry-after` is sure to be there when sent;

    `body` is already unpacked.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport(Protocol):
    """Carries requests; `path` includes the query and is already percent-encoded."""

    async def exchange(
        self, method: str, path: str, headers: Headers, body: bytes | None, *, timeout_s: float, epoch: int = 0
    ) -> Answer: ...

    async def close(self) -> None: ...


class ByteStream(Protocol):
    """A 200 answer whose body arrives little by little."""

    async def read(self) -> bytes:
        """The next bytes; b"" at the end. Raises `AnswerLost` when the connection breaks or stays silent too long."""
        ...


class StreamTransport(Transport, Protocol):
    """A transport that can also hold an answer open."""

    def open_stream(
        self, path: str, headers: Headers, *, timeout_s: float, epoch: int = 0
    ) -> AbstractAsyncContextManager[Answer | ByteStream]:
        """A GET whose answer stays open; entering gives the whole `Answer` instead when the status is not 200."""
        ...
