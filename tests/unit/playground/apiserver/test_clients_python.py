"""The official Python client against the server: lists, watches, patches, bindings."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kubesched.playground.apiserver.server import ApiServer, ServerSettings

kubernetes = pytest.importorskip("kubernetes", reason="the official Python client is not installed")


def _use(config: Path) -> list[Any]:
    """What a user of the client does; runs in a thread beside the server's loop."""
    with kubernetes.config.new_client_from_config(str(config)) as connection:
        core = kubernetes.client.CoreV1Api(connection)
        container = {"name": "c", "image": "x"}
        made = core.create_namespaced_pod("default", {"metadata": {"name": "p"}, "spec": {"containers": [container]}})
        core.patch_namespaced_pod("p", "default", {"metadata": {"labels": {"a": "b"}}})
        target = {"apiVersion": "v1", "kind": "Node", "name": "n1"}
        binding = {"metadata": {"name": "p"}, "target": target}
        core.create_namespaced_pod_binding("p", "default", binding, _preload_content=False)
        bound = core.list_pod_for_all_namespaces(field_selector="spec.nodeName=n1", label_selector="a=b")
        stream = kubernetes.watch.Watch().stream(
            core.list_namespaced_pod, "default", resource_version=made.metadata.resource_version, timeout_seconds=1
        )
        events = [event["type"] for event in stream]
        core.delete_namespaced_pod("p", "default", grace_period_seconds=0)
        left = core.list_namespaced_pod("default").items
        return [made.status.phase, [pod.metadata.name for pod in bound.items], events, left]


def test_the_python_client_works(tmp_path: Path) -> None:
    async def body() -> list[Any]:
        server = ApiServer(ServerSettings())
        await server.start()
        server.write_kubeconfig(tmp_path / "config")
        try:
            return await asyncio.to_thread(_use, tmp_path / "config")
        finally:
            await server.stop()

    assert asyncio.run(body()) == ["Pending", ["p"], ["MODIFIED", "MODIFIED"], []]
