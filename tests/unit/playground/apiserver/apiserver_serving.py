"""For the tests of the API server: a server in memory on a free port, and a client that says what it was answered."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from kubesched.playground.apiserver.kinds.registry import TODAY
from kubesched.playground.apiserver.server import ApiServer, ServerSettings


@dataclass
class Answered:
    """Status, headers and decoded body of an answer."""

    status: int
    headers: Any
    body: Any

    @property
    def message(self) -> str:
        return str(self.body["message"])


@dataclass
class TestClient:
    """Speaks to one server as its administrator."""

    __test__ = False
    session: aiohttp.ClientSession
    server: ApiServer

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answered:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        given.setdefault("Authorization", f"Bearer {self.server.token}")
        data: Any = body if isinstance(body, bytes | str | None) else json.dumps(body)
        if isinstance(data, bytes):
            data = io.BytesIO(data)
        if body is not None and "Content-Type" not in given:
            given["Content-Type"] = "application/json"
        async with self.session.request(method, self.server.url + path, data=data, headers=given) as response:
            text = await response.read()
            try:
                content = json.loads(text) if text else None
            except ValueError:
                content = text
            return Answered(response.status, response.headers, content)

    async def events(self, path: str, count: int) -> list[dict[str, Any]]:
        """The first events of a watch."""
        found: list[dict[str, Any]] = []
        headers = {"Authorization": f"Bearer {self.server.token}"}
        async with self.session.get(self.server.url + path, headers=headers) as response:
            async for line in response.content:
                found.append(json.loads(line))
                if len(found) == count:
                    break
        return found


@asynccontextmanager
async def running(data: Path | None = None, version: str = TODAY) -> AsyncIterator[TestClient]:
    """A server for the time of the block."""
    server = ApiServer(ServerSettings(data=data, tls=False, version=version))
    await server.start()
    try:
        async with aiohttp.ClientSession() as session:
            yield TestClient(session, server)
    finally:
        await server.stop()


def serve(body: Callable[[TestClient], Awaitable[None]]) -> None:
    """Runs a test's body against a fresh server."""

    async def run() -> None:
        async with running() as client:
            await body(client)

    asyncio.run(run())


PODS = "/api/v1/namespaces/default/pods"


def pod(name: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "registry.k8s.io/pause:3.9"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers, **spec}}
