"""Answers as Kubernetes' servers write them: plain text as Go's `http.Error` does, refusals as a `Status`.

Which form a client asks for stands in its Accept header, which is read as far as the pages need it.

Next: `server`, which refuses; `component_pages`, which answers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
NO_SNIFF = {"X-Content-Type-Options": "nosniff"}
NOT_FOUND = "404 page not found"
_BROWSERS = ("curl", "Wget", "Mozilla/5.0")


def text(body: str, *, status: int = 200, content_type: str = TEXT, no_sniff: bool = False) -> web.Response:
    headers = {"Content-Type": content_type, **(NO_SNIFF if no_sniff else {})}
    return web.Response(body=body.encode(), status=status, headers=headers)


def text_error(message: str, status: int) -> web.Response:
    """As Go's `http.Error`: with a newline behind, and never taken for anything but text."""
    return text(f"{message}\n", status=status, no_sniff=True)


def not_found() -> web.Response:
    return text_error(NOT_FOUND, 404)


def json_answer(request: web.Request, value: Any, *, status: int = 200, no_sniff: bool = False) -> web.Response:
    """Spread out for people (who asks with a browser or curl, or says `?pretty=true`), dense for machines."""
    if is_pretty(request):
        body = json.dumps(value, indent=2, ensure_ascii=False)
    else:
        body = json.dumps(value, separators=(",", ":"), ensure_ascii=False) + "\n"
    return text(body, status=status, content_type=JSON, no_sniff=no_sniff)


def status_answer(
    request: web.Request, code: int, reason: str, message: str, details: dict[str, Any] | None = None
) -> web.Response:
    """A `Status` that says no."""
    status: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
    }
    if details is not None:
        status["details"] = details
    return json_answer(request, status | {"code": code}, status=code, no_sniff=code == 403)


def is_pretty(request: web.Request) -> bool:
    asked = request.query.get("pretty")
    if asked is not None:
        return asked in ("", "1", "t", "T", "true", "TRUE", "True")
    return request.headers.get("User-Agent", "").startswith(_BROWSERS)


def sanitized(message: str) -> str:
    """Nothing that a browser could take for HTML."""
    return message.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def go_quoted(value: str) -> str:
    """As Go's `%q` writes it, for what is printable."""
    return json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class MediaRange:
    """One of the forms that a client accepts."""

    name: str
    quality: float = 1.0
    parameters: dict[str, str] = field(default_factory=dict)


def accepted(header: str) -> list[MediaRange]:
    """The best first; those that are equally good as they stand."""
    ranges = [_range(part) for part in header.split(",") if part.strip()]
    return sorted(ranges, key=lambda found: -found.quality)


def prefers_text(header: str) -> bool:
    """Whether plain text is asked for by name, before JSON."""
    for found in accepted(header):
        if found.name in ("text/plain", "text/*"):
            return True
        if found.name in ("application/json", "application/*"):
            return False
    return False


def _range(part: str) -> MediaRange:
    name, *rest = (piece.strip() for piece in part.split(";"))
    parameters = dict(piece.partition("=")[::2] for piece in rest)
    quality = 1.0
    try:
        quality = float(parameters.pop("q", "1"))
    except ValueError:
        quality = 0.0
    return MediaRange(name.lower(), quality, parameters)
