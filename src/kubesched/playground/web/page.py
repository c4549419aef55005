"""The page's own small HTTP server, on loopback only.

    /                                  the page, and what it is made of
    /api/login                         POST {"key": ...}: the key becomes a cookie
    /api/state                         nodes, pods and queue as they are now
    /api/stream                        the same, then every change, as server-sent events
    /api/explain/NAMESPACE/POD         why the pod waits, or is where it is
    /api/timeline/NAMESPACE/POD        what has happened to it

`url` has the key behind a `#`, where it does not reach logs; any other client sends it as a bearer token.

Next: `access` for who may look, `stream` for how changes travel, `static/main.js` for the browser's side.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
from aiohttp import web

from kubesched.explanation.explain import NotExplainableError
from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable
from kubesched.k8s.connections import BoundedSite, ConnectionLimits
from kubesched.playground.web.access import LOGIN_PATH, PageKey, add_headers, guard
from kubesched.playground.web.answers import json_answer, refused
from kubesched.playground.web.snapshot import StateReader
from kubesched.playground.web.sources import WebSources
from kubesched.playground.web.stream import StateStream
from kubesched.playground.web.timeline import timeline

STATIC = Path(__file__).parent / "static"
LOOPBACK = "127.0.0.1"

_NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
_MOST_CONNECTIONS = 256
_MOST_LOGIN_BYTES = 1024


@dataclass(frozen=True, slots=True)
class WebSettings:
    """Port 0 takes a free one."""

    port: int = 0
    pause_s: float = 0.25
    """Changes are told at most once in that time."""
    now_s: Callable[[], float] = time.time
    """The time of day."""


class WebPage:
    """One page: `start`, print `url`, `stop`."""

    def __init__(self, settings: WebSettings, sources: WebSources) -> None:
        self._settings = settings
        self._sources = sources
        self._reader = StateReader(sources, settings.now_s)
        self._stream = StateStream(self._reader, settings.pause_s)
        self._runner: web.AppRunner | None = None
        self._port = settings.port
        self.key = PageKey()

    @property
    def address(self) -> str:
        """Without the key."""
        return f"http://{LOOPBACK}:{self._port}"

    @property
    def url(self) -> str:
        """What to print: opens the page."""
        return f"{self.address}/#key={self.key.text}"

    async def start(self) -> None:
        """Raises OSError if the port is taken."""
        app = web.Application(middlewares=[guard(self.key)], client_max_size=_MOST_LOGIN_BYTES)
        app.on_response_prepare.append(add_headers)
        app.add_routes(
            [
                web.post(LOGIN_PATH, self._login),
                web.get("/api/state", self._state),
                web.get("/api/stream", self._changes),
                web.get("/api/explain/{namespace}/{pod}", self._explain),
                web.get("/api/timeline/{namespace}/{pod}", self._timeline),
                web.get("/", self._index),
                web.static("/static", STATIC),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        limits = ConnectionLimits(total=_MOST_CONNECTIONS)
        await BoundedSite(self._runner, LOOPBACK, self._settings.port, limits=limits).start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        await self._stream.stop()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _index(self, request: web.Request) -> web.FileResponse:
        return web.FileResponse(STATIC / "index.html")

    async def _login(self, request: web.Request) -> web.Response:
        try:
            given = msgspec.json.decode(await request.read(), type=_Login)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return refused(400, 'expected {"key": "..."}')
        if not self.key.opens(given.key):
            return refused(401, "this is not the key that was printed")
        answer = json_answer({})
        self.key.hand_over(request, answer)
        return answer

    async def _state(self, request: web.Request) -> web.Response:
        return json_answer(self._reader.read().report())

    async def _changes(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await answer.prepare(request)
        messages = self._stream.listen()
        with suppress(ConnectionError):  # the reader went away, as readers do
            async for message in messages:
                await answer.write(message)
        await messages.aclose()
        return answer

    async def _explain(self, request: web.Request) -> web.Response:
        found = _pod_of(request)
        if found is None or self._sources.explain is None:
            return refused(404, "nothing to explain here")
        try:
            explanation = await self._sources.explain(*found, as_text=True)
        except NotExplainableError as problem:
            return refused(404, str(problem))
        return json_answer({"explanation": explanation})

    async def _timeline(self, request: web.Request) -> web.Response:
        found = _pod_of(request)
        if found is None:
            return refused(404, "no pod has such a name")
        try:
            recorded = await self._sources.recorded(*found)
        except (ApiError, Unreachable, AnswerLost) as problem:
            return refused(502, f"the API server did not tell: {problem}")
        return json_answer({"timeline": timeline(recorded)})


class _Login(msgspec.Struct):
    key: str


def _pod_of(request: web.Request) -> tuple[str, str] | None:
    """Namespace and name, if they may be such: they become part of a path."""
    namespace, name = request.match_info["namespace"], request.match_info["pod"]
    is_valid = _NAME.fullmatch(namespace) and _NAME.fullmatch(name)
    return (namespace, name) if is_valid else None
