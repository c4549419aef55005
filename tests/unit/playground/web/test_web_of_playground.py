"""The page of a whole playground, in a real browser: what a click on a pod tells."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from harness.headless_browser import NOTICE, OpenPage, has_browser, open_page
from kubesched.playground.apiserver.server import ServerSettings
from kubesched.playground.hollow_nodes.node_bodies import NodeShape
from kubesched.playground.hollow_nodes.pod_plays import Delays
from kubesched.playground.playground import Playground, PlaygroundSettings

pytestmark = pytest.mark.skipif(not has_browser(), reason=NOTICE)


def _pod(name: str, cpu: str) -> dict[str, object]:
    container = {"name": "c", "image": "nginx", "resources": {"requests": {"cpu": cpu}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


def _tell(tmp_path: Path, n_nodes: int, story: Callable[[Playground, OpenPage], Awaitable[None]]) -> None:
    settings = PlaygroundSettings(
        ServerSettings(),
        tmp_path / "kubeconfig",
        nodes=list(NodeShape().bodies(n_nodes)),
        delays=Delays(0.0, 0.0),
        has_server_process=False,
    )

    async def run() -> None:
        async with Playground(settings) as playground:
            page = await playground.start_page()
            async with open_page(page.url, tmp_path / "browser") as browser:
                await story(playground, browser)
                assert browser.problems == []

    asyncio.run(run())


def test_a_pod_that_has_a_node_is_explained_and_tells_its_story(tmp_path: Path) -> None:
    async def story(playground: Playground, page: OpenPage) -> None:
        await playground.put_in([_pod("web", "1"), _pod("big", "100")])
        await page.click(".tile .running[data-pod='default/web']")
        why = await page.wait_for("document.querySelector('#explanation pre').textContent")
        assert why.startswith("It is on node node-")
        assert "fits on 2 of 2 nodes" in why
        told = "[...document.querySelectorAll('.timeline b')].map((e) => e.textContent)"
        await page.wait_for(f"{told}.includes('Scheduled')")
        await page.press("Escape")
        await page.click("#queued [data-pod='default/big']")
        await page.wait_for("document.querySelector('#explanation pre')?.textContent.includes('needs 100 cpu')")

    _tell(tmp_path, 2, story)


def test_a_cluster_without_anything_says_so(tmp_path: Path) -> None:
    async def story(_playground: Playground, page: OpenPage) -> None:
        await page.wait_for("document.querySelector('#zones').textContent === 'There are no nodes yet.'")
        await page.wait_for("document.querySelector('#pods').textContent === 'There are no pods yet.'")
        await page.wait_for("document.querySelector('#queued').textContent === 'No pod waits here.'")

    _tell(tmp_path, 0, story)
