"""Server-sent events: the whole state for a start, then what changes, to everybody who listens.

One look at the state serves all listeners, and nobody looks while nobody listens. A listener that does not keep up
gets the whole state again instead of all that it missed. Objects never change, only get replaced: a row is made once
for each object, and whoever looks again pays for what is new (`StateReader`).

Next: `page`, which hands listeners in.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.resource import ResourceClaim, ResourceSlice
from kubesched.playground.web.rows import (
    Row,
    claim_row,
    device_rows,
    group_row,
    node_row,
    pod_row,
    queue_rows,
    same_queue,
)
from kubesched.playground.web.sources import WebSources

MOST_WAITING = 8
"""So many messages may wait for a listener."""
KEEP_ALIVE_S = 15.0
"""After so long without news a listener gets a comment: that is how we notice that it is gone."""
PAUSES_PER_LOOK = 10
"""Looking at a large cluster takes its time: at most a tenth of all, as the scheduler may be in the same loop."""

_KEEP_ALIVE = b": still here\n\n"


class StateStream:
    """`listen` yields messages, ready to be written; `stop` ends all of them."""

    def __init__(self, reader: StateReader, pause_s: float) -> None:
        self._reader = reader
        self._pause_s = pause_s
        self._listeners: set[_Listener] = set()
        self._looking: asyncio.Task[None] | None = None
        self._last: ShownState | None = None

    async def listen(self) -> AsyncGenerator[bytes]:
        listener = _Listener()
        self.look()
        assert self._last is not None
        listener.restart(_message("state", self._last.report()))
        self._listeners.add(listener)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look_forever(), name="web page stream")
        try:
            while (message := await listener.next()) is not None:
                yield message
        finally:
            self._listeners.discard(listener)
            if not self._listeners:
                await self._stop_looking()

    async def stop(self) -> None:
        for listener in self._listeners:
            listener.end()
        await self._stop_looking()

    async def _look_forever(self) -> None:
        time_s = asyncio.get_running_loop().time
        pause_s = self._pause_s
        while True:
            await asyncio.sleep(pause_s)
            started_s = time_s()
            self.look()
            pause_s = max(self._pause_s, PAUSES_PER_LOOK * (time_s() - started_s))

    def look(self) -> None:
        """The changes go to all who listen already."""
        before, self._last = self._last, self._reader.read()
        if before is None or not self._listeners:
            return
        found = changes(before, self._last)
        if not found:
            return
        message = _message("change", found)
        for listener in self._listeners:
            if not listener.put(message):
                listener.restart(_message("state", self._last.report()))

    async def _stop_looking(self) -> None:
        looking, self._looking = self._looking, None
        if looking is not None:
            looking.cancel()
            with suppress(asyncio.CancelledError):
                await looking


class _Listener:
    def __init__(self) -> None:
        self._waiting: deque[bytes] = deque()
        self._has_news = asyncio.Event()
        self._has_ended = False

    def put(self, message: bytes) -> bool:
        """False if too much waits already."""
        if len(self._waiting) >= MOST_WAITING:
            return False
        self._waiting.append(message)
        self._has_news.set()
        return True

    def restart(self, message: bytes) -> None:
        self._waiting.clear()
        self.put(message)

    def end(self) -> None:
        self._has_ended = True
        self._has_news.set()

    async def next(self) -> bytes | None:
        """None at the end."""
        while not self._waiting and not self._has_ended:
            self._has_news.clear()
            try:
                async with asyncio.timeout(KEEP_ALIVE_S):
                    await self._has_news.wait()
            except TimeoutError:
                return _KEEP_ALIVE
        return None if self._has_ended else self._waiting.popleft()


def _message(kind: str, body: dict[str, Any]) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), msgspec.json.encode(body))


K = TypeVar("K", bound=KubeObject)

KINDS = ("nodes", "pods", "groups", "claims", "devices")


@dataclass(frozen=True, slots=True)
class ShownState:
    """Rows by key; who holds one must not change it."""

    nodes: Mapping[str, Row]
    pods: Mapping[str, Row]
    groups: Mapping[str, Row]
    claims: Mapping[str, Row]
    devices: Mapping[str, Row]
    """By node; empty if no driver offers any."""
    queue: Row

    def report(self) -> dict[str, Any]:
        return {kind: getattr(self, kind) for kind in (*KINDS, "queue")}


class StateReader:
    """Looks at the sources. `now_s` is the time of day."""

    def __init__(self, sources: WebSources, now_s: Callable[[], float]) -> None:
        self._sources = sources
        self._now_s = now_s
        self._nodes = _RowKeeper(node_row)
        self._pods = _RowKeeper(pod_row)
        self._groups = _RowKeeper(group_row)
        self._claims = _RowKeeper(claim_row)
        self._devices = _DeviceKeeper()

    def read(self) -> ShownState:
        sources = self._sources
        claims = list(sources.claims())
        return ShownState(
            nodes=self._nodes.rows(sources.nodes()),
            pods=self._pods.rows(sources.pods()),
            groups=self._groups.rows(sources.groups()),
            claims=self._claims.rows(claims),
            devices=self._devices.rows(list(sources.slices()), claims),
            queue=queue_rows(sources.queue(), self._now_s()),
        )


class _RowKeeper(Generic[K]):
    """Rows of one kind, kept for as long as their objects are there."""

    def __init__(self, make: Callable[[K], Row]) -> None:
        self._make = make
        self._kept: dict[str, tuple[K, Row]] = {}

    def rows(self, items: Iterable[K]) -> dict[str, Row]:
        before, kept = self._kept, {}
        for item in items:
            key = item.key
            known = before.get(key)
            if known is not None and known[0] is item:
                kept[key] = known
                continue
            row = self._make(item)
            kept[key] = (item, known[1] if known is not None and known[1] == row else row)
        self._kept = kept
        return {key: row for key, (_, row) in kept.items()}


class _DeviceKeeper:
    """Counts devices again only after a slice or a claim has changed, which is seldom."""

    def __init__(self) -> None:
        self._seen: list[KubeObject] = []
        self._rows: dict[str, Row] = {}

    def rows(self, slices: list[ResourceSlice], claims: list[ResourceClaim]) -> dict[str, Row]:
        seen: list[KubeObject] = [*slices, *claims]
        if len(seen) != len(self._seen) or any(one is not other for one, other in zip(seen, self._seen, strict=True)):
            before, self._seen = self._rows, seen
            counted = device_rows(slices, claims)
            self._rows = {name: before[name] if before.get(name) == row else row for name, row in counted.items()}
        return self._rows


def changes(before: ShownState, after: ShownState) -> dict[str, Any]:
    """What to put and what to take away to come from one to the other; empty if there is nothing to do."""
    found: dict[str, Any] = {}
    for name in KINDS:
        old, new = getattr(before, name), getattr(after, name)
        put = {key: row for key, row in new.items() if old.get(key) is not row}
        gone = [key for key in old if key not in new]
        if put or gone:
            found[name] = {"put": put, "gone": gone}
    if not same_queue(before.queue, after.queue):
        found["queue"] = after.queue
    return found
