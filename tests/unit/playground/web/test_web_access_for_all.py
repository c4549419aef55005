"""The page for everybody: axe-core finds nothing serious in any state, light, dark or on a phone."""

from __future__ import annotations

import asyncio
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from browser_stories import small_cluster
from playground_stories import in_playground
from shown_cluster import ShownCluster, node, serving

from harness.headless_browser import NOTICE, OpenPage, has_browser, open_page
from kubesched.playground.playground import Playground

pytestmark = pytest.mark.skipif(not has_browser(), reason=NOTICE)

GRAVE = ("serious", "critical")
STATES = {
    "the cluster": "true",
    "a pending pod": "location.hash = 'pod=shop/big'",
    "a bound pod": "location.hash = 'pod=shop/web-1'",
    "a node": "location.hash = 'node=node-0'",
    "decisions": "document.querySelector('#decisions-tab').click() ?? true",
}
PHONE = (390, 844)


def _cluster() -> ShownCluster:
    cluster = small_cluster()
    cluster.put(
        node("silent", ready="Unknown"), node("closed", unschedulable=True), node("large", amounts={"cpu": "32"})
    )
    cluster.put(node("gpu", amounts={"nvidia.com/gpu": "2"}, taints=[{"key": "k", "effect": "NoSchedule"}]))
    return cluster


async def _violations(page: OpenPage) -> list[str]:
    """Only colours and names of what is seen; the picture must stand still."""
    await page.evaluate("new Promise((resolve) => setTimeout(resolve, 600))")
    found: list[dict[str, Any]] = await page.evaluate("axe.run().then((found) => found.violations)")
    return [
        f"{one['impact']} {one['id']}: {node['html'][:120]} {node['failureSummary'][:200]}"
        for one in found
        if one["impact"] in GRAVE
        for node in one["nodes"]
    ]


@pytest.mark.parametrize(
    ("size", "dark"),
    [
        pytest.param((1440, 900), False, id="light"),
        pytest.param((1440, 900), True, id="dark"),
        pytest.param(PHONE, False, id="on a phone"),
    ],
)
def test_axe_finds_nothing_serious(tmp_path: Path, size: tuple[int, int], dark: bool) -> None:
    axe = (resources.files("axe_core_python") / "axe.min.js").read_text()

    async def run() -> dict[str, list[str]]:
        found = {}
        async with (
            serving(_cluster()) as page,
            open_page(page.url, tmp_path / "browser", size=size, dark=dark) as browser,
        ):
            await browser.wait_for("document.querySelector('.tile')")
            await browser.evaluate(f"{axe}; true")
            for state, script in STATES.items():
                await browser.evaluate(script)
                found[state] = await _violations(browser)
                await browser.evaluate("location.hash = ''")
        return found

    assert asyncio.run(run()) == {state: [] for state in STATES}


def test_axe_finds_nothing_serious_where_things_are_changed(tmp_path: Path) -> None:
    axe = (resources.files("axe_core_python") / "axe.min.js").read_text()
    found: dict[str, list[str]] = {}

    async def story(_playground: Playground, page: OpenPage) -> None:
        await page.evaluate(f"{axe}; true")
        for panel in ("whatif", "new", "scenarios", "edit"):
            await page.evaluate(f"location.hash = '{panel}={'v1|Node||node-0' if panel == 'edit' else ''}'")
            found[panel] = await _violations(page)

    in_playground(tmp_path, 2, story)
    assert found == {"whatif": [], "new": [], "scenarios": [], "edit": []}


def test_on_a_phone_nothing_is_wider_than_the_screen(tmp_path: Path) -> None:
    async def run() -> dict[str, bool]:
        found = {}
        async with serving(_cluster()) as page, open_page(page.url, tmp_path / "browser", size=PHONE) as browser:
            await browser.wait_for("document.querySelector('.tile')")
            for state, script in STATES.items():
                await browser.evaluate(script)
                await browser.evaluate("new Promise((resolve) => setTimeout(resolve, 300))")
                found[state] = await browser.evaluate(
                    "document.documentElement.scrollWidth > innerWidth ||"
                    " document.querySelector('#detail').scrollWidth > document.querySelector('#detail').clientWidth"
                )
                await browser.evaluate("location.hash = ''")
        return found

    assert asyncio.run(run()) == dict.fromkeys(STATES, False)


def test_no_foreign_host_is_asked(tmp_path: Path) -> None:
    async def run() -> tuple[str, set[str]]:
        async with serving(_cluster()) as page, open_page(page.url, tmp_path / "browser") as browser:
            await browser.wait_for("document.querySelector('.tile')")
            await browser.evaluate("location.hash = 'pod=shop/big'")
            await browser.wait_for("document.querySelector('#explanation .cause')")
            asked = "performance.getEntriesByType('resource').map((one) => new URL(one.name).origin)"
            return page.address, set(await browser.evaluate(asked))

    address, origins = asyncio.run(run())
    assert origins == {address}
