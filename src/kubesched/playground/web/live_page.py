"""The page on the secure port of a scheduler on a real cluster (`kubesched run --web`): to look, not to change.

    /web/                the page, and what it is made of: open to all, as it holds nothing of the cluster
    /web/api/...         see `api`; behind the port's authentication and authorization, as every other page

A browser sends the token that was typed into the page, or a client certificate. Events and PriorityClasses are read as
the scheduler, if it may: what a scheduler needs does not include them. Without events, a pod's own fields and the
scheduler's decisions tell what it went through.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler

from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.model.core import Node, Pod
from kubesched.k8s.model.resource import ResourceClaim, ResourceSlice
from kubesched.live.live_scheduler import LiveScheduler
from kubesched.live.serving.debug_pages import queue_report
from kubesched.live.serving.live_sources import LiveExplainer
from kubesched.playground.web.access import HEADERS
from kubesched.playground.web.api import PageApi
from kubesched.playground.web.page import STATIC
from kubesched.playground.web.pod_story import PodHistory
from kubesched.playground.web.sources import JsonObject, RecordedPod, WebSources
from kubesched.playground.web.workbench import TriedPods

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
