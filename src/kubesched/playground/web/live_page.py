"""The page on the secure port of a scheduler on a real cluster (`kubesched run --web`): to look, not to change.

    /web/                the page, and what it is made of: open to all, as it holds nothing of the cluster
    /web/api/...         see `api`; behind the port's authentication and authorization, as every other page

A browser sends the token that was typed into the page, or a client certificate. What a pod went through is told by its
own fields and by the scheduler's decisions: a scheduler may write events, but not read them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.resource import ResourceClaim, ResourceSlice
from kubesched.live.live_scheduler import LiveScheduler
from kubesched.live.serving.debug_pages import queue_report
from kubesched.live.serving.live_sources import LiveExplainer
from kubesched.playground.web.access import HEADERS
from kubesched.playground.web.api import PageApi
from kubesched.playground.web.page import STATIC
from kubesched.playground.web.sources import RecordedPod, WebSources

PAUSE_S = 0.5
_FILE = re.compile(r"[a-z_]+\.(js|css|svg)")


class LivePage:
    """Implements `MorePages`."""

    def __init__(self, scheduler: LiveScheduler) -> None:
        self._api = PageApi(_sources(scheduler), PAUSE_S, time.time)

    def routes(self) -> Sequence[tuple[str, Handler]]:
        return [
            ("/web", _to_index),
            ("/web/", _index),
            ("/web/static/{file}", _static),
            *((f"/web/api/{path}", page) for path, page in self._api.readable()),
        ]

    async def stop(self) -> None:
        await self._api.stop()


def _sources(scheduler: LiveScheduler) -> WebSources:
    informers, loop = scheduler.informers, scheduler.loop
    explainer = LiveExplainer(loop.cluster, lambda: scheduler.assembled, decisions=scheduler.decisions.report)

    async def recorded(namespace: str, name: str) -> RecordedPod:
        key = f"{namespace}/{name}"
        found = next((pod for pod in informers.of(Pod).lister if pod.key == key), None)
        return RecordedPod(None if found is None else msgspec.to_builtins(found))

    return WebSources(
        nodes=lambda: informers.of(Node).lister,
        pods=lambda: informers.of(Pod).lister,
        claims=lambda: informers.of(ResourceClaim).lister,
        slices=lambda: informers.of(ResourceSlice).lister,
        queue=lambda: queue_report(loop.queue, scheduler.shell.now_s()),
        explain=explainer.report,
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
