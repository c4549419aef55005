"""The measurement from an empty directory to a restart with everything in it; gives plain figures.

Wall times depend on what else the machine does; `server_ms` (processor time of the server for one request) less, and
`server_ms / machine_ms` least: `machine_ms` is the processor time of a fixed piece of work at the same time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from harness.apiserver_load import requests
from harness.apiserver_load.measured_server import MeasuredServer
from harness.apiserver_load.raw_http import Connection, connect, open_stream, send_all
from harness.apiserver_load.watchers import WatcherProcess

Figures = dict[str, Any]
_TIMES_FIXED_WORK = 5


@dataclass(frozen=True, slots=True)
class LoadSize:
    """How much is measured."""

    nodes: int = 5_000
    pods: int = 10_000
    watchers: int = 10
    connections: int = 64


def _fixed_work_ms() -> float:
    """Processor time of some work in Python that is always the same."""
    began_s = time.thread_time()
    for _ in range(_TIMES_FIXED_WORK):
        table: dict[int, list[object]] = {}
        for number in range(60_000):
            table[number % 1000] = [number, str(number)]
    return (time.thread_time() - began_s) * 1000 / _TIMES_FIXED_WORK


class _Measurement:
    """One server under load."""

    def __init__(self, server: MeasuredServer, size: LoadSize, connections: list[Connection]) -> None:
        self._server = server
        self._access = server.access
        self._size = size
        self._connections = connections

    async def _writes(self, posts: Iterator[bytes], finish: Callable[[], Any] = lambda: None) -> Figures:
        """How fast the requests are answered; ``finish`` waits for what belongs to their cost."""
        machine_ms = _fixed_work_ms()
        cpu_s, began_s = self._server.cpu_s(), time.monotonic()
        count = await send_all(self._connections, posts)
        took_s = time.monotonic() - began_s
        finish()
        used_ms = (self._server.cpu_s() - cpu_s) * 1000
        return {
            "count": count,
            "per_second": round(count / took_s),
            "server_ms": round(used_ms / count, 3),
            "machine_ms": round((machine_ms + _fixed_work_ms()) / 2, 1),
        }

    async def fill(self) -> Figures:
        nodes = await self._writes(requests.node_posts(self._access, self._size.nodes))
        pods = await self._writes(requests.pod_posts(self._access, self._size.pods))
        return {"create_nodes": nodes, "create_pods": pods}

    async def read(self) -> Figures:
        """Whole lists, and a watch that begins with all objects."""
        found: Figures = {}
        for name in ("nodes", "pods"):
            began_s = time.monotonic()
            body = await self._list(name)
            found[f"list_{name}"] = {"seconds": round(time.monotonic() - began_s, 3), "bytes": len(body)}
        began_s = time.monotonic()
        options = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        stream = await open_stream(self._access, f"/api/v1/pods?watch=true&{options}", 0, b"initial-events-end")
        await stream.complete
        await stream.close()
        found["watch_list_pods"] = {"seconds": round(time.monotonic() - began_s, 3), "events": stream.n_lines}
        return found

    async def _list(self, plural: str) -> bytes:
        return await self._connections[0].ask(self._access.head("GET", f"/api/v1/{plural}") + b"\r\n")

    async def pods(self) -> tuple[str, dict[str, str]]:
        """The list's version, and the uid of each pod."""
        content = msgspec.json.decode(await self._list("pods"))
        uids = {item["metadata"]["name"]: item["metadata"]["uid"] for item in content["items"]}
        return content["metadata"]["resourceVersion"], uids

    async def watched(self, make: Callable[[dict[str, str]], Iterator[bytes]], count: int) -> Figures:
        """Writes while all watchers read; done when every watcher has every event."""
        version, uids = await self.pods()
        watchers = WatcherProcess(self._server.kubeconfig, self._size.watchers, version, count)
        began_s = time.monotonic()
        told: Figures = {}
        figures = await self._writes(make(uids), lambda: told.update(watchers.finish()))
        seen_s = told["done_at_s"] - began_s
        return {**figures, "seen_per_second": round(count / seen_s), "watched_mb": told["bytes"] // 1_000_000}

    async def bind(self) -> Figures:
        size, half = self._size, self._size.pods // 2
        found: Figures = {}
        for name, numbers in (("json", range(half)), ("protobuf", range(half, half * 2))):
            found[f"bind_{name}"] = await self.watched(
                lambda uids, numbers=numbers, name=name: requests.binding_posts(  # type: ignore[misc]
                    self._access, uids, numbers, size.nodes, name == "protobuf"
                ),
                len(numbers),
            )
        return found

    async def patch(self) -> Figures:
        numbers = range(min(self._size.pods, 3_000))
        figures = await self.watched(lambda uids: requests.status_patches(self._access, uids, numbers), len(numbers))
        return {"patch_status": figures}


async def _measure(server: MeasuredServer, size: LoadSize, wants: frozenset[str]) -> Figures:
    connections = [await connect(server.access) for _ in range(size.connections)]
    measurement = _Measurement(server, size, connections)
    found: Figures = {}
    for name, part in (
        ("fill", measurement.fill),
        ("read", measurement.read),
        ("bind", measurement.bind),
        ("patch", measurement.patch),
    ):
        if name in wants:
            found |= await part()
    await asyncio.gather(*(connection.close() for connection in connections))
    return found


def measure(folder: Path, size: LoadSize) -> Figures:
    """Everything, in a folder that is there and empty."""
    data = folder / "data"
    server = MeasuredServer(data)
    try:
        found: Figures = {"start_s": round(server.wait_until_serving(), 2)}
        found |= asyncio.run(_measure(server, size, frozenset({"fill", "read", "bind", "patch"})))
        found["memory_mb"] = server.memory_mb()
    finally:
        server.kill()
    again = MeasuredServer(data)
    try:
        found["restart_s"] = round(again.wait_until_serving(), 2)
        found["after_restart"] = asyncio.run(_measure(again, size, frozenset({"read"})))
        found["after_restart"]["memory_mb"] = again.memory_mb()
    finally:
        again.kill()
    return found
