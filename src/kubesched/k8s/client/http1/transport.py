"""Carries requests over our own connections: the cheap way, for servers that are reached without a proxy.

Next: `pool`, `connection`; `kubesched.k8s.client.aiohttp_transport` for the other way.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from kubesched.k8s.client.connection_advice import answer_lost, unreachable
from kubesched.k8s.client.http1.connection import NoAnswer
from kubesched.k8s.client.http1.pool import ConnectionPool
from kubesched.k8s.client.target import Headers, ServerTarget
from kubesched.k8s.client.transport import MAX_CONNECTIONS, Answer

_MAX_CACHED_HEADS = 32


class Http1Transport:
    """Implements `Transport`."""

    def __init__(self, target: ServerTarget, max_connections: int = MAX_CONNECTIONS) -> None:
        parts = urlsplit(target.url)
        self._target = target
        self._prefix = parts.path.rstrip("/")
        self._host = parts.netloc.rpartition("@")[2]
        self._pool = ConnectionPool(target, max_connections)
        self._heads: dict[Headers, str] = {}

    async def exchange(
        self, method: str, path: str, headers: Headers, body: bytes | None, *, timeout_s: float, epoch: int = 0
    ) -> Answer:
        request = self._encode(method, path, headers, body)
        try:
            connection = await self._pool.borrow(epoch, timeout_s)
        except (OSError, ValueError) as failure:
            raise unreachable(self._target, failure) from failure
        try:
            return await connection.send(request, timeout_s)
        except NoAnswer as failure:
            if failure.was_refused:
                raise unreachable(self._target, failure) from failure
            raise answer_lost(self._target, method, path, str(failure)) from failure
        finally:
            # Given up in the middle (cancelled, failed), the connection cannot be reused, and the pool throws it away.
            self._pool.give_back(connection)

    async def close(self) -> None:
        await self._pool.close()

    def _encode(self, method: str, path: str, headers: Headers, body: bytes | None) -> bytes:
        head = self._heads.get(headers)
        if head is None:
            head = self._encode_headers(headers)
        if body is None:
            return f"{method} {self._prefix}{path} HTTP/1.1\r\n{head}\r\n".encode()
        return f"{method} {self._prefix}{path} HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    def _encode_headers(self, headers: Headers) -> str:
        if len(self._heads) >= _MAX_CACHED_HEADS:
            self._heads.clear()
        lines = [f"{name}: {value}\r\n" for name, value in (("Host", self._host), *headers)]
        head = self._heads[headers] = "".join(lines)
        return head
