"""Stories told in a real browser, on a page whose objects the test holds in its hands."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from shown_cluster import ShownCluster, node, pod, serving

from harness.headless_browser import OpenPage, open_page
from kubesched.playground.web.sources import RecordedPod

Story = Callable[[ShownCluster, OpenPage], Awaitable[Any]]


def small_cluster(n_nodes: int = 6) -> ShownCluster:
    cluster = ShownCluster()
    cluster.put(*(node(f"node-{i}", zone=f"zone-{i % 2}") for i in range(n_nodes)))
    cluster.put(pod("web-1", "node-0", "Running"), pod("web-2", "node-0", "Running"), pod("big", asks={"cpu": "9"}))
    cluster.queue = {
        "unschedulable": [
            {"pod": "shop/big", "attempts": 2, "waitingSeconds": 3, "unschedulablePlugins": ["NodeResourcesFit"]}
        ]
    }
    event = {
        "type": "Warning",
        "reason": "FailedScheduling",
        "message": "0/6 nodes are available <b>here</b>",
        "lastTimestamp": "2026-01-01T00:00:05Z",
    }
    cluster.recorded = RecordedPod({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}}, [event])
    return cluster


def tell(story: Story, tmp_path: Path, cluster: ShownCluster | None = None) -> None:
    """Tells the story in a browser; nothing may go wrong in the page meanwhile."""
    shown = cluster or small_cluster()

    async def run() -> None:
        async with serving(shown) as page, open_page(page.url, tmp_path / "browser") as browser:
            await browser.wait_for(
                f"document.querySelector('#totals dd')?.textContent.startsWith('{len(shown.nodes):,} ')"
            )
            await story(shown, browser)
            assert browser.problems == []

    asyncio.run(run())


async def tab_to(page: OpenPage, condition: str) -> None:
    """Presses Tab until what has the focus is such."""
    for _ in range(40):
        await page.press("Tab")
        if await page.evaluate(f"Boolean(document.activeElement.{condition})"):
            return
    raise AssertionError(f"Tab never came to {condition}")
