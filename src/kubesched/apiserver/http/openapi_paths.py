"""The OpenAPI documents over HTTP: made when first asked for, kept as long as the same kinds are served.

kubectl explains, validates and applies by them. The documents themselves are made in ``openapi/``.
"""

from __future__ import annotations

from typing import Any

import msgspec
from aiohttp import web

from kubesched.apiserver.api import Api
from kubesched.apiserver.kinds.kind import ServedResource
from kubesched.apiserver.openapi import documents_v2, documents_v3

_READABLE = ("application/json", "application/*", "*/*")


class OpenApiPaths:
    """The documents of one API."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._made_for: tuple[ServedResource, ...] = ()
        self._made: dict[str, bytes | None] = {}

    def answer(self, request: web.BaseRequest) -> web.Response | None:
        """The answer to a path below /openapi, None for one that has no document."""
        path = request.path.strip("/").removeprefix("openapi/")
        if path == "v2" and not _takes_json(request.headers.get("Accept", "")):
            return web.Response(status=406)
        if path != "v2" and path != "v3" and not path.startswith("v3/"):
            return None
        body = self._document(path)
        if body is None:
            return web.Response(status=404)
        content_type = "text/plain" if path == "v3" else "application/json"
        charset = "utf-8" if path == "v3" else None
        return web.Response(body=body, content_type=content_type, charset=charset)

    def _document(self, path: str) -> bytes | None:
        kinds = self._api.all_kinds()
        if kinds != self._made_for:
            self._made_for, self._made = kinds, {}
        if path not in self._made:
            content = _make(path, kinds)
            self._made[path] = None if content is None else msgspec.json.encode(content)
        return self._made[path]


def _make(path: str, kinds: tuple[ServedResource, ...]) -> dict[str, Any] | None:
    if path == "v2":
        return documents_v2.document(kinds)
    if path == "v3":
        return documents_v3.index(kinds)
    return documents_v3.document(path.removeprefix("v3/"), kinds)


def _takes_json(accept: str) -> bool:
    if not accept or "proto-openapi" in accept:
        return True
    return any(clause.partition(";")[0].strip() in _READABLE for clause in accept.split(","))
