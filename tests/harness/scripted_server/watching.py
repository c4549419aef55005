"""Watches of the scripted server: each reads the log from its own position and sends what has gathered in one piece.

They can be cut, ended, told that their version is gone, and asked for a bookmark: `WatchHall` does that to all of one
resource at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress

import msgspec
from aiohttp import web

from harness.scripted_server.faults import RefusalError
from harness.scripted_server.routing import ServedKind
from harness.scripted_server.storage import Matches, VersionedStorage, event_line, selection

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class OpenWatch:
    """One caller's watch."""

    def __init__(
        self, storage: VersionedStorage, served: ServedKind, namespace: str | None, query: Mapping[str, str]
    ) -> None:
        self.served = served
        self.position = storage.revision
        self.wake = asyncio.Event()
        self.is_over = False
        self._storage = storage
        self._matches: Matches | None = selection(query, namespace)
        self._query = query
        self._unsent: list[bytes] = []
        self._problem: bytes | None = None
        self._owes_bookmark = False
        self._transport: asyncio.Transport | None = None

    @property
    def wants_bookmarks(self) -> bool:
        return self._query.get("allowWatchBookmarks") in ("true", "1")

    async def serve(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        self._begin()
        await response.prepare(request)
        self._transport = request.transport
        with suppress(ConnectionError):  # the caller is gone, or the test cut it off
            with suppress(TimeoutError):
                async with asyncio.timeout(float(self._query.get("timeoutSeconds") or 3600)):
                    await self._send(response)
            await response.write_eof()
        return response

    async def _send(self, response: web.StreamResponse) -> None:
        while True:
            self.wake.clear()  # before reading: what comes while we write must wake us again
            is_last = self.is_over
            if data := self._gathered():
                await response.write(data)
            if is_last:
                return
            await self.wake.wait()

    def bookmark(self) -> None:
        if self.wants_bookmarks:
            self._owes_bookmark = True
            self.wake.set()

    def send(self, line: bytes) -> None:
        """Whatever it is."""
        self._unsent.append(line + b"\n")
        self.wake.set()

    def expire(self) -> None:
        """Say that the version is gone, and end."""
        problem = RefusalError(410, f"too old resource version: {self.position} ({self._storage.oldest_revision})")
        self._problem = event_line("ERROR", msgspec.json.encode(problem.body()))
        self.end()

    def end(self) -> None:
        self.is_over = True
        self.wake.set()

    def cut(self) -> None:
        if self._transport is not None:
            self._transport.abort()
        self.end()

    def _begin(self) -> None:
        """Find the position to read from, and what is to be sent before."""
        asked = self._query.get("resourceVersion", "")
        if self._query.get("sendInitialEvents") == "true":
            self._unsent.extend(self._everything())
            annotations = {INITIAL_EVENTS_END: "true"}
            self._unsent.append(self._bookmark_line(self.position, annotations))
        elif asked in ("", "0"):
            self._unsent.extend(self._everything())
        elif int(asked) < self._storage.oldest_revision:
            self.position = int(asked)
            self.expire()
        else:
            self.position = int(asked)

    def _everything(self) -> Iterator[bytes]:
        for stored in self._storage.items(self.served.resource):
            if self._matches is None or self._matches(stored.item):
                yield event_line("ADDED", stored.encoded)

    def take_changes(self) -> None:
        """Read the log up to now; what was read is sent in any case, even if the log is cut after this."""
        entries = self._storage.since(self.served.resource, self.position)
        if entries:
            self.position = entries[-1].revision
            self._unsent.extend(entry.line(self._matches) for entry in entries)

    def _gathered(self) -> bytes:
        """First what was asked for at the beginning, then the changes since, then a bookmark or the error."""
        if self._problem is None:
            self.take_changes()
        lines, self._unsent = self._unsent, []
        if self._problem is not None:
            lines.append(self._problem)
        elif self._owes_bookmark:
            self._owes_bookmark = False
            lines.append(self._bookmark_line(self._storage.revision, {}))
        return b"".join(lines)

    def _bookmark_line(self, revision: int, annotations: dict[str, str]) -> bytes:
        metadata = {"resourceVersion": str(revision), "creationTimestamp": None}
        bookmark = {"kind": self.served.kind, "apiVersion": self.served.api_version, "metadata": metadata}
        if annotations:
            bookmark["metadata"] = {**metadata, "annotations": annotations}
        return event_line("BOOKMARK", msgspec.json.encode(bookmark))


class WatchHall:
    """All watches that are open."""

    def __init__(self) -> None:
        self._open: dict[str, set[OpenWatch]] = {}

    async def serve(self, watch: OpenWatch, request: web.Request) -> web.StreamResponse:
        watches = self._open.setdefault(watch.served.resource, set())
        watches.add(watch)
        try:
            return await watch.serve(request)
        finally:
            watches.discard(watch)

    def wake(self, resource: str) -> None:
        for watch in self._open.get(resource, ()):
            watch.wake.set()

    def of(self, resource: str = "") -> list[OpenWatch]:
        """The watches of this resource, or all."""
        if resource:
            return list(self._open.get(resource, ()))
        return [watch for watches in self._open.values() for watch in watches]
