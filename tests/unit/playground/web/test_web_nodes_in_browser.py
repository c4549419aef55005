"""Nodes on the page: every resource as a bar, marks at every zoom, and which nodes are shown in which order."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from browser_stories import small_cluster, tell
from shown_cluster import ShownCluster, node, pod
from test_web_devices import claim, device_slice

from harness.headless_browser import NOTICE, OpenPage, has_browser

pytestmark = pytest.mark.skipif(not has_browser(), reason=NOTICE)

SHOWN = "[...document.querySelectorAll('.tile')].map((e) => e.dataset.node)"


async def _type(page: OpenPage, field: str, text: str) -> None:
    await page.evaluate(
        f"(() => {{ const e = document.querySelector('#{field}'); e.value = {json.dumps(text)};"
        " e.dispatchEvent(new Event('input', {bubbles: true})); e.dispatchEvent(new Event('change')); })()"
    )


def test_extended_resources_storage_and_devices_have_bars(tmp_path: Path) -> None:
    cluster = small_cluster(2)
    cluster.put(node("gpu", amounts={"nvidia.com/gpu": "4", "ephemeral-storage": "10Gi"}))
    cluster.put(pod("train", "gpu", "Running", asks={"nvidia.com/gpu": "3", "ephemeral-storage": "5Gi"}))
    cluster.slices = [device_slice("gpu", "a", "b")]
    cluster.claims = [claim("c", ("gpu", "a"))]

    async def story(_cluster: ShownCluster, page: OpenPage) -> None:
        bars = "[...document.querySelectorAll('[data-node=\"{}\"] .bar small')].map((e) => e.textContent)"
        assert await page.evaluate(bars.format("gpu")) == [
            "cpu 13 %",
            "memory 13 %",
            "storage 50 %",
            "gpu 75 %",
            "gpu.example.com 50 %",
        ]
        assert await page.evaluate(bars.format("node-1")) == ["cpu 0 %", "memory 0 %"]
        totals = await page.evaluate("document.querySelector('#totals').textContent")
        assert "nvidia.com/gpu75 % 3 of 4" in totals
        await page.click("[data-pod='shop/train']")
        facts = await page.wait_for("document.querySelector('.facts').textContent")
        assert "nvidia.com/gpu 3" in facts
        await page.evaluate("location.hash = 'node=gpu'")
        await page.wait_for("document.querySelector('.facts').textContent.includes('1 of 2 allocated')")

    tell(story, tmp_path, cluster)


@pytest.mark.parametrize("n_nodes", [5, 30, 100, 400])
def test_marks_are_seen_at_every_zoom(tmp_path: Path, n_nodes: int) -> None:
    cluster = small_cluster(n_nodes)
    cluster.put(
        node("a-cordoned", unschedulable=True),
        node("a-tainted", taints=[{"key": "k", "effect": "NoSchedule"}]),
        node("a-not-ready", ready="False"),
        node("a-silent", ready="Unknown"),
        node("a-draining", unschedulable=True),
        pod("leaves", "a-draining", "Running", deletionTimestamp="2026-01-01T00:00:00Z"),
    )

    async def story(_cluster: ShownCluster, page: OpenPage) -> None:
        marks = await page.evaluate(
            "Object.fromEntries([...document.querySelectorAll('.tile .mark')]"
            ".filter((e) => e.textContent && e.offsetWidth).map((e) => [e.parentElement.dataset.node, e.textContent]))"
        )
        words = {"a-cordoned": "cordoned", "a-tainted": "tainted", "a-not-ready": "not ready", "a-silent": "silent"}
        words["a-draining"] = "draining"
        is_small = n_nodes >= 100
        assert marks == {name: word[0].upper() if is_small else word for name, word in words.items()}
        label = await page.evaluate("document.querySelector('[data-node=a-silent] .open').getAttribute('aria-label')")
        assert label.startswith("a-silent, silent:")

    tell(story, tmp_path, cluster)


def test_pods_of_a_node_that_fell_silent_are_not_shown_as_running(tmp_path: Path) -> None:
    async def story(cluster: ShownCluster, page: OpenPage) -> None:
        dots = "[...document.querySelectorAll('[data-node=node-0] .dots span')].map((e) => e.className)"
        assert await page.evaluate(dots) == ["running", "running"]
        cluster.put(node("node-0", zone="zone-0", ready="Unknown"))
        await page.wait_for(f"{dots}.every((name) => name === 'unknown')")
        assert "unknown2" in await page.evaluate("document.querySelector('#states').textContent")
        cluster.put(node("node-0", zone="zone-0"))
        await page.wait_for(f"{dots}.every((name) => name === 'running')")

    tell(story, tmp_path)


def test_nodes_are_searched_grouped_and_sorted(tmp_path: Path) -> None:
    async def story(_cluster: ShownCluster, page: OpenPage) -> None:
        assert await page.evaluate(SHOWN) == ["node-0", "node-2", "node-4", "node-1", "node-3", "node-5"]
        await _type(page, "node-group", "")
        assert await page.evaluate(SHOWN) == [f"node-{i}" for i in range(6)]
        await _type(page, "node-sort", "cpu")
        assert (await page.evaluate(SHOWN))[0] == "node-0", "it has all the pods"
        await _type(page, "node-search", "zone=zone-1 node-3")
        assert await page.evaluate(SHOWN) == ["node-3"]
        await _type(page, "node-search", "nothing like it")
        await page.wait_for("document.querySelector('#zones').textContent === 'No node is like that.'")

    tell(story, tmp_path)


def test_tiles_are_made_larger_and_smaller(tmp_path: Path) -> None:
    async def story(_cluster: ShownCluster, page: OpenPage) -> None:
        for zoom in ("large", "medium", "small"):
            await page.click("#zoom-out")
            await page.wait_for(f"document.querySelector('#zones').classList.contains('{zoom}')")
        assert await page.evaluate("document.querySelector('#zoom-out').disabled")

    tell(story, tmp_path)


def test_only_what_is_on_the_screen_is_in_the_page(tmp_path: Path) -> None:
    async def story(_cluster: ShownCluster, page: OpenPage) -> None:
        n = "document.querySelectorAll('.tile').length"
        assert await page.evaluate(n) < 3000
        await page.evaluate("scrollTo(0, document.body.scrollHeight)")
        await page.wait_for("document.querySelector('[data-node=\"node-4999\"]')")
        assert await page.evaluate(n) < 3000

    tell(story, tmp_path, small_cluster(5000))
