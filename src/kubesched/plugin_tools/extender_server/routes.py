"""The extender's pages: the four verbs, `/healthz`, `/readyz` and `/metrics`.

Only callers that `server` lets in are answered. A request that cannot be understood is 400 with a line of text. What a
plugin does wrong is in the answer itself where `extender/v1` has a place for it (filter, bind), else 500 with a line of
text, which kube-scheduler takes as a failure. Counted is how long calls took, by verb and result, and how much of the
cluster is known.

Next: `verdicts`, which answers; `server`, which listens.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable

from aiohttp import web

from kubesched.plugin_tools.extender_server import messages
from kubesched.plugin_tools.extender_server.messages import NodeReader, RequestError
from kubesched.plugin_tools.extender_server.server import CallerRules, guard
from kubesched.plugin_tools.extender_server.verdicts import CallError, PluginBinder, PluginVerdictService
from kubesched.scheduler.cluster import Cluster
from kubesched.scheduler.engine.metrics.definitions import CACHE_SIZE, MetricDefinition, MetricKind
from kubesched.scheduler.engine.metrics.exposition import CONTENT_TYPE, render
from kubesched.scheduler.engine.metrics.series import HistogramSeries, MetricFamily
from kubesched.scheduler.engine.plugin_call import PluginError

CALL_DURATION = MetricDefinition(
    "extender_call_duration_seconds",
    MetricKind.HISTOGRAM,
    ("verb", "result"),
    "ALPHA",
    "How long it took to answer a call of kube-scheduler: ok, error (a plugin failed), or bad_request.",
    (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
)


class CallMetrics:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.calls = HistogramSeries(CALL_DURATION)

    def families(self) -> list[MetricFamily]:
        cluster = self._cluster
        sizes = {"nodes": cluster.table.n, "pods": cluster.n_pods, "assumed_pods": cluster.n_assumed}
        return [self.calls.family(), MetricFamily(CACHE_SIZE, {(what,): n for what, n in sizes.items()})]


_log = logging.getLogger("kubesched.extender")

MOST_BYTES = 64 << 20
"""About 15,000 whole nodes of 4 kB in one request; names of nodes take a hundredth of that."""

Answering = Callable[[bytes], Awaitable[bytes]]


class ExtenderPages:
    """`binder` is None where nobody can bind: without a cluster."""

    def __init__(
        self,
        service: PluginVerdictService,
        binder: PluginBinder | None,
        is_ready: Callable[[], bool],
        metrics: CallMetrics,
        rules: CallerRules,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._rules = rules
        self._most_bytes = most_bytes
        self._service = service
        self._binder = binder
        self._is_ready = is_ready
        self._metrics = metrics
        self._reader = NodeReader()

    def application(self) -> web.Application:
        app = web.Application(client_max_size=self._most_bytes, middlewares=[guard(self._rules)])
        verbs: dict[str, tuple[Answering, Callable[[str], bytes] | None]] = {
            "filter": (self._filter, messages.filter_error),
            "prioritize": (self._prioritize, None),
            "preempt": (self._preempt, None),
            "bind": (self._bind, messages.bind_answer),
        }
        for verb, (answering, as_error) in verbs.items():
            app.router.add_post(f"/{verb}", _Verb(verb, answering, as_error, self._metrics).handle)
        app.router.add_get("/healthz", self._alive)
        app.router.add_get("/livez", self._alive)
        app.router.add_get("/readyz", self._ready)
        app.router.add_get("/metrics", self._show_metrics)
        return app

    # -- verbs ---------------------------------------------------------------------------------------------------------

    async def _filter(self, body: bytes) -> bytes:
        request = messages.read_nodes_request(body, self._reader)
        return messages.filter_answer(request, self._service.filter(request))

    async def _prioritize(self, body: bytes) -> bytes:
        request = messages.read_nodes_request(body, self._reader)
        return messages.prioritize_answer(request.node_names, self._service.prioritize(request))

    async def _preempt(self, body: bytes) -> bytes:
        return messages.preempt_answer(self._service.preempt(messages.read_preempt_request(body)))

    async def _bind(self, body: bytes) -> bytes:
        request = messages.read_bind_request(body)
        if self._binder is None:
            raise CallError("bind needs the cluster: start kubesched extender without --no-cluster")
        await self._binder.bind(request)
        return messages.bind_answer()

    # -- pages for people and probes -----------------------------------------------------------------------------------

    async def _alive(self, _request: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _ready(self, _request: web.Request) -> web.Response:
        if self._is_ready():
            return web.Response(text="ok")
        return web.Response(status=503, text="the cluster is not listed yet\n")

    async def _show_metrics(self, _request: web.Request) -> web.Response:
        return web.Response(text=render(self._metrics.families()), headers={"Content-Type": CONTENT_TYPE})


class _Verb:
    """One verb as a page: reads the body, answers, measures; nothing that goes wrong leaves it as an exception."""

    def __init__(
        self, verb: str, answering: Answering, as_error: Callable[[str], bytes] | None, metrics: CallMetrics
    ) -> None:
        self._verb = verb
        self._answering = answering
        self._as_error = as_error
        self._metrics = metrics

    async def handle(self, request: web.Request) -> web.Response:
        if request.content_type != "application/json":  # a page in a browser cannot send this without being allowed to
            return web.Response(status=415, text="the body must be application/json\n")
        try:
            body = await request.read()
        except web.HTTPRequestEntityTooLarge:
            most_mib = request.client_max_size >> 20
            return web.Response(status=413, text=f"the body is larger than {most_mib} MiB: see --max-request-mib\n")
        started_s = time.monotonic()
        result, response = await self._answer(body)
        self._metrics.calls.observe(time.monotonic() - started_s, (self._verb, result))
        return response

    async def _answer(self, body: bytes) -> tuple[str, web.Response]:
        try:
            answer = await self._answering(body)
        except RequestError as problem:
            return "bad_request", web.Response(status=400, text=f"{self._verb}: {problem}\n")
        except PluginError as bug:
            return "error", self._failed(bug.message, bug.plugin)
        except CallError as refusal:
            return "error", self._failed(str(refusal))
        except Exception as bug:  # noqa: BLE001  whatever one call runs into, the next must be answered
            _log.exception("Call failed unexpectedly", extra={"fields": {"verb": self._verb}})
            return "error", self._failed(f"kubesched extender: {type(bug).__name__}: {bug}")
        return "ok", _json(answer)

    def _failed(self, message: str, plugin: str = "") -> web.Response:
        _log.error("Call failed", extra={"fields": {"verb": self._verb, "plugin": plugin, "err": message}})
        if self._as_error is None:
            return web.Response(status=500, text=f"{self._verb}: {message}\n")
        return _json(self._as_error(message))


def _json(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json")
