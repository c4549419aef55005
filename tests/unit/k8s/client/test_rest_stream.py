"""Watches: whole lines as they come, and a clear end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web
from loopback_servers import Handler, serving

import kubesched.k8s.client.rest as rest
from kubesched.k8s.client.aiohttp_transport import AiohttpTransport
from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.client.target import ServerTarget


def _sends(*chunks: bytes, then: Callable[[web.Request], Awaitable[None]] | None = None) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        if then is not None:
            await then(request)
        return response

    return handle


async def _hang_up(request: web.Request) -> None:
    assert request.transport is not None
    request.transport.abort()


async def _stay_silent(_request: web.Request) -> None:
    await asyncio.Event().wait()


def _read(handler: Handler, read: Callable[[RestClient], Awaitable[object]]) -> None:
    """Over both carriers."""

    async def run() -> None:
        async with serving(handler) as url:
            target = ServerTarget(url)
            for transport in (None, AiohttpTransport(target)):
                client = RestClient(target, qps=0, transport=transport)
                try:
                    await read(client)
                finally:
                    await client.close()

    asyncio.run(run())


def test_lines_are_whole_however_long_and_however_cut() -> None:
    long_line = b"x" * 3_000_000

    async def read(client: RestClient) -> None:
        async with client.stream("/watch", {"watch": "1"}) as lines:
            assert [line async for line in lines] == [b"one", b"two", long_line]

    _read(_sends(b"one\ntw", b"o\n", long_line, b"\n"), read)


def test_a_watch_can_be_left_in_the_middle() -> None:
    async def read(client: RestClient) -> None:
        async with client.stream("/watch", {}) as lines:
            async for line in lines:
                assert line == b"one"
                break

    _read(_sends(b"one\n", then=_stay_silent), read)


@pytest.mark.parametrize(
    ("handler", "why"),
    [
        pytest.param(_sends(b"one\n", then=_hang_up), "no answer from", id="the connection breaks"),
        pytest.param(_sends(b"one\n", b"tw"), "in the middle of a line", id="the server ends within a line"),
        pytest.param(_sends(b"one\n", then=_stay_silent), "timeout", id="the server does not end it in time"),
    ],
)
def test_a_watch_that_breaks_is_an_answer_lost(handler: Handler, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rest, "STREAM_MARGIN_S", 0.0)

    async def read(client: RestClient) -> None:
        got = []
        with pytest.raises(AnswerLost, match=why):
            async with client.stream("/watch", {"timeoutSeconds": "0.1"}) as lines:
                async for line in lines:
                    got.append(line)  # noqa: PERF401 - what came before the break must be kept
        assert got == [b"one"]

    _read(handler, read)


def test_a_watch_that_is_refused_raises_on_entering() -> None:
    async def handle(_request: web.Request) -> web.StreamResponse:
        return web.json_response({"kind": "Status", "reason": "Expired", "message": "too old"}, status=410)

    async def read(client: RestClient) -> None:
        with pytest.raises(ApiError) as refused:
            async with client.stream("/watch", {"resourceVersion": "1"}):
                raise AssertionError("not entered")
        assert refused.value.is_gone

    _read(handle, read)


def test_a_watch_on_nobody_is_unreachable() -> None:
    async def run() -> None:
        async with serving(_sends()) as url:
            pass
        client = RestClient(ServerTarget(url), qps=0)
        with pytest.raises(Unreachable, match="connection refused"):
            async with client.stream("/watch", {}):
                raise AssertionError("not entered")
        await client.close()

    asyncio.run(run())


def test_what_the_reader_raises_comes_out_as_it_is() -> None:
    async def read(client: RestClient) -> None:
        with pytest.raises(KeyError):
            async with client.stream("/watch", {}) as lines:
                async for _ in lines:
                    raise KeyError

    _read(_sends(b"one\n", then=_stay_silent), read)
