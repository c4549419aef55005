"""Why a pod waits, seen on the nodes: colours by reason, scores on those that fit, and only those that could."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser_stories import small_cluster, tell
from shown_cluster import ShownCluster, node, pod

from harness.headless_browser import NOTICE, OpenPage, has_browser

pytestmark = pytest.mark.skipif(not has_browser(), reason=NOTICE)

VERDICTS = (
    "Object.fromEntries([...document.querySelectorAll('.tile')].map((e) => [e.dataset.node, e.dataset.verdict ?? '']))"
)


def _mixed(n_nodes: int) -> ShownCluster:
    """Nodes of which only `large` can take `big`."""
    cluster = small_cluster(n_nodes)
    cluster.put(node("large", zone="zone-0", amounts={"cpu": "32"}))
    cluster.put(node("closed", zone="zone-0", amounts={"cpu": "32"}, unschedulable=True))
    return cluster


@pytest.mark.parametrize("n_nodes", [4, 40, 120, 400])
def test_a_click_on_a_pending_pod_colours_every_node_by_its_reason(tmp_path: Path, n_nodes: int) -> None:
    async def story(_cluster: ShownCluster, page: OpenPage) -> None:
        await page.click("#queued [data-pod='shop/big']")
        await page.wait_for("document.querySelector('.coloured [data-node=large]').dataset.verdict === 'best'")
        found = await page.evaluate(VERDICTS)
        assert found["node-1"] == found["node-2"] != found["closed"]
        assert {found["node-1"], found["closed"]} == {"reason-0", "reason-1"}
        shown = await page.evaluate("document.querySelector('[data-node=large] .verdict').textContent")
        assert any(letter.isdigit() for letter in shown), "the score"
        number = await page.evaluate("document.querySelector('[data-node=node-1] .verdict').textContent")
        assert number[0] in "12"
        label = await page.evaluate("document.querySelector('[data-node=closed] .open').getAttribute('aria-label')")
        assert "It cannot take the pod" in label
        await page.press("Escape")
        await page.wait_for("!document.querySelector('.coloured')")
        assert set((await page.evaluate(VERDICTS)).values()) == {""}

    tell(story, tmp_path, _mixed(n_nodes))


def test_only_the_nodes_that_could_take_the_pod_are_shown(tmp_path: Path) -> None:
    async def story(_cluster: ShownCluster, page: OpenPage) -> None:
        await page.click("#queued [data-pod='shop/big']")
        await page.click(".verdict-chip")
        assert list(await page.evaluate(VERDICTS)) == ["large"]
        await page.click(".verdict-chip")
        assert len(await page.evaluate(VERDICTS)) == 6

    tell(story, tmp_path, _mixed(4))


def test_why_says_the_cause_what_helps_and_the_numbers(tmp_path: Path) -> None:
    async def story(_cluster: ShownCluster, page: OpenPage) -> None:
        await page.click("#queued [data-pod='shop/big']")
        await page.wait_for("document.querySelector('#explanation .cause')")
        assert await page.evaluate("document.querySelectorAll('#explanation .changes li').length") > 0
        table = await page.evaluate("document.querySelector('#explanation table').innerText")
        assert table.splitlines()[-1].split("\t") == ["node-0", "9", "3", "4", "6"]
        assert "cpu" in await page.evaluate("document.querySelector('#explanation .group h5').textContent")
        wide = (
            "[...document.querySelectorAll('#detail table')].every((e) => e.scrollWidth <= e.parentElement.clientWidth)"
        )
        assert await page.evaluate(wide), "tables fit"

    tell(story, tmp_path)


def test_the_timeline_has_every_attempt_and_the_scores_of_then(tmp_path: Path) -> None:
    cluster = small_cluster()
    cluster.put(pod("big", "node-1", "Running"))
    failed = {"pod": "shop/big", "uid": "big", "scheduler": "default-scheduler", "evaluated": 6, "feasible": 0}
    chosen = failed | {"feasible": 1, "node": "node-1"}
    scores = [{"node": "node-1", "total": 123, "plugins": {"NodeResourcesFit": 123}}]
    cluster.decisions = [
        chosen | {"number": 3, "at": 1_767_225_690.0, "scores": scores},
        failed
        | {
            "number": 2,
            "at": 1_767_225_660.0,
            "message": "0/6 nodes are available",
            "preemption": {"node": "node-1", "victims": ["shop/low"]},
        },
        failed | {"number": 1, "at": 1_767_225_630.0, "message": "0/6 nodes are available"},
    ]

    async def story(_cluster: ShownCluster, page: OpenPage) -> None:
        await page.evaluate("location.hash = 'pod=shop/big'")
        told = "[...document.querySelectorAll('.timeline b')].map((e) => e.textContent)"
        await page.wait_for(f"{told}.includes('Node chosen')")
        entries = [name for name in await page.evaluate(told) if name in ("No node fits", "Preemption", "Node chosen")]
        assert entries == ["No node fits", "No node fits", "Preemption", "Node chosen"]
        text = await page.evaluate("document.querySelector('.timeline').textContent")
        assert "nominated to node-1; evicts shop/low" in text
        assert "score 123" in text
        then = await page.evaluate("document.querySelector('#detail .why table').innerText")
        assert "123" in then
        await page.press("Escape")
        await page.click("#decisions-tab")
        await page.wait_for("document.querySelectorAll('#decided li').length === 3")
        assert "score 123" in await page.evaluate("document.querySelector('#decided li').textContent")

    tell(story, tmp_path, cluster)
