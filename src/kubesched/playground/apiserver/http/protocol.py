"""The connection side of aiohttp, with refusals in Kubernetes' form also for what is no proper HTTP.

Used by ``server.py`` in the place of aiohttp's own server factory.
"""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import BadHttpMethod
from aiohttp.http_parser import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

from kubesched.k8s.connections.site import plain_headers
from kubesched.playground.apiserver.errors import StatusError, method_not_supported
from kubesched.playground.apiserver.http.answers import error_response


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
