"""The HTTP application: every request through login, impersonation and authorization to the verb it names.

Guarantees an answer to anything: what is wrong is refused with a Kubernetes Status, never with a bare traceback, and so
is what is no proper HTTP. ``exchange.py`` reads the path, ``resources.py`` serves resources, ``discovery.py`` what
there is.

The small endpoints stand here too: health (a disk that takes no writes is all that can be wrong with a living server;
/livez does not say so, because to start it again would not help), and the keys by which others check tokens.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import BadHttpMethod
from aiohttp.http_parser import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

from kubesched.k8s.connections.site import plain_headers
from kubesched.playground.apiserver.errors import StatusError, bad_request, method_not_supported, unclassified
from kubesched.playground.apiserver.http import discovery
from kubesched.playground.apiserver.http.answers import error_response
from kubesched.playground.apiserver.http.exchange import RequestPath, read_path
from kubesched.playground.apiserver.http.identity import TokenAuthenticator, impersonated
from kubesched.playground.apiserver.http.resources import ResourceHandler
from kubesched.playground.apiserver.storage.store import ObjectTooLargeError, StoreFailedError
from kubesched.playground.apiserver.verbs.authorization import Action, RbacAuthorizer, forbidden_action
from kubesched.playground.apiserver.verbs.escalation import EscalationCheck
from kubesched.playground.apiserver.verbs.impersonation import Impersonation
from kubesched.playground.apiserver.verbs.request import Api
from kubesched.playground.apiserver.verbs.reviews import Reviews
from kubesched.playground.apiserver.verbs.service_tokens import ISSUER, ServiceTokens


class StatusProtocol(RequestHandler):
    """Answers broken requests with a Status instead of a text."""

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        self.log_debug("broken request: %s", exc)
        if isinstance(exc, BadHttpMethod):
            error = method_not_supported(None, "")
        else:
            error = StatusError(400, "BadRequest", f"the request is no proper HTTP: {_one_line(message or str(exc))}")
        response = error_response(error, "")
        response.force_close()
        return response


def _one_line(text: str) -> str:
    return " ".join(text.split())


def with_plain_headers(message: RawRequestMessage) -> RawRequestMessage:
    """Headers that are no UTF-8 become text that can be shown and stored, as Go's JSON has it."""
    plain = plain_headers(message.headers)
    return message if plain is message.headers else message._replace(headers=plain)


class StatusServer(web.Server):
    """Makes a StatusProtocol for each connection."""

    def __call__(self) -> RequestHandler:
        loop = asyncio.get_running_loop()
        options: dict[str, Any] = self._kwargs
        return StatusProtocol(self, loop=loop, **options)


_CHECKS = {
    "healthz": ("ping", "log", "etcd"),
    "livez": ("ping", "log", "etcd"),
    "readyz": ("ping", "log", "etcd", "etcd-readiness", "informer-sync", "shutdown"),
}


_OF_STORE = "etcd"


def health_answer(request: web.BaseRequest, store_failure: str) -> web.Response | None:
    """The answer to a health path, None for any other; `store_failure` is why the store takes no writes."""
    parts = request.path.strip("/").split("/")
    checks = _CHECKS.get(parts[0])
    if checks is None or request.method not in ("GET", "HEAD"):
        return None
    if len(parts) > 1:
        if len(parts) > 2 or parts[1] not in checks:
            return web.Response(text="404 page not found\n", status=404)
        if parts[1] == _OF_STORE and store_failure:
            return web.Response(text=f"internal server error: {store_failure}\n", status=500)
        return web.Response(text="ok")
    excluded = request.query.getall("exclude", [])
    is_failed = bool(store_failure) and parts[0] != "livez" and _OF_STORE not in excluded
    if "verbose" not in request.query and not is_failed:
        return web.Response(text="ok")
    lines = [f"[+]{check} excluded: ok" if check in excluded else f"[+]{check} ok" for check in checks]
    if is_failed:
        lines[checks.index(_OF_STORE)] = f"[-]{_OF_STORE} failed: {store_failure}"
    lines.append(f"{parts[0]} check {'failed' if is_failed else 'passed'}")
    return web.Response(text="\n".join(lines) + "\n", status=500 if is_failed else 200)


CONFIGURATION = "/.well-known/openid-configuration"
KEYS = "/openid/v1/jwks"
_KEYS_TYPE = "application/jwk-set+json"
_CACHED = "public, max-age=3600"


