"""Stories told in a real browser, on the page of a whole playground."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from harness.headless_browser import OpenPage, open_page
from kubesched.playground.apiserver.server import ServerSettings
from kubesched.playground.hollow_nodes.fleet import NodeShape
from kubesched.playground.hollow_nodes.pod_plays import Delays
from kubesched.playground.playground import Playground, PlaygroundSettings


def a_pod(name: str, cpu: str) -> dict[str, Any]:
    container = {"name": "c", "image": "nginx", "resources": {"requests": {"cpu": cpu}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


def in_playground(
    tmp_path: Path, n_nodes: int, story: Callable[[Playground, OpenPage], Awaitable[None]], *, gates: str = ""
) -> None:
    settings = PlaygroundSettings(
        ServerSettings(),
        tmp_path / "kubeconfig",
        nodes=list(NodeShape().bodies(n_nodes)),
        delays=Delays(0.0, 0.0),
        has_server_process=False,
        feature_gates=(gates,) if gates else (),
    )

    async def run() -> None:
        async with Playground(settings) as playground:
            page = await playground.start_page()
            async with open_page(page.url, tmp_path / "browser") as browser:
                await browser.wait_for("document.querySelector('#link').textContent === 'live'")
                await story(playground, browser)
                assert browser.problems == []

    asyncio.run(run())
