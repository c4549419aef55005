"""A server with limits, on real sockets: silent connections end, others get through, watches go on."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from aiohttp import web

from kubesched.k8s.connections import site as site_module
from kubesched.k8s.connections.site import BoundedSite, ConnectionLimits
from kubesched.playground.apiserver.http import identity

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _answer(request: web.BaseRequest) -> web.StreamResponse:
    if request.path == "/watch":
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"event\n")
            await asyncio.sleep(0.02)
    body = await request.read()
    return web.Response(text=f"{len(body)} bytes")


def _serve(
    limits: ConnectionLimits,
    body: Callable[[int, BoundedSite], Awaitable[None]],
    context: ssl.SSLContext | None = None,
) -> None:
    async def run() -> None:
        runner = web.ServerRunner(web.Server(_answer, access_log=None), shutdown_timeout=0.1)
        await runner.setup()
        site = BoundedSite(runner, "127.0.0.1", 0, ssl_context=context, limits=limits)
        await site.start()
        try:
            await body(int(runner.addresses[0][1]), site)
        finally:
            await runner.cleanup()

    asyncio.run(run())


async def _ask(port: int, path: str = "/") -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return answer


async def _until_closed(streams: Streams) -> bytes:
    reader, writer = streams
    try:
        rest = await reader.read()
    except ConnectionError:
        rest = b""
    writer.close()
    return rest


@pytest.fixture(autouse=True)
def _sweeping_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_module, "_SWEEP_EVERY_S", 0.02)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n", id="half a header"),
        pytest.param(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc", id="half a body"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", id="one request, then nothing"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT", id="one request, then half of one"),
    ],
)
def test_connections_that_fall_silent_are_closed(sent: bytes) -> None:
    async def body(port: int, site: BoundedSite) -> None:
        streams = await asyncio.open_connection("127.0.0.1", port)
        streams[1].write(sent)
        rest = await asyncio.wait_for(_until_closed(streams), 30)
        assert rest.startswith(b"HTTP/1.1 200") or not rest
        assert site.n_connections == 0

    _serve(ConnectionLimits(first_request_s=0.1, body_s=0.1, idle_s=0.1), body)


def test_who_sends_byte_after_byte_is_closed_too() -> None:
    async def body(port: int, _: BoundedSite) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)

        async def dribble() -> None:
            while True:
                writer.write(b"X")
                await asyncio.sleep(0.01)

        dribbling = asyncio.create_task(dribble())
        await asyncio.wait_for(_until_closed((reader, writer)), 30)
        dribbling.cancel()

    _serve(ConnectionLimits(first_request_s=0.2), body)


def test_a_watch_outlives_all_timeouts() -> None:
    async def body(port: int, site: BoundedSite) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /watch HTTP/1.1\r\nHost: x\r\n\r\n")
        silent = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.wait_for(_until_closed(silent), 30)
        for _ in range(30):
            assert await reader.readuntil(b"event\n")
        assert site.n_connections == 1
        writer.close()

    _serve(ConnectionLimits(first_request_s=0.1, body_s=0.1, idle_s=0.1), body)


def test_silent_connections_without_end_lock_nobody_out() -> None:
    async def body(port: int, site: BoundedSite) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /watch HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"event\n")
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(100)]
        for _ in range(5):
            assert (await _ask(port)).startswith(b"HTTP/1.1 200")
        assert site.n_connections <= 20
        assert await reader.readuntil(b"event\n")
        for _, other in (*silent, (reader, writer)):
            other.close()

    _serve(ConnectionLimits(total=20), body)


def test_a_handshake_that_does_not_come_ends(tmp_path: Path) -> None:
    its_own = identity.load_or_create(tmp_path, "127.0.0.1")

    async def body(port: int, site: BoundedSite) -> None:
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(60)]
        trusted = ssl.create_default_context(cadata=its_own.ca_pem.decode())
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusted)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 200")
        writer.close()
        for streams in silent:
            await asyncio.wait_for(_until_closed(streams), 30)
        assert site.n_connections <= 1

    _serve(ConnectionLimits(total=20, handshake_s=0.5), body, its_own.ssl_context())


def test_a_taken_address_is_an_error_that_says_so() -> None:
    async def body(port: int, _: BoundedSite) -> None:
        runner = web.ServerRunner(web.Server(_answer, access_log=None))
        await runner.setup()
        with pytest.raises(OSError, match="address already in use"):
            await BoundedSite(runner, "127.0.0.1", port).start()
        await runner.cleanup()

    _serve(ConnectionLimits(), body)


def test_all_addresses_of_a_name_get_the_same_free_port() -> None:
    async def run() -> None:
        found = await site_module._listen("localhost", 0, reuse_port=False)
        assert len({one.getsockname()[1] for one in found}) == 1
        for one in found:
            one.close()

    asyncio.run(run())
