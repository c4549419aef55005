"""The playground's own small HTTP server for its page, on loopback only.

    /                the page, and what it is made of
    /api/login       POST {"key": ...}: the key becomes a cookie
    /api/...         see `api`

`url` has the key behind a `#`, where it does not reach logs; any other client sends it as a bearer token.

Next: `access` for who may look, `api` for what there is to ask, `static/main.js` for the browser's side.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
from aiohttp import web

from kubesched.k8s.connections.site import BoundedSite, ConnectionLimits
from kubesched.playground.web.access import LOGIN_PATH, PageKey, add_headers, guard, json_answer, refused
from kubesched.playground.web.api import PageApi
from kubesched.playground.web.sources import WebSources

STATIC = Path(__file__).parent / "static"
LOOPBACK = "127.0.0.1"

_MOST_CONNECTIONS = 256
_MOST_LOGIN_BYTES = 1024
_MOST_MANIFEST_BYTES = 2**20


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
        self._api = PageApi(sources, settings.pause_s, settings.now_s)
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
        app = web.Application(middlewares=[guard(self.key)], client_max_size=_MOST_MANIFEST_BYTES)
        app.on_response_prepare.append(add_headers)
        app.add_routes(
            [
                web.post(LOGIN_PATH, self._login),
                *(web.get(f"/api/{path}", page) for path, page in self._api.readable()),
                *(web.route(method, f"/api/{path}", page) for method, path, page in self._api.writable()),
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
        await self._api.stop()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _index(self, request: web.Request) -> web.FileResponse:
        return web.FileResponse(STATIC / "index.html")

    async def _login(self, request: web.Request) -> web.Response:
        if (request.content_length or 0) > _MOST_LOGIN_BYTES:
            return refused(413, "a key is shorter than that")
        try:
            given = msgspec.json.decode(await request.read(), type=_Login)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return refused(400, 'expected {"key": "..."}')
        if not self.key.opens(given.key):
            return refused(401, "this is not the key that was printed")
        answer = json_answer({})
        self.key.hand_over(request, answer)
        return answer


class _Login(msgspec.Struct):
    key: str
