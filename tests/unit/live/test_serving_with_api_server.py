"""The secure port and an API server, with the client between them that the scheduler uses."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from secured_port import LOCAL, Asking, Authority, authenticating

from harness.scripted_server import ScriptedServer
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.client.target import ServerTarget
from kubesched.live.serving.server import SecureServer
from kubesched.live.serving.settings import ServingError, ServingSettings
from kubesched.live.serving.sources import Sources

ALICE = {"Authorization": "Bearer alice"}


async def statuses(server: ScriptedServer, settings: ServingSettings, *asked: tuple[str, dict[str, str]]) -> list[int]:
    client = RestClient(ServerTarget(url=server.url), qps=0)
    secure = SecureServer(settings, Sources(), client)
    try:
        await secure.start()
        port = Asking(secure.port)
        return [(await port.get(path, headers)).status for path, headers in asked]
    finally:
        await secure.stop()
        await client.close()


def test_tokens_and_permissions_are_reviewed_by_the_api_server() -> None:
    async def run() -> list[int]:
        async with ScriptedServer() as server:
            server.access.token_users["alice"] = {"username": "alice", "groups": ["dev"]}
            server.access.grants = lambda spec: (
                spec["user"] == "alice" and spec["nonResourceAttributes"]["path"] == "/metrics"
            )
            return await statuses(
                server,
                LOCAL,
                ("/metrics", ALICE),
                ("/version", ALICE),
                ("/metrics", {}),
                ("/metrics", {"Authorization": "Bearer nobody"}),
                ("/readyz", {}),
            )

    assert asyncio.run(run()) == [200, 403, 403, 401, 200]


def test_an_api_server_that_goes_away_is_told_apart_from_a_refusal() -> None:
    async def run() -> list[int]:
        async with ScriptedServer() as server:
            client = RestClient(ServerTarget(url=server.url), qps=0)
            secure = SecureServer(authenticating(skip_lookup=True), Sources(), client)
            try:
                await secure.start()
                await server.stop()
                port = Asking(secure.port)
                asked: list[tuple[str, dict[str, str]]] = [("/metrics", {}), ("/metrics", ALICE), ("/healthz", {})]
                return [(await port.get(path, headers)).status for path, headers in asked]
            finally:
                await secure.stop()
                await client.close()

    assert asyncio.run(run()) == [500, 401, 200]


def test_a_lookup_that_is_forbidden_hinders_the_start_if_it_must_succeed() -> None:
    settings = replace(LOCAL, authentication=replace(LOCAL.authentication, tolerate_lookup_failure=False))

    async def run() -> None:
        async with ScriptedServer() as server:
            server.access.refused.add(("get", "configmaps"))
            await statuses(server, settings)

    with pytest.raises(ServingError, match="unable to load configmap based request-header-client-ca-file: "):
        asyncio.run(run())


def test_client_cas_come_from_the_cluster(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "clients")
    pair = authority.issue("admin", "system:masters")

    async def run() -> int:
        async with ScriptedServer() as server:
            server.put(
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
                    "data": {"client-ca-file": authority.pem},
                }
            )
            client = RestClient(ServerTarget(url=server.url), qps=0)
            secure = SecureServer(LOCAL, Sources(), client)
            try:
                await secure.start()
                return (await Asking(secure.port).with_certificate(pair).get("/version")).status
            finally:
                await secure.stop()
                await client.close()

    assert asyncio.run(run()) == 200
