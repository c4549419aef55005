"""The scripted server itself: starts, answers, and gives the test its levers.

A request goes: recorded → a planned fault before it → token → access → reading, writing or watching → a planned fault
after it. Next: `faults` for what can go wrong, `watching` for what is special about watches.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import msgspec
from aiohttp import web

from harness.scripted_server.answering import Access, Answering
from harness.scripted_server.faults import Fault, FaultPlan, RecordedRequest, until
from harness.scripted_server.routing import SERVED_KINDS, Address, RouteTable, ServedKind
from harness.scripted_server.storage import Stored, VersionedStorage, key_of
from harness.scripted_server.watching import WatchHall
from harness.scripted_server.writing import Writing


def _wall_clock() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class ScriptedServer:
    """An API server on loopback, for the length of an `async with`.

    `streams_lists=False` refuses `sendInitialEvents`, as servers before v1.34 do, and `None` ignores it, as a strange
    server might. Tests look at `requests`, `access` and `storage` directly.
    """

    def __init__(
        self,
        *,
        accepts_token: str | None = None,
        streams_lists: bool | None = True,
        kinds: Iterable[ServedKind] = SERVED_KINDS,
        now: Callable[[], str] = _wall_clock,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self.requests: list[RecordedRequest] = []
        self.routes = RouteTable(kinds)
        self.access = Access(accepts_token)
        self.storage = VersionedStorage()
        self.writing = Writing(self.storage, now)
        self.faults = FaultPlan()
        self.watches = WatchHall()
        self.storage.on_change = self.watches.wake
        self._ssl_context = ssl_context
        self._answering = Answering(self, streams_lists)
        self._runner: web.AppRunner | None = None
        self._listening: socket.socket | None = None
        self.port = 0

    # -- life --------------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        return f"{'https' if self._ssl_context else 'http'}://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """On a free port, or after a `stop` on the same one again, with all objects kept."""
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/{path:.*}", self._answering.handle)
        # Who hangs up ends what he asked for, so that a test sees watches end.
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2, handler_cancellation=True)
        await self._runner.setup()
        self._listening = socket.create_server(("127.0.0.1", self.port), backlog=1024)
        self.port = self._listening.getsockname()[1]
        await web.SockSite(self._runner, self._listening, ssl_context=self._ssl_context).start()

    async def stop(self) -> None:
        """Cuts all connections."""
        self.faults.clear()
        for watch in self.watches.of():
            watch.end()
        if self._runner is None or self._listening is None:
            return
        # asyncio forgets a connection that it has taken but not yet begun when its server closes: its caller would
        # wait forever. So first nobody new is taken, then those taken begin, and then all are sent away.
        asyncio.get_running_loop().remove_reader(self._listening)
        for _ in range(5):
            await asyncio.sleep(0)
        await self._runner.cleanup()
        self._runner = self._listening = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    # -- objects, without HTTP -----------------------------------------------------------------------------------------

    def put(self, manifest: dict[str, Any], encode: Callable[[Stored], bytes] = msgspec.json.encode) -> Stored:
        """Create or replace this object; needs `kind` and a name. With `encode` it can look damaged to who asks."""
        served = self._kind_of(manifest)
        item = self.writing.completed(served, None, manifest)
        old = self.storage.get(served.resource, key_of(item))
        if old is not None:
            kept = {key: old["metadata"][key] for key in ("uid", "creationTimestamp")}
            given = manifest["metadata"]
            item["metadata"].update({key: given.get(key, value) for key, value in kept.items()})
        return self.storage.put(served.resource, key_of(item), item, encode)

    def get(self, kind: str, name: str, namespace: str | None = None) -> Stored | None:
        return self.storage.get(self.routes.kind(kind).resource, f"{namespace}/{name}" if namespace else name)

    def objects(self, kind: str) -> list[Stored]:
        return [stored.item for stored in self.storage.items(self.routes.kind(kind).resource)]

    def delete(self, kind: str, name: str, namespace: str | None = None) -> None:
        """At once, whatever finalizers it has."""
        self.storage.delete(self.routes.kind(kind).resource, f"{namespace}/{name}" if namespace else name)

    def bind(self, name: str, node: str, namespace: str = "default") -> None:
        """As another scheduler might do behind our back."""
        address = Address(self.routes.kind("pods"), namespace, name, "binding")
        self._answering.bind(address, {"target": {"kind": "Node", "name": node}})

    def _kind_of(self, manifest: dict[str, Any]) -> ServedKind:
        api_version = manifest.get("apiVersion")
        group = None if api_version is None else api_version.rpartition("/")[0]
        return self.routes.kind(manifest["kind"], group)

    # -- levers ------------------------------------------------------------------------------------------------------

    def fail_next(self, what: str = "", path: str = "", *, status: int = 500, **more: Any) -> Fault:
        """Refuse the next request of this method (`POST`) or verb (`watch`) with this in its path.
        `more` are the other fields of `Fault`: times, reason, message, retry_after_s, causes, after, delay_s."""
        return self.faults.add(Fault(what, path, status=status, **more))

    def drop_next(self, what: str = "", path: str = "", *, after: bool = False, times: int = 1) -> Fault:
        """Cut the connection of such a request, before or after doing it."""
        return self.faults.add(Fault(what, path, drop=True, after=after, times=times))

    def delay_next(self, what: str = "", path: str = "", *, by_s: float, times: int = 1) -> Fault:
        return self.faults.add(Fault(what, path, delay_s=by_s, times=times))

    def hold_next(self, what: str = "", path: str = "", *, after: bool = False) -> Fault:
        """Keep such a request waiting until the fault that is returned here is released."""
        return self.faults.add(Fault(what, path, hold=True, after=after))

    def refuse(self, verb: str, resource: str) -> None:
        """From now on 403 for, say, `list` of `pods`."""
        self.access.refused.add((verb, resource))

    def allow(self, verb: str, resource: str) -> None:
        self.access.refused.discard((verb, resource))

    def forget_history(self) -> None:
        """Changes until now cannot be watched any more, nor lists be continued: 410. Open watches go on."""
        for watch in self.watches.of():
            watch.take_changes()
        self.storage.forget_history()
        self._answering.reading.forget()

    def cut_watches(self, resource: str = "") -> int:
        """Break their connections; returns how many there were."""
        watches = self.watches.of(resource)
        for watch in watches:
            watch.cut()
        return len(watches)

    def end_watches(self, resource: str = "") -> None:
        """End them as after their timeout."""
        for watch in self.watches.of(resource):
            watch.end()

    def expire_watches(self, resource: str = "") -> None:
        """Tell them by an ERROR event that their version is gone."""
        for watch in self.watches.of(resource):
            watch.expire()

    def send_bookmarks(self, resource: str = "") -> None:
        for watch in self.watches.of(resource):
            watch.bookmark()

    def send_line(self, line: bytes, resource: str = "") -> None:
        """What no server should say."""
        for watch in self.watches.of(resource):
            watch.send(line)

    # -- looking -----------------------------------------------------------------------------------------------------

    def asked(self, what: str = "", path: str = "") -> list[RecordedRequest]:
        """The requests so far of this method or verb with this in their path."""
        return [request for request in self.requests if request.is_about(what, path)]

    async def watched(self, *resources: str) -> None:
        """Give way until each of these resources has a watch."""
        await until(lambda: all(self.watches.of(resource) for resource in resources))
