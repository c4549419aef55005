"""The page in a real browser: Debian's `chromium`, where it is installed.

Skipped with a notice where it is not.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from browser_stories import small_cluster, tab_to, tell
from shown_cluster import ShownCluster, node, pod, serving

from harness.headless_browser import NOTICE, OpenPage, has_browser, open_page

pytestmark = pytest.mark.skipif(not has_browser(), reason=NOTICE)


def test_the_page_shows_the_cluster_and_follows_it(tmp_path: Path) -> None:
    async def story(cluster: ShownCluster, page: OpenPage) -> None:
        assert await page.evaluate("[...document.querySelectorAll('#zones h3')].map((e) => e.firstChild.data)") == [
            "zone-0",
            "zone-1",
        ]
        label = "document.querySelector('[data-node=node-0] button').getAttribute('aria-label')"
        assert await page.evaluate(label) == ("node-0: cpu 1 of 4 (25 %), memory 2 GiB of 8 GiB (25 %), 2 of 110 pods")
        assert await page.evaluate("location.hash") == "", "the key does not stay in the address"
        cluster.put(pod("big", "node-0"), node("node-9", zone="zone-2", unschedulable=True))
        cluster.queue = {}
        await page.wait_for(f"{label}.includes('3 of 110 pods')")
        await page.wait_for("document.querySelector('[data-node=node-9][data-mark=cordoned]')")
        await page.wait_for("document.querySelector('#queued').textContent === 'No pod waits here.'")

    tell(story, tmp_path)


def test_a_click_on_a_pod_shows_why_it_waits_and_what_happened(tmp_path: Path) -> None:
    async def story(_cluster: ShownCluster, page: OpenPage) -> None:
        await page.click("#queued [data-pod='shop/big']")
        why = await page.wait_for("document.querySelector('#explanation .cause').textContent")
        assert "cpu" in why
        await page.wait_for("document.querySelectorAll('.timeline li').length === 2")
        told = await page.evaluate("[...document.querySelectorAll('.timeline b')].map((e) => e.textContent)")
        assert told == ["Created", "FailedScheduling"], "and what the cluster says is never read as HTML"
        await page.press("Escape")
        await page.click(".tile [data-pod='shop/web-1']")
        await page.wait_for("document.querySelector('#detail-title').textContent.includes('web-1')")

    tell(story, tmp_path)


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

    tell(story, tmp_path)


def test_the_page_can_be_used_with_the_keyboard_alone(tmp_path: Path) -> None:
    async def story(_cluster: ShownCluster, page: OpenPage) -> None:
        await tab_to(page, "closest('.tile')")
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
        assert await page.evaluate("document.activeElement.id") == "queue-tab"

    tell(story, tmp_path)


def test_a_thousand_nodes_are_drawn_small_and_soon(tmp_path: Path) -> None:
    cluster = small_cluster(1000)
    cluster.put(*(pod(f"p-{i}", f"node-{i % 1000}", "Running") for i in range(5000)))

    async def story(cluster: ShownCluster, page: OpenPage) -> None:
        assert await page.evaluate("document.querySelector('#zones').className") == "zones small"
        height = await page.evaluate("document.querySelector('#zones').getBoundingClientRect().height")
        assert height < 1200, "little more than one screen"
        cluster.put(pod("p-7", "node-7", "Failed"))
        await page.wait_for("document.querySelector('#states').textContent.includes('failed1')")

    tell(story, tmp_path, cluster)


def test_without_the_key_the_page_says_what_to_do(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving(small_cluster()) as page, open_page(page.address, tmp_path / "browser") as browser:
            await browser.wait_for("document.querySelector('#link').textContent.startsWith('refused')")
            assert await browser.evaluate("document.querySelectorAll('.tile').length") == 0

    asyncio.run(run())
