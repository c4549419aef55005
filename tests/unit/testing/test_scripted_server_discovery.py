"""The scripted server tells which kinds it has, and deletes whole collections."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from harness.scripted_server import ScriptedServer
from kubesched.k8s.client.errors import ApiError
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.client.target import ServerTarget


def ask(server: ScriptedServer, path: str, method: str = "GET", **params: str) -> Any:
    async def run() -> Any:
        async with server:
            client = RestClient(ServerTarget(url=server.url), qps=0)
            try:
                return msgspec.json.decode(await client.request(method, path, params=params))
            finally:
                await client.close()

    return asyncio.run(run())


def test_groups_and_versions_are_told() -> None:
    assert ask(ScriptedServer(), "/api")["versions"] == ["v1"]
    groups = {group["name"]: group for group in ask(ScriptedServer(), "/apis")["groups"]}
    assert groups["events.k8s.io"]["preferredVersion"] == {"groupVersion": "events.k8s.io/v1", "version": "v1"}
    assert "" not in groups
    assert ask(ScriptedServer(), "/apis/policy")["versions"][0]["groupVersion"] == "policy/v1"
    assert ask(ScriptedServer(), "/version")["gitVersion"] == "v1.36.4"


@pytest.mark.parametrize(
    ("path", "plural", "kind", "namespaced"),
    [
        pytest.param("/api/v1", "pods", "Pod", True, id="the core group"),
        pytest.param("/api/v1", "nodes", "Node", False, id="a kind without namespaces"),
        pytest.param("/apis/events.k8s.io/v1", "events", "Event", True, id="a named group"),
    ],
)
def test_kinds_of_a_version_are_told(path: str, plural: str, kind: str, namespaced: bool) -> None:
    found = {one["name"]: one for one in ask(ScriptedServer(), path)["resources"]}
    assert (found[plural]["kind"], found[plural]["namespaced"]) == (kind, namespaced)


def test_a_group_that_is_not_served_is_not_found() -> None:
    server = ScriptedServer()
    server.routes.remove("leases")
    with pytest.raises(ApiError) as refused:
        ask(server, "/apis/coordination.k8s.io/v1")
    assert refused.value.is_not_found


def test_a_collection_is_deleted_as_far_as_it_is_selected() -> None:
    server = ScriptedServer()
    for name, run in (("a", "1"), ("b", "2")):
        server.put({"kind": "Node", "metadata": {"name": name, "labels": {"run": run}}})
    ask(server, "/api/v1/nodes", "DELETE", labelSelector="run=1")
    assert [node["metadata"]["name"] for node in server.objects("Node")] == ["b"]
