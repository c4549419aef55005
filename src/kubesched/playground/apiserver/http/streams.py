"""Sends a watch: lines as they come, many in one chunk, in the form that the client wants.

A client that does not read is waited for; when it falls behind the kept history it gets 410 and comes again.
``verbs/watch.py`` makes the lines.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from aiohttp import web

from kubesched.playground.apiserver.api import Api
from kubesched.playground.apiserver.http import tables
from kubesched.playground.apiserver.http.answers import raw_object
from kubesched.playground.apiserver.http.negotiation import Wanted
from kubesched.playground.apiserver.kinds.kind import ServedResource
from kubesched.playground.apiserver.storage.store import Stored
from kubesched.playground.apiserver.verbs import writing
from kubesched.playground.apiserver.verbs.watch import EventEncoding, WatchRequest, batches


def encoding_for(resource: ServedResource, wanted: Wanted, include: str) -> EventEncoding:
    """How this watcher's objects are written."""
    if not wanted.transform:
        return EventEncoding((resource.api_version,), lambda stored: raw_object(resource, stored))
    if wanted.transform == "Table":
        return EventEncoding((), _TableRows(resource, include, wanted.version).encode)
    variant = (resource.api_version, wanted.transform, wanted.version)
    return EventEncoding(variant, lambda stored: _partial(resource, stored, wanted.version))


def _partial(resource: ServedResource, stored: Stored, version: str) -> bytes:
    return msgspec.json.encode(tables.partial_metadata(writing.load(resource, stored), version))


class _TableRows:
    """One watcher's rows: only the first event brings the columns, so lines are not shared."""

    def __init__(self, resource: ServedResource, include: str, version: str) -> None:
        self._resource, self._include, self._version = resource, include, version
        self._definitions: list[dict[str, Any]] | None = tables.definitions(resource)

    def encode(self, stored: Stored) -> bytes:
        obj = writing.load(self._resource, stored)
        definitions, self._definitions = self._definitions, None
        return msgspec.json.encode(
            {
                "kind": "Table",
                "apiVersion": f"meta.k8s.io/{self._version}",
                "metadata": {"resourceVersion": obj["metadata"].get("resourceVersion", "")},
                "columnDefinitions": definitions,
                "rows": [tables.row(self._resource, obj, self._include, self._version)],
            }
        )


async def send(
    request: web.BaseRequest, api: Api, watch: WatchRequest, encoding: EventEncoding, stopping: asyncio.Event
) -> web.StreamResponse:
    """Streams until the watch ends, the client goes or the server stops."""
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    events = batches(api, watch, encoding, stopping)
    try:
        async for lines in events:
            await response.write(lines)
        await response.write_eof()
    except ConnectionError:
        pass  # the client went
    finally:
        await events.aclose()
    return response
