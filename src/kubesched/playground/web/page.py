"""Where the page is served: by the playground's own small HTTP server, and on the port of a scheduler.

The playground's server is on loopback only. Its `url` has the key behind a `#`, where it does not reach logs; any other
client sends it as a bearer token.

    /                the page, and what it is made of
    /api/login       POST {"key": ...}: the key becomes a cookie
    /api/...         see `api`

On the secure port of a scheduler on a real cluster (`kubesched run --web`) the page is there to look, not to change:

    /web/            the page, and what it is made of: open to all, as it holds nothing of the cluster
    /web/api/...     see `api`; behind the port's authentication and authorization, as every other page

There, a browser sends the token that was typed into the page, or a client certificate. Events and PriorityClasses are
read as the scheduler, if it may: what a scheduler needs does not include them. Without events, a pod's own fields and
the scheduler's decisions tell what it went through.

Next: `api` for who may look and what there is to ask, `static/main.js` for the browser's side.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.connections.site import BoundedSite, ConnectionLimits
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.resource import ResourceClaim, ResourceSlice
from kubesched.live.live_scheduler import LiveScheduler
from kubesched.live.serving.debug_pages import queue_report
from kubesched.live.serving.live_sources import LiveExplainer
from kubesched.playground.web.api import HEADERS, LOGIN_PATH, PageApi, PageKey, add_headers, guard, json_answer, refused
from kubesched.playground.web.pod_story import PodHistory
from kubesched.playground.web.sources import JsonObject, RecordedPod, WebSources
from kubesched.playground.web.workbench import TriedPods

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


PAUSE_S = 0.5
_QPS, _BURST = 5, 10
"""Who looks must not take the API server's time from the scheduler."""
_FILE = re.compile(r"[a-z_]+\.(js|css|svg)")


class LivePage:
    """Implements `MorePages`."""

    def __init__(self, scheduler: LiveScheduler) -> None:
        self._client = RestClient(scheduler.target, qps=_QPS, burst=_BURST)
        self._api = PageApi(_sources(scheduler, self._client), PAUSE_S, time.time)

    def routes(self) -> Sequence[tuple[str, Handler]]:
        return [
            ("/web", _to_index),
            ("/web/", _index),
            ("/web/static/{file}", _static),
            *((f"/web/api/{path}", page) for path, page in self._api.readable()),
        ]

    def questions(self) -> Sequence[tuple[str, Handler]]:
        return [(f"/web/api/{path}", page) for method, path, page in self._api.writable() if method == "POST"]

    async def stop(self) -> None:
        await self._api.stop()
        await self._client.close()


def _sources(scheduler: LiveScheduler, client: RestClient) -> WebSources:
    informers, loop = scheduler.informers, scheduler.loop
    history = PodHistory(client)
    tried = TriedPods(client)
    explainer = LiveExplainer(
        loop.cluster, lambda: scheduler.assembled, scheduler.emulation, decisions=scheduler.decisions.report
    )

    async def recorded(namespace: str, name: str) -> RecordedPod:
        key = f"{namespace}/{name}"
        found = next((pod for pod in informers.of(Pod).lister if pod.key == key), None)
        pod = None if found is None else msgspec.to_builtins(found)
        try:
            return RecordedPod(pod, await history.events(namespace, name))
        except (ApiError, Unreachable, AnswerLost) as problem:
            return RecordedPod(pod, note=f"Without events: {problem}")

    async def what_if(text: str) -> JsonObject:
        return await explainer.what_if(await tried.read(text))

    return WebSources(
        nodes=lambda: informers.of(Node).lister,
        pods=lambda: informers.of(Pod).lister,
        claims=lambda: informers.of(ResourceClaim).lister,
        slices=lambda: informers.of(ResourceSlice).lister,
        groups=lambda: loop.cluster.objects.pod_groups.values(),
        queue=lambda: queue_report(loop.queue, scheduler.shell.now_s()),
        explain=explainer.report,
        explain_group=explainer.group_report,
        what_if=what_if,
        decisions=scheduler.decisions.report,
        recorded=recorded,
    )


async def _to_index(_request: web.Request) -> web.Response:
    return web.Response(status=308, headers={"Location": "/web/"})


async def _index(_request: web.Request) -> web.StreamResponse:
    return web.FileResponse(STATIC / "index.html", headers=HEADERS)


async def _static(request: web.Request) -> web.StreamResponse:
    name = request.match_info["file"]
    if not _FILE.fullmatch(name) or not (STATIC / name).is_file():
        raise web.HTTPNotFound
    return web.FileResponse(STATIC / name, headers=HEADERS)
