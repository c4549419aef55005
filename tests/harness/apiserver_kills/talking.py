"""Requests of the writers and followers, as plain calls.

A server that is killed breaks connections: that is a ServerGoneError here, whatever the connection says. Next:
`writers.py`.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec

from harness.apiserver_load.raw_http import ServerAccess

_NAMESPACE = "/api/v1/namespaces/default"


class ServerGoneError(Exception):
    """The connection broke, or there was nobody to connect to."""


class RefusedError(Exception):
    """The server answered with a Status that says no."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")
        self.code = code


@dataclass(slots=True)
class TalkingClient:
    """One server, as the administrator sees it."""

    session: aiohttp.ClientSession
    access: ServerAccess

    def url(self, path: str) -> str:
        scheme = "http" if self.access.context is None else "https"
        return f"{scheme}://{self.access.host}:{self.access.port}{path}"

    def _options(self) -> dict[str, Any]:
        context: ssl.SSLContext | bool = self.access.context or False
        return {"headers": {"Authorization": f"Bearer {self.access.token}"}, "ssl": context}

    async def ask(self, method: str, path: str, body: Any = None, media_type: str = "application/json") -> Any:
        """The answer's body. Raises RefusedError, ServerGoneError."""
        options = self._options()
        if body is not None:
            options["headers"]["Content-Type"] = media_type
            options["data"] = msgspec.json.encode(body)
        try:
            async with self.session.request(method, self.url(path), **options) as answer:
                text = await answer.read()
        except (aiohttp.ClientError, ConnectionError) as error:
            raise ServerGoneError(str(error)) from None
        if answer.status >= 300:
            raise RefusedError(answer.status, text.decode(errors="replace"))
        return msgspec.json.decode(text)

    async def lines(self, path: str) -> AsyncIterator[dict[str, Any]]:
        """The complete lines of a watch, until it ends. Raises RefusedError, ServerGoneError."""
        try:
            async with self.session.get(self.url(path), **self._options()) as answer:
                if answer.status >= 300:
                    raise RefusedError(answer.status, await answer.text())
                rest = b""
                async for part in answer.content.iter_any():
                    *complete, rest = (rest + part).split(b"\n")
                    for line in complete:
                        yield msgspec.json.decode(line)
        except (aiohttp.ClientError, ConnectionError) as error:
            raise ServerGoneError(str(error)) from None


def collection(resource: str) -> str:
    """The path of all objects of a resource that the rounds write to."""
    return f"{_NAMESPACE}/{resource}"
