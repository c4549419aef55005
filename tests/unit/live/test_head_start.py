"""Lists that are asked for before the scheduler is there: which server they come from, and what becomes of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.scripted_server import ScriptedServer, until
from kubesched.k8s.client.list_watch import Informers, scheduler_informers
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.model.core import Node, Pod
from kubesched.live.head_start import ListsAhead, NamedServer, ask_ahead, likely_server


def _config_file(folder: Path, content: object) -> str:
    path = folder / "config.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(path)


def test_flags_name_the_server() -> None:
    given = {"kubeconfig": "/k", "context": "kind", "master": "http://m"}
    assert likely_server(given) == NamedServer("/k", "kind", "http://m")


def test_a_configuration_file_names_the_server_and_flags_beside_it_do_not(tmp_path: Path) -> None:
    path = _config_file(tmp_path, {"clientConnection": {"kubeconfig": "/in-file"}})
    assert likely_server({"config": path, "kubeconfig": "/k"}) == NamedServer("/in-file", "", "")


@pytest.mark.parametrize(
    "content",
    [
        {},
        [],
        "{",
        "a: [",
        {"clientConnection": None},
        {"clientConnection": {"kubeconfig": 3}},
        {"clientConnection": {"kubeconfig": "/k"}, "delayCacheUntilActive": True},
    ],
)
def test_a_file_that_names_no_server_or_wants_no_lists_yet_is_left_to_who_reads_it(
    tmp_path: Path, content: object
) -> None:
    assert likely_server({"config": _config_file(tmp_path, content)}) is None


@pytest.mark.parametrize("given", [{}, {"kubeconfig": "/k", "write-config-to": "/f"}, {"config": "/missing"}])
def test_without_a_named_server_nothing_is_asked(given: dict[str, Any]) -> None:
    assert likely_server(given) is None


def _node(name: str) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": name}}


def test_a_kubeconfig_that_cannot_be_used_is_left_to_who_reads_it(tmp_path: Path) -> None:
    async def run() -> None:
        async with ask_ahead(NamedServer(str(tmp_path / "missing"), "", "")) as ahead:
            assert ahead is None

    asyncio.run(run())


@asynccontextmanager
async def _asked(server: ScriptedServer, folder: Path) -> AsyncIterator[ListsAhead]:
    path = folder / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": server.url}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    users = [{"name": "u", "user": {"token": "t"}}]
    content = {"clusters": [cluster], "contexts": [context], "users": users, "current-context": "c"}
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **content}))
    async with ask_ahead(NamedServer(str(path), "", "")) as ahead:
        assert ahead is not None
        yield ahead


@asynccontextmanager
async def _informed(ahead: ListsAhead) -> AsyncIterator[Informers]:
    async with (
        RestClient(ahead.target, qps=0) as client,
        scheduler_informers(client, "test", ahead=ahead.lists) as informers,
    ):
        await informers.wait_for_sync("test")
        yield informers


def _lists_of(server: ScriptedServer, plural: str) -> list[Mapping[str, str]]:
    """What was asked of each list, streamed or not, of a kind."""
    asked = [request.query for request in server.requests if request.path == f"/api/v1/{plural}"]
    return [query for query in asked if "watch" not in query or "sendInitialEvents" in query]


def test_informers_take_the_lists_and_watch_from_there(tmp_path: Path) -> None:
    async def run() -> None:
        async with ScriptedServer() as server:
            server.put(_node("a"))
            server.put({"kind": "Pod", "metadata": {"name": "p", "namespace": "default"}})
            async with _asked(server, tmp_path) as ahead:
                await asyncio.gather(*ahead.lists.values())
                server.put(_node("b"))
                async with _informed(ahead) as informers:
                    await until(lambda: informers.of(Node).lister.get_by_key("b"))
                    assert informers.of(Pod).lister.get_by_key("default/p") is not None
            assert [asked["resourceVersion"] for asked in _lists_of(server, "nodes")] == ["0"]
            unfinished = "status.phase!=Succeeded,status.phase!=Failed"
            assert [asked["fieldSelector"] for asked in _lists_of(server, "pods")] == [unfinished]

    asyncio.run(run())


def test_a_list_that_was_refused_is_asked_for_again_by_its_informer(tmp_path: Path) -> None:
    async def run() -> None:
        async with ScriptedServer() as server:
            server.put(_node("a"))
            server.fail_next("GET", "nodes", status=500)
            async with _asked(server, tmp_path) as ahead:
                await asyncio.wait(ahead.lists.values())
                async with _informed(ahead) as informers:
                    assert [node.name for node in informers.of(Node).lister] == ["a"]
            assert len(_lists_of(server, "nodes")) == 2

    asyncio.run(run())


def test_a_version_that_the_server_forgot_meanwhile_is_listed_anew(tmp_path: Path) -> None:
    async def run() -> None:
        async with ScriptedServer() as server:
            server.put(_node("a"))
            async with _asked(server, tmp_path) as ahead:
                await asyncio.wait(ahead.lists.values())
                server.put(_node("b"))
                server.forget_history()
                async with _informed(ahead) as informers:
                    await until(lambda: informers.of(Node).lister.get_by_key("b"))

    asyncio.run(run())


def test_a_list_that_never_comes_holds_nobody_up_at_the_end(tmp_path: Path) -> None:
    async def run() -> None:
        async with ScriptedServer() as server:
            held = server.hold_next("GET", "pods")
            async with _asked(server, tmp_path) as ahead:
                await asyncio.wait([ahead.lists[Node]])
            assert ahead.lists[Pod].cancelled()
            held.release()

    asyncio.run(run())