def issuer_answer(request: web.BaseRequest, tokens: ServiceTokens, server_url: str) -> web.Response | None:
    """The answer to one of the issuer's paths, None for any other."""
    path = request.path.rstrip("/")
    if path not in (CONFIGURATION, KEYS) or request.method not in ("GET", "HEAD"):
        return None
    media_type = "application/json" if path == CONFIGURATION else _KEYS_TYPE
    _check_accept(request.headers.get("Accept", "*/*"), media_type)
    content = _configuration(server_url) if path == CONFIGURATION else tokens.public_keys()
    headers = {"Cache-Control": _CACHED}
    return web.Response(body=msgspec.json.encode(content), content_type=media_type, headers=headers)


def _configuration(server_url: str) -> dict[str, object]:
    """The address is the server's own, never the request's: others may keep this answer."""
    return {
        "issuer": ISSUER,
        "jwks_uri": server_url + KEYS,
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    }


def _check_accept(accept: str, media_type: str) -> None:
    wanted = [one.partition(";")[0].strip() for one in accept.split(",")]
    if not any(one in ("", "*/*", "application/*", media_type) for one in wanted):
        why = f"406: Not Acceptable\n\nAvailable representations: {media_type}"
        raise StatusError(406, "NotAcceptable", why, {})


_log = logging.getLogger(__name__)

MOST_BODY_BYTES = 3 * 1024 * 1024
"""As the real server: larger bodies are refused with 413."""

_FALSE = ("false", "0")


@dataclass
class HttpApp:
    """The application of one server."""

    api: Api
    authenticator: TokenAuthenticator
    service_tokens: ServiceTokens
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    url: str = ""  # known when the server listens

    def __post_init__(self) -> None:
        self.authorizer = RbacAuthorizer(self.api)
        self.impersonation = Impersonation(self.authorizer)
        reviews = Reviews(self.api, self.authorizer, self.service_tokens, self.authenticator.identify)
        self.resources = ResourceHandler(self.api, reviews, self.stopping, EscalationCheck(self.authorizer))
        self.discovery = discovery.Discovery(self.api)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answers one request, whatever happens."""
        accept = request.headers.get("Accept", "")
        warnings: list[str] = []
        try:
            return await self._answer(request, warnings)
        except StatusError as error:
            return error_response(error, accept, warnings)
        except StoreFailedError as error:
            return error_response(StatusError(503, "ServiceUnavailable", str(error)), accept)
        except ObjectTooLargeError as error:
            return error_response(unclassified(str(error)), accept, warnings)
        except web.HTTPRequestEntityTooLarge:
            return error_response(_too_large(), accept)
        except RecursionError:
            return error_response(bad_request("the object is nested too deeply: exceeded max depth"), accept)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception as error:  # noqa: BLE001 - the last line of defence: tell the client, keep serving
            _log.exception("request failed: %s %s", request.method, request.path)
            return error_response(StatusError(500, "InternalError", f"Internal error occurred: {error}"), accept)

    async def _answer(self, request: web.BaseRequest, warnings: list[str]) -> web.StreamResponse:
        user = self.authenticator.user_of(request)
        path = read_path(request.path, request.method, _asks_watch(request))
        action = _action(path)
        wanted = impersonated(request.headers)
        if wanted is not None:
            user = self.impersonation.become(user, wanted, action)
        verdict = self.authorizer.decide(user, action)
        if not verdict.allowed:
            raise forbidden_action(user, action, verdict.reason)
        if path.is_resource:
            return await self.resources.handle(request, path, user, warnings)
        answer = health_answer(request, self.api.store.failure) or issuer_answer(request, self.service_tokens, self.url)
        answer = answer or self.discovery.answer(request)
        if answer is not None:
            return answer
        return web.Response(text="404 page not found\n", status=404)


def _action(path: RequestPath) -> Action:
    """What the request asks, as authorization sees it."""
    if not path.is_resource:
        return Action(path.verb, path=path.path)
    return Action(path.verb, path.group, path.plural, path.subresource, path.namespace, path.name)


def _asks_watch(request: web.BaseRequest) -> bool:
    return bool(request.query_string) and "watch" in request.query and request.query["watch"].lower() not in _FALSE


def _too_large() -> StatusError:
    return StatusError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {MOST_BODY_BYTES}")
