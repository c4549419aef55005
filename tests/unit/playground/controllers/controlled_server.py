"""An API server with controllers on it, for the length of a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from harness.scripted_server import ScriptedServer
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.client.target import ServerTarget
from kubesched.playground.controllers.runner import ControllerRunner, all_controllers

Stored = dict[str, Any]
ROOT_CA = "-----BEGIN CERTIFICATE-----"


@asynccontextmanager
async def controlled_server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer() as server:
        client = RestClient(ServerTarget(url=server.url), qps=0)
        runner = ControllerRunner(client, partial(all_controllers, root_ca_pem=ROOT_CA))
        try:
            await runner.start()
            yield server
        finally:
            await runner.stop()
            await client.close()


def on_server(scenario: Callable[[ScriptedServer], Awaitable[None]]) -> None:
    async def run() -> None:
        async with controlled_server() as server:
            await scenario(server)

    asyncio.run(run())


def make_ready(server: ScriptedServer, pod: Stored, node: str = "n") -> None:
    """As scheduler and kubelet would."""
    spec = {**pod["spec"], "nodeName": node}
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    server.put({**pod, "kind": "Pod", "spec": spec, "status": status})


def make_end(server: ScriptedServer, pod: Stored, phase: str) -> None:
    server.put({**pod, "kind": "Pod", "status": {"phase": phase}})


def pods(server: ScriptedServer) -> list[Stored]:
    """By name; without those that are on their way out."""
    found = [pod for pod in server.objects("pods") if not pod["metadata"].get("deletionTimestamp")]
    return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))


def status_of(server: ScriptedServer, kind: str, name: str, namespace: str | None = "default") -> Stored:
    found = server.get(kind, name, namespace)
    return {} if found is None else found.get("status") or {}
