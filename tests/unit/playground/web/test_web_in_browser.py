"""The page in a real browser: Debian's `chromium`, where it is installed.

Skipped with a notice where it is not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from headless_browser import NOTICE, OpenPage, has_browser, open_page
from shown_cluster import ShownCluster, node, pod, serving

from kubesched.playground.web.sources import RecordedPod

pytestmark = pytest.mark.skipif(not has_browser(), reason=NOTICE)

Story = Callable[[ShownCluster, OpenPage], Awaitable[Any]]


def _cluster(n_nodes: int = 6) -> ShownCluster:
    cluster = ShownCluster()
    cluster.put(*(node(f"node-{i}", zone=f"zone-{i % 2}") for i in range(n_nodes)))
    cluster.put(pod("web-1", "node-0", "Running"), pod("web-2", "node-0", "Running"), pod("big"))
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


def _run(story: Story, tmp_path: Path, cluster: ShownCluster | None = None) -> None:
    """Tells the story in a browser; nothing may go wrong in the page meanwhile."""
    shown = cluster or _cluster()

    async def run() -> None:
        async with serving(shown) as page, open_page(page.url, tmp_path / "browser") as browser:
            await browser.wait_for(f"document.querySelectorAll('.tile').length === {len(shown.nodes)}")
            await story(shown, browser)
            assert browser.problems == []

    asyncio.run(run())


def test_the_page_shows_the_cluster_and_follows_it(tmp_path: Path) -> None:
    async def story(cluster: ShownCluster, page: OpenPage) -> None:
        assert await page.evaluate("[...document.querySelectorAll('.zone h3')].map((e) => e.firstChild.data)") == [
            "zone-0",
            "zone-1",
        ]
        label = "document.querySelector('[data-node=node-0] button').getAttribute('aria-label')"
        assert await page.evaluate(label) == ("node-0: cpu 1 of 4 (25 %), memory 2 GiB of 8 GiB (25 %), 2 of 110 pods")
        assert await page.evaluate("location.hash") == "", "the key does not stay in the address"
        cluster.put(pod("big", "node-0"), node("node-9", zone="zone-2", unschedulable=True))
        cluster.queue = {}
        await page.wait_for(f"{label}.includes('3 of 110 pods')")
        await page.wait_for("document.querySelector('[data-node=node-9].closed')")
        await page.wait_for("document.querySelector('#queued').textContent === 'No pod waits here.'")

    _run(story, tmp_path)


def test_a_click_on_a_pod_shows_why_it_waits_and_what_happened(tmp_path: Path) -> None:
    async def story(_cluster: ShownCluster, page: OpenPage) -> None:
        await page.click("#queued [data-pod='shop/big']")
        why = await page.wait_for("document.querySelector('#explanation pre').textContent")
        assert why == "Pod shop/big does not fit on any of 6 nodes."
        await page.wait_for("document.querySelectorAll('.timeline li').length === 2")
        told = await page.evaluate("[...document.querySelectorAll('.timeline b')].map((e) => e.textContent)")
        assert told == ["Created", "FailedScheduling"], "and what the cluster says is never read as HTML"
        await page.click(".tile [data-pod='shop/web-1']")
        await page.wait_for("document.querySelector('#detail-title').textContent.includes('web-1')")

    _run(story, tmp_path)


def test_a_click_meets_its_row_although_the_list_changes_meanwhile(tmp_path: Path) -> None:
    async def story(cluster: ShownCluster, page: OpenPage) -> None:
        at = await page.middle_of("#queued [data-pod='shop/big']")
        await page.mouse("mousePressed", at)
        (waiting,) = cluster.queue["unschedulable"]
        cluster.put(pod("later"))
        cluster.queue = {"unschedulable": [waiting | {"attempts": 9}, waiting | {"pod": "shop/later"}]}
        await page.wait_for("document.querySelector('#queued').textContent.includes('9 attempts')")
        await page.mouse("mouseReleased", at)
        await page.wait_for("location.hash === '#pod=shop/big'")

    _run(story, tmp_path)


def test_the_page_can_be_used_with_the_keyboard_alone(tmp_path: Path) -> None:
    async def story(_cluster: ShownCluster, page: OpenPage) -> None:
        await page.press("Tab")
        await page.press("Tab")
        focused = "document.activeElement.closest('.tile')?.dataset.node"
        assert await page.evaluate(focused) == "node-0", "one tile is in the way of Tab"
        await page.press("ArrowRight")
        assert await page.evaluate(focused) == "node-2"
        await page.press("ArrowDown")
        assert await page.evaluate(focused) == "node-3"
        await page.press("Enter")
        await page.wait_for("document.activeElement.id === 'detail-title'")
        await page.press("Escape")
        await page.wait_for("document.querySelector('#detail').hidden")
        assert await page.evaluate(focused) == "node-3", "where one came from"
        await page.press("Tab")
        assert await page.evaluate("document.activeElement.closest('#places') !== null")

    _run(story, tmp_path)


def test_a_thousand_nodes_are_drawn_small_and_soon(tmp_path: Path) -> None:
    cluster = _cluster(1000)
    cluster.put(*(pod(f"p-{i}", f"node-{i % 1000}", "Running") for i in range(5000)))

    async def story(cluster: ShownCluster, page: OpenPage) -> None:
        assert await page.evaluate("document.querySelector('main').className") == "small"
        height = await page.evaluate("document.querySelector('.zones').getBoundingClientRect().height")
        assert height < 1200, "little more than one screen"
        cluster.put(pod("p-7", "node-7", "Failed"))
        await page.wait_for("document.querySelector('#states').textContent.includes('failed1')")

    _run(story, tmp_path, cluster)


def test_without_the_key_the_page_says_what_to_do(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(_cluster()) as page, open_page(page.address, tmp_path / "browser") as browser:
            await browser.wait_for("document.querySelector('#link').textContent.startsWith('refused')")
            assert await browser.evaluate("document.querySelectorAll('.tile').length") == 0

    asyncio.run(run())
