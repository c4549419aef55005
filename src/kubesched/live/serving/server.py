"""The secure port, from flags to a socket: certificates, then who is asked about whom, then the pages.

    server = SecureServer(settings, sources, client)
    await server.start()      # raises ServingError if the port cannot be opened as configured
    ...
    await server.stop()       # stops listening, lets requests finish for a few seconds

`routes` says which path leads to which page: paths are exact, and pages are only read. Before every page stands, from
the outside in, who asks, may they, and what if a page breaks:

    log → do not cache → keep safe → authenticate → authorize → only to read → the page

Some paths everybody may see, some groups may see everything, and for the rest the API server is asked. Its answers are
kept for a while, yes and no each for its own.

Next: `component_pages` and `debug_pages`; `authentication` and `certificates`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from kubesched.k8s.connections.site import BoundedSite, ConnectionLimits, plain_headers, plain_text
from kubesched.live.serving import answers
from kubesched.live.serving.authentication import (
    CONFIG_MAP_NAME,
    CONFIG_MAP_NAMESPACE,
    AuthenticationError,
    Authenticator,
    ClusterLookup,
    ExpiringCache,
    RequestHeaders,
    ReviewClient,
    ReviewError,
    Sleep,
    TokenReviews,
    UserInfo,
    VerifiedChains,
    check_header_names,
    review,
)
from kubesched.live.serving.certificates import CaBundle, ContextMaker, RenewingContext
from kubesched.live.serving.component_pages import ComponentPages, HealthPages, MetricsPages, Page
from kubesched.live.serving.debug_pages import DebugPages
from kubesched.live.serving.settings import AuthenticationSettings, AuthorizationSettings, ServingError, ServingSettings
from kubesched.live.serving.sources import HealthRecords, Sources

PATH = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_MOST_KEPT = 8192
_LONGEST_KEPT = 10_000
"""Of a path: callers must not fill the memory."""


@dataclass(frozen=True, slots=True)
class AccessDecision:
    is_allowed: bool
    reason: str = ""


class AlwaysAllowedPaths:
    def __init__(self, paths: Iterable[str]) -> None:
        self._exact: set[str] = set()
        self._prefixes: list[str] = []
        for path in paths:
            bare = path.removeprefix("/")
            if "*" in bare[:-1]:
                raise ServingError(f"--authorization-always-allow-paths: only trailing * allowed in {bare!r}")
            if bare.endswith("*"):
                self._prefixes.append(bare[:-1])
            else:
                self._exact.add(bare)

    def __contains__(self, path: str) -> bool:
        bare = path.removeprefix("/")
        return bare in self._exact or any(bare.startswith(prefix) for prefix in self._prefixes)


class Authorizer:
    """Without a client, nobody but the privileged groups may see what is not open to all."""

    def __init__(
        self,
        settings: AuthorizationSettings,
        client: ReviewClient | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._settings = settings
        self._open_paths = AlwaysAllowedPaths(settings.always_allow_paths)
        self._client = client
        self._sleep = sleep
        self._known: ExpiringCache[bytes, AccessDecision] = ExpiringCache(clock, _MOST_KEPT)

    async def decide(self, user: UserInfo, verb: str, path: str) -> AccessDecision:
        """Raises `ReviewError` if the API server had to be asked, and could not be."""
        if set(self._settings.always_allow_groups) & set(user.groups) or path in self._open_paths:
            return AccessDecision(True)
        if self._client is None:
            return AccessDecision(False)
        spec = _spec(user, verb, path)
        key = msgspec.json.encode(spec)
        found = self._known.get(key)
        if found is None:
            question = {"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": spec}
            found = _decision(await review(self._client, PATH, question, self._sleep))
            if len(path) + len(verb) < _LONGEST_KEPT:
                ttl_s = self._settings.authorized_ttl_s if found.is_allowed else self._settings.unauthorized_ttl_s
                self._known.put(key, found, ttl_s)
        return found


def _spec(user: UserInfo, verb: str, path: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"nonResourceAttributes": {"path": path, "verb": verb}, "user": user.name}
    if user.groups:
        spec["groups"] = user.groups
    if user.extra:
        spec["extra"] = {key: user.extra[key] for key in sorted(user.extra)}
    if user.uid:
        spec["uid"] = user.uid
    return spec


def _decision(status: dict[str, Any]) -> AccessDecision:
    is_allowed, is_denied = bool(status.get("allowed")), bool(status.get("denied"))
    if is_allowed and is_denied:
        raise ReviewError("webhook subject access review returned both allow and deny response")
    return AccessDecision(is_allowed, str(status.get("reason") or ""))


BROKEN = "This request caused apiserver to panic. Look in the logs for details."
_log = logging.getLogger("kubesched.serving")


@web.middleware
async def keep_safe(request: web.Request, handler: Handler) -> web.StreamResponse:
    """A page that breaks is one answer lost, and a line in the log; a page that is not there is said so by us."""
    try:
        return await handler(request)
    except web.HTTPNotFound:
        return answers.not_found()
    except web.HTTPException as refusal:
        return answers.text_error(refusal.reason, refusal.status)
    except Exception:  # noqa: BLE001 - whatever it is, the server goes on
        _log.exception("A page broke", extra={"fields": {"URI": request.path_qs}})
        return answers.text_error(BROKEN, 500)


@web.middleware
async def log_request(request: web.Request, handler: Handler) -> web.StreamResponse:
    started_s = time.monotonic()
    answer = await handler(request)
    fields = {
        "verb": request.method,
        "URI": request.path_qs,
        "latency": f"{(time.monotonic() - started_s) * 1000:.3f}ms",
        "userAgent": plain_text(request.headers.get("User-Agent", "")),
        "srcIP": request.remote,
        "resp": answer.status,
    }
    _log.info("HTTP", extra={"fields": fields, "v": 3})
    return answer


@web.middleware
async def forbid_caching(request: web.Request, handler: Handler) -> web.StreamResponse:
    answer = await handler(request)
    answer.headers.setdefault("Cache-Control", "no-cache, private")
    return answer


@web.middleware
async def only_read(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Behind access control: who may not ask at all does not learn this either."""
    is_question = request.match_info.route.method == request.method  # all else is routed whatever the method
    if request.method not in ("GET", "HEAD") and not is_question:
        refused = answers.text_error("Method Not Allowed", 405)
        refused.headers["Allow"] = "GET, HEAD"
        return refused
    return await handler(request)


