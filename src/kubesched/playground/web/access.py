"""Who may look: whoever has the key that was printed, in a cookie or as a bearer token; asked for under our own name.

Other users of the machine reach the port, but not the key. A foreign page cannot read along either: the cookie does not
go with its requests, and a name of its own that leads to loopback is refused. Files of `static/` hold nothing to hide.
Answers are JSON, refusals JSON with one sentence.

Next: `page`.
"""

from __future__ import annotations

import re
import secrets
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

LOGIN_PATH = "/api/login"
_OWN_ADDRESS = re.compile(r"(127\.0\.0\.1|localhost)(:[0-9]{1,5})?")

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


class PageKey:
    """The key of one page, made when it starts and good until it stops."""

    def __init__(self) -> None:
        self.text = secrets.token_urlsafe(32)

    def opens(self, given: str) -> bool:
        """Takes as long for a wrong key as for a nearly right one."""
        return secrets.compare_digest(given.encode(errors="surrogateescape"), self.text.encode())

    def is_given_by(self, request: web.Request) -> bool:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() == "bearer":
            return self.opens(token.strip())
        return self.opens(request.cookies.get(cookie_name(request), ""))

    def hand_over(self, request: web.Request, answer: web.Response) -> None:
        """From now on the browser has it where no script can read it."""
        answer.set_cookie(cookie_name(request), self.text, httponly=True, samesite="Strict", path="/api/")


def cookie_name(request: web.Request) -> str:
    """Cookies do not tell ports apart: pages of two playgrounds must not take each other's."""
    return f"kubesched-{request.host.rpartition(':')[2]}"


def guard(key: PageKey) -> Middleware:
    """Lets nobody else in."""

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not _OWN_ADDRESS.fullmatch(request.host):
            return refused(421, "this page goes by the name that was printed")
        is_open = request.path == LOGIN_PATH or not request.path.startswith("/api/")
        if request.headers.get("Origin", f"http://{request.host}") != f"http://{request.host}":
            return refused(403, "asked from a foreign page")  # one of another port has our cookie, too
        if not is_open and not key.is_given_by(request):
            return refused(401, "open the page with the link that was printed: it has the key")
        return await handler(request)

    return guarded


async def add_headers(_request: web.Request, answer: web.StreamResponse) -> None:
    """A signal handler: streams too have begun by the time that a middleware sees their answer."""
    answer.headers.update(HEADERS)


def json_answer(body: dict[str, Any], status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), status=status, content_type="application/json")


def refused(status: int, message: str) -> web.Response:
    return json_answer({"message": message}, status)
