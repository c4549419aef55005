"""What stands before every page: who asks, may they, and what if a page breaks. From the outside in:

    log → do not cache → keep safe → authenticate → authorize → only to read → the page

Next: `server`.
"""

from __future__ import annotations

import logging
import time

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from kubesched.k8s.connections.site import plain_headers, plain_text
from kubesched.live.serving import answers
from kubesched.live.serving.access.authentication import AuthenticationError, Authenticator, UserInfo, VerifiedChains
from kubesched.live.serving.access.authorization import Authorizer
from kubesched.live.serving.access.reviews import ReviewError

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
    if request.method not in ("GET", "HEAD"):
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
