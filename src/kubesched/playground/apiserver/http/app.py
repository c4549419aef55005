"""The HTTP application: every request through login, impersonation and authorization to the verb it names.

Promises an answer to anything: what is wrong is refused with a Kubernetes Status, never with a bare traceback.
``paths.py`` reads the path, ``resources.py`` serves resources, ``discovery.py`` and ``health.py`` the rest.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field

from aiohttp import web

from kubesched.playground.apiserver.api import Api
from kubesched.playground.apiserver.errors import StatusError, bad_request, unclassified
from kubesched.playground.apiserver.http import discovery, health, issuer_paths
from kubesched.playground.apiserver.http.answers import error_response
from kubesched.playground.apiserver.http.authentication import TokenAuthenticator, impersonated
from kubesched.playground.apiserver.http.paths import RequestPath, read_path
from kubesched.playground.apiserver.http.resources import ResourceHandler
from kubesched.playground.apiserver.storage.store import ObjectTooLargeError, StoreFailedError
from kubesched.playground.apiserver.verbs.authorization import Action, RbacAuthorizer, forbidden_action
from kubesched.playground.apiserver.verbs.escalation import EscalationCheck
from kubesched.playground.apiserver.verbs.impersonation import Impersonation
from kubesched.playground.apiserver.verbs.reviews import Reviews
from kubesched.playground.apiserver.verbs.service_tokens import ServiceTokens

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
        answer = health.answer(request, self.api.store.failure) or issuer_paths.answer(
            request, self.service_tokens, self.url
        )
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
