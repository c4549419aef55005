"""The API server in a process of its own: started, found, and never left behind."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest

from kubesched.k8s.client.kubeconfig import load_target
from kubesched.k8s.client.rest import RestClient
from kubesched.playground.apiserver.server import ServerSettings
from kubesched.playground.server_process import ServerProcess, ServerProcessError


def test_it_serves_until_it_is_stopped(tmp_path: Path) -> None:
    async def run() -> None:
        server = ServerProcess(ServerSettings(), tmp_path / "kubeconfig")
        await server.start()
        client = RestClient(load_target(tmp_path / "kubeconfig"))
        try:
            assert b"gitVersion" in await client.request("GET", "/version")
        finally:
            await client.close()
            await server.stop()
        await server.wait()

    asyncio.run(run())


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    async def run(port: int) -> None:
        server = ServerProcess(ServerSettings(port=port), tmp_path / "kubeconfig")
        try:
            with pytest.raises(ServerProcessError, match=f"127.0.0.1:{port}: the port is in use; .*--port"):
                await server.start()
        finally:
            await server.stop()

    with socket.create_server(("127.0.0.1", 0)) as taken:
        asyncio.run(run(taken.getsockname()[1]))


def test_it_ends_when_nobody_holds_its_input_any_more(tmp_path: Path) -> None:
    async def run() -> None:
        server = ServerProcess(ServerSettings(), tmp_path / "kubeconfig")
        await server.start()
        process = server._process
        assert process is not None and process.stdin is not None
        process.stdin.close()  # as when this process were killed
        async with asyncio.timeout(10):
            await server.wait()
        assert process.returncode == 0
        await server.stop()

    asyncio.run(run())
    assert (tmp_path / "kubeconfig").stat().st_uid == os.getuid()
