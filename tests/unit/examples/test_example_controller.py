"""The controller in fifty lines, against the playground as its kubeconfig names it."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from example_plugins import EXAMPLES

import kubesched.k8s.client as kube
from harness.scripted_server import ScriptedServer, until
from kubesched.playground.apiserver.server import ServerSettings
from kubesched.playground.playground import Playground, PlaygroundSettings

FILE = EXAMPLES / "controller" / "greetings.py"
GUIDE = EXAMPLES.parent / "docs" / "guides" / "write-a-controller.md"


def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("greetings", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Team:
    """A namespace and its greeting, at a server."""

    def __init__(self, client: kube.RestClient) -> None:
        self._client = client

    async def make(self) -> None:
        body = b'{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"team-a"}}'
        await self._client.request("POST", "/api/v1/namespaces", body=body)

    async def label(self, greeting: str | None) -> None:
        body = msgspec.json.encode({"metadata": {"labels": {"greeting": greeting}}})
        await self._client.request("PATCH", "/api/v1/namespaces/team-a", body=body, content_type=kube.MERGE_PATCH)

    async def forget(self) -> None:
        await self._client.request("DELETE", "/api/v1/namespaces/team-a/configmaps/greeting")

    async def says(self) -> Any:
        try:
            found = await self._client.request("GET", "/api/v1/namespaces/team-a/configmaps/greeting")
        except kube.ApiError as problem:
            return problem.status
        return msgspec.json.decode(found)["data"]

    async def comes_to_say(self, expected: Any) -> None:
        async with asyncio.timeout(30):
            while await self.says() != expected:
                await asyncio.sleep(0.02)


async def live(team: Team) -> None:
    """All that can happen to it."""
    await team.make()
    await team.label("hello")
    await team.comes_to_say({"text": "hello"})
    await team.label("good-morning")
    await team.comes_to_say({"text": "good-morning"})
    await team.forget()
    await team.comes_to_say({"text": "good-morning"})
    await team.label(None)
    await team.comes_to_say(404)


def with_playground(kubeconfig: Path, story: Callable[[kube.RestClient], Awaitable[None]]) -> None:
    async def run() -> None:
        settings = PlaygroundSettings(ServerSettings(), kubeconfig, nodes=[])
        async with Playground(settings), kube.RestClient(kube.load_target(kubeconfig)) as client:
            await story(client)

    asyncio.run(run())


def test_it_is_fifty_lines() -> None:
    assert len([line for line in FILE.read_text().splitlines() if line.strip()]) == 50


def test_it_keeps_every_namespace_as_its_label_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    module = example()

    async def story(client: kube.RestClient) -> None:
        monkeypatch.setattr("sys.argv", ["greetings.py", str(kubeconfig)])
        controller = asyncio.create_task(module.main())
        try:
            await live(Team(client))
            assert not controller.done()
        finally:
            controller.cancel()
            with pytest.raises(asyncio.CancelledError):
                await controller

    with_playground(kubeconfig, story)


def test_what_happened_while_it_was_away_is_made_good_when_it_starts(tmp_path: Path) -> None:
    module = example()

    async def story(client: kube.RestClient) -> None:
        team = Team(client)
        await team.make()
        await team.label("hello")
        first = asyncio.create_task(module.Greetings(client).run())
        await team.comes_to_say({"text": "hello"})
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await team.forget()
        await team.label("again")
        second = asyncio.create_task(module.Greetings(client).run())
        await team.comes_to_say({"text": "again"})
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)

    with_playground(tmp_path / "kubeconfig", story)


def test_a_write_that_fails_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    module = example()

    async def run() -> None:
        async with ScriptedServer() as server:
            server.put({"kind": "Namespace", "metadata": {"name": "team-a", "labels": {"greeting": "hello"}}})
            server.fail_next("PATCH", "configmaps", status=403, times=3)
            async with kube.RestClient(kube.ServerTarget(url=server.url)) as client:
                controller = asyncio.create_task(module.Greetings(client).run())
                await until(lambda: len(server.asked("PATCH", "configmaps")) > 3)
                controller.cancel()
                await asyncio.gather(controller, return_exceptions=True)

    asyncio.run(run())
    assert sum("again in" in line for line in caplog.messages) >= 3


def test_the_guide_shows_the_file_as_it_is() -> None:
    assert FILE.read_text().strip() in GUIDE.read_text()


def test_the_library_has_what_it_says() -> None:
    assert {name for name in kube.__all__ if not hasattr(kube, name)} == set()
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        getattr(kube, "nonsense")  # noqa: B009
