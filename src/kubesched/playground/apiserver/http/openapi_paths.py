"""The OpenAPI documents over HTTP: made when first asked for, kept as long as the same kinds are served.

kubectl explains, validates and applies by them. The documents themselves are made in ``openapi/``.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import msgspec
from aiohttp import web

from kubesched.playground.apiserver.api import Api
from kubesched.playground.apiserver.http.negotiation import accepted
from kubesched.playground.apiserver.http.protobuf.openapi_v2 import encode_document
from kubesched.playground.apiserver.kinds.kind import ServedResource
from kubesched.playground.apiserver.openapi import documents_v2, documents_v3

_JSON = "application/json"
_PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_OLDER_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
_V2_FORMS = {_JSON: _JSON, "application/*": _JSON, "*/*": _JSON, _PROTOBUF: _PROTOBUF, _OLDER_PROTOBUF: _PROTOBUF}


@dataclass(frozen=True, slots=True)
class _Made:
    """A document as it is sent, and the mark by which a client knows that it has it already."""

    body: bytes
    mark: str


class OpenApiPaths:
    """The documents of one API."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._made_for: tuple[ServedResource, ...] = ()
        self._made: dict[tuple[str, str], _Made | None] = {}

    def answer(self, request: web.BaseRequest) -> web.Response | None:
        """The answer to a path below /openapi, None for one that has no document."""
        path = request.path.strip("/").removeprefix("openapi/")
        if path == "v2":
            return self._answer_v2(request)
        if path == "v3":
            made = self._document(path, _JSON)
            assert made is not None, "the index lists what is served, however little"
            return web.Response(body=made.body, content_type="text/plain", charset="utf-8")
        if not path.startswith("v3/"):
            return None
        made = self._document(path, _JSON)
        return web.Response(status=404) if made is None else _answer(request, made, _JSON)

    def _answer_v2(self, request: web.BaseRequest) -> web.Response:
        for media_type, _ in accepted(request.headers.get("Accept", "") or "*/*"):
            form = _V2_FORMS.get(media_type)
            if form is not None:
                made = self._document("v2", form)
                assert made is not None
                return _answer(request, made, form)
        return web.Response(status=406, headers={"Vary": "Accept"})

    def _document(self, path: str, form: str) -> _Made | None:
        kinds = self._api.all_kinds()
        if kinds != self._made_for:
            self._made_for, self._made = kinds, {}
        if (path, form) not in self._made:
            content = _make(path, kinds)
            self._made[path, form] = None if content is None else _sent(content, form)
        return self._made[path, form]


def _make(path: str, kinds: tuple[ServedResource, ...]) -> dict[str, Any] | None:
    if path == "v2":
        return documents_v2.document(kinds)
    if path == "v3":
        return documents_v3.index(kinds)
    return documents_v3.document(path.removeprefix("v3/"), kinds)


def _sent(content: dict[str, Any], form: str) -> _Made:
    body = encode_document(content) if form == _PROTOBUF else msgspec.json.encode(content)
    return _Made(body, f'"{hashlib.sha512(body).hexdigest().upper()}"')


def _answer(request: web.BaseRequest, made: _Made, content_type: str) -> web.Response:
    headers = {"Etag": made.mark, "Vary": "Accept"}
    if made.mark in request.headers.get("If-None-Match", ""):
        return web.Response(status=304, headers=headers)
    return web.Response(body=made.body, content_type=content_type, headers=headers)
