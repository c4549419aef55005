"""Answers of the page's server: JSON, and refusals as JSON with one sentence."""

from __future__ import annotations

from typing import Any

import msgspec
from aiohttp import web


def json_answer(body: dict[str, Any], status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(body), status=status, content_type="application/json")


def refused(status: int, message: str) -> web.Response:
    return json_answer({"message": message}, status)
