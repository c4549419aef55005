"""The secure port, from flags to a socket: certificates, then who is asked about whom, then the pages.

    server = SecureServer(settings, sources, client)
    await server.start()      # raises ServingError if the port cannot be opened as configured
    ...
    await server.stop()       # stops listening, lets requests finish for a few seconds

`routes` says which path leads to which page: paths are exact, and pages are only read.

Next: `component_pages` and its siblings; `filters` for who may see them, `certificates`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Protocol

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from kubesched.k8s.connections.site import BoundedSite, ConnectionLimits
from kubesched.live.serving import filters
from kubesched.live.serving.authentication import (
    CONFIG_MAP_NAME,
    CONFIG_MAP_NAMESPACE,
    Authenticator,
    ClusterLookup,
    RequestHeaders,
    ReviewClient,
    TokenReviews,
    check_header_names,
)
from kubesched.live.serving.certificates import CaBundle, ContextMaker, RenewingContext
from kubesched.live.serving.component_pages import ComponentPages, HealthPages, Page
from kubesched.live.serving.debug_pages import DebugPages
from kubesched.live.serving.filters import Authorizer
from kubesched.live.serving.metrics_pages import MetricsPages
from kubesched.live.serving.settings import AuthenticationSettings, ServingError, ServingSettings
from kubesched.live.serving.sources import HealthRecords, Sources


class MorePages(Protocol):
    """Pages that somebody else has to show, behind the same access control."""

    def routes(self) -> Sequence[tuple[str, Handler]]: ...

    def questions(self) -> Sequence[tuple[str, Handler]]:
        """Those that are asked by a POST, as the question is long. They change nothing either."""
        ...

    async def stop(self) -> None:
        """Ends answers that go on and on."""
        ...


def application(sources: Sources, access: Middleware, more: MorePages | None = None) -> web.Application:
    """The pages, behind everything that stands before them."""
    app = web.Application(
        middlewares=[filters.log_request, filters.forbid_caching, filters.keep_safe, access, filters.only_read]
    )
    app.on_response_prepare.append(filters.hide_server_name)
    for path, page in (*routes(sources), *(() if more is None else more.routes())):
        app.router.add_route("*", path, page)
    for path, page in () if more is None else more.questions():
        app.router.add_post(path, page)
    return app


def routes(sources: Sources) -> list[tuple[str, Page]]:
    """(path, page)"""
    records = HealthRecords()
    found: list[tuple[str, Page]] = []

    def paths() -> Sequence[str]:
        return [path for path, _page in found]

    metrics = MetricsPages(sources, records)
    component = ComponentPages(sources, paths)
    debug = DebugPages(sources)
    found.extend(HealthPages(sources.checks, records).routes())
    found.extend(
        (
            ("/configz", component.configz),
            ("/metrics", metrics.metrics),
            ("/metrics/resources", metrics.resources),
            ("/metrics/slis", metrics.slis),
            ("/flagz", component.flagz),
            ("/statusz", component.statusz),
            ("/version", component.version),
            ("/debug/queue", debug.queue),
            ("/debug/cache", debug.cache),
            ("/debug/decisions", debug.decisions),
            ("/explain/{namespace}/{pod}", debug.explain),
        )
    )
    return found


_log = logging.getLogger("kubesched.serving")

_MOST_CONNECTIONS = 512


class SecureServer:
    """`client` is asked about tokens and permissions; without it, only certificates and open paths work."""

    def __init__(
        self,
        settings: ServingSettings,
        sources: Sources,
        client: ReviewClient | None,
        more: MorePages | None = None,
    ) -> None:
        self._more = more
        self._settings = settings
        self._sources = sources
        self._client = client
        self._runner: web.AppRunner | None = None
        self._looking: asyncio.Task[None] | None = None
        self._port = 0

    @property
    def port(self) -> int:
        """Where it listens; 0 as long as it does not."""
        return self._port

    async def start(self) -> None:
        settings = self._settings
        authorizer = Authorizer(settings.authorization, self._client)
        authenticator, lookup = _authenticator(settings.authentication, self._client)
        if lookup is not None:
            await lookup.first(tolerates_failure=settings.authentication.tolerate_lookup_failure)
        proxies = authenticator.request_headers
        bundles = [authenticator.client_cas, None if proxies is None else proxies.cas]
        maker = ContextMaker(settings, [bundle for bundle in bundles if bundle is not None])
        app = application(self._sources, filters.access_control(authenticator, authorizer), self._more)
        await self._listen(app, RenewingContext(maker))
        if lookup is not None:
            self._looking = asyncio.create_task(lookup.keep_looking(), name="authentication lookup")
        _log.info("Serving securely on", extra={"fields": {"address": f"{settings.bind_address}:{self._port}"}})

    async def stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._looking
            self._looking = None
        if self._more is not None:
            await self._more.stop()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner, self._port = None, 0
            _log.info("[graceful-termination] secure server is exiting")

    async def _listen(self, app: web.Application, context: RenewingContext) -> None:
        settings = self._settings
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=settings.shutdown_timeout_s)
        await runner.setup()
        site = BoundedSite(
            runner,
            settings.bind_address,
            settings.port,
            ssl_context=context,
            reuse_port=settings.permit_port_sharing,
            limits=ConnectionLimits(total=_MOST_CONNECTIONS),
        )
        try:
            await site.start()
        except OSError as problem:
            await runner.cleanup()
            where = f"--bind-address {settings.bind_address}, --secure-port {settings.port}"
            raise ServingError(f"{where}: {problem.strerror or problem}") from None
        self._runner = runner
        self._port = int(runner.addresses[0][1])


def _authenticator(
    settings: AuthenticationSettings, client: ReviewClient | None
) -> tuple[Authenticator, ClusterLookup | None]:
    """What flags name is read from files; what they leave open is looked for in the cluster."""
    check_header_names(settings.request_headers)
    looks = client is not None and not settings.skip_lookup
    client_cas = proxies = None
    if settings.client_ca_file:
        client_cas = CaBundle.from_file(settings.client_ca_file, "--client-ca-file")
    elif looks:
        client_cas = CaBundle()
    if settings.request_headers.client_ca_file:
        cas = CaBundle.from_file(settings.request_headers.client_ca_file, "--requestheader-client-ca-file")
        proxies = RequestHeaders(cas, settings.request_headers)
    elif looks:
        proxies = RequestHeaders(CaBundle(), settings.request_headers)
    if client is None:
        if not settings.skip_lookup:
            _log.warning(
                "No authentication-kubeconfig provided in order to lookup client-ca-file in "
                f"configmap/{CONFIG_MAP_NAME} in {CONFIG_MAP_NAMESPACE}, "
                "so client certificate authentication won't work."
            )
        return Authenticator(proxies, client_cas, None), None
    lookup = None
    if looks:
        lookup = ClusterLookup(
            client,
            None if settings.client_ca_file else client_cas,
            None if settings.request_headers.client_ca_file else proxies,
        )
    tokens = TokenReviews(client, settings.token_cache_ttl_s)
    return Authenticator(proxies, client_cas, tokens), lookup
