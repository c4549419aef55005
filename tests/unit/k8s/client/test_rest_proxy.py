"""Requests and watches through a proxy: CONNECT for https, whole URLs for http."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from loopback_servers import authority, loopback_identity, server_tls, serving

from kubesched.k8s.client.errors import Unreachable
from kubesched.k8s.client.rest import RestClient, RetryPolicy
from kubesched.k8s.client.target import ServerTarget, make_tls_context

ONCE = RetryPolicy(max_attempts=1)


class Proxy:
    """Forwards CONNECT, and the first request of a plain connection; wants user name and password."""

    def __init__(self, refuses: bool = False) -> None:
        self.refuses = refuses
        self.heads: list[list[str]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head.split("\r\n"))
        method, where, _ = head.split(" ", 2)
        if self.refuses:
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            writer.close()
            return
        host = where.removeprefix("http://").split("/")[0]
        there, out = await asyncio.open_connection(*host.split(":"))
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        else:
            out.write(head.encode())
        await asyncio.gather(_pump(reader, out), _pump(there, writer))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
    except ConnectionError:
        pass
    finally:
        writer.close()


@asynccontextmanager
async def _proxying(proxy: Proxy) -> AsyncIterator[str]:
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await server.wait_closed()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others, timeout=1)


async def _hello(_request: web.Request) -> web.StreamResponse:
    return web.Response(text="hello\n")


@pytest.mark.parametrize("with_tls", [True, False], ids=["https", "http"])
def test_requests_and_watches_go_through_the_proxy(tmp_path: Path, with_tls: bool) -> None:
    proxy = Proxy()

    async def run() -> None:
        tls = server_tls(tmp_path, loopback_identity()) if with_tls else None
        async with serving(_hello, tls) as url, _proxying(proxy) as address:
            context = make_tls_context(authorities=authority().certificate) if with_tls else None
            target = ServerTarget(url, ssl_context=context, proxy=f"http://me:s3cret@{address}")
            client = RestClient(target, qps=0, retries=ONCE)
            assert await client.request("GET", "/x") == b"hello\n"
            async with client.stream("/watch", {}) as lines:
                assert [line async for line in lines] == [b"hello"]
            await client.close()

    asyncio.run(run())
    assert proxy.heads[0][0].startswith("CONNECT 127.0.0.1:" if with_tls else "GET http://127.0.0.1:")
    login = base64.b64encode(b"me:s3cret").decode()
    assert f"Proxy-Authorization: Basic {login}" in proxy.heads[0]


def test_a_proxy_that_refuses_is_named_without_its_password() -> None:
    async def run() -> None:
        async with _proxying(Proxy(refuses=True)) as address:
            target = ServerTarget("https://10.0.0.1", proxy=f"http://me:s3cret@{address}")
            client = RestClient(target, qps=0, retries=ONCE)
            with pytest.raises(Unreachable) as refused:
                await client.request("GET", "/x")
            await client.close()
            assert str(refused.value) == (
                f"cannot reach the API server at https://10.0.0.1 through the proxy http://{address}: "
                "the proxy answered 407 Proxy Authentication Required"
            )

    asyncio.run(run())


def test_a_proxy_that_is_not_there_is_unreachable() -> None:
    async def run() -> None:
        async with _proxying(Proxy()) as address:
            pass
        client = RestClient(ServerTarget("https://10.0.0.1", proxy=f"http://{address}"), qps=0, retries=ONCE)
        with pytest.raises(
            Unreachable, match=rf"through the proxy http://{address}: connection refused; check that the proxy"
        ):
            await client.request("GET", "/x")
        await client.close()

    asyncio.run(run())