def access_control(authenticator: Authenticator, authorizer: Authorizer) -> Middleware:
    chains = VerifiedChains()

    @web.middleware
    async def control(request: web.Request, handler: Handler) -> web.StreamResponse:
        transport = request.transport
        chain = chains.of(None if transport is None else transport.get_extra_info("ssl_object"))
        try:
            user = await authenticator.user_of(chain, plain_headers(request.headers))
        except AuthenticationError as problem:
            _log.error("Unable to authenticate the request", extra={"fields": {"err": str(problem)}})
            return answers.status_answer(request, 401, "Unauthorized", "Unauthorized")
        refusal = await _refusal(authorizer, user, request)
        return await handler(request) if refusal is None else refusal

    return control


async def _refusal(authorizer: Authorizer, user: UserInfo, request: web.Request) -> web.Response | None:
    verb, path = request.method.lower(), request.path
    try:
        decision = await authorizer.decide(user, verb, path)
    except ReviewError as problem:
        _log.error("Failed to make webhook authorizer request", extra={"fields": {"err": str(problem)}})
        message = f"Internal Server Error: {answers.go_quoted(request.raw_path)}: {problem}"
        return answers.text_error(answers.sanitized(message), 500)
    if decision.is_allowed:
        return None
    _log.info("Forbidden", extra={"fields": {"URI": request.path_qs, "reason": decision.reason}, "v": 4})
    quoted = answers.go_quoted
    message = answers.sanitized(f"User {quoted(user.name)} cannot {verb} path {quoted(path)}")
    message = f"forbidden: {message}" + (f": {decision.reason}" if decision.reason else "")
    return answers.status_answer(request, 403, "Forbidden", message, details={})


async def hide_server_name(_request: web.Request, answer: web.StreamResponse) -> None:
    """Which versions we are made of is nobody's business."""
    answer.headers.popall("Server", None)


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
    app = web.Application(middlewares=[log_request, forbid_caching, keep_safe, access, only_read])
    app.on_response_prepare.append(hide_server_name)
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
        app = application(self._sources, access_control(authenticator, authorizer), self._more)
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
