"""The page of a whole playground, in a real browser: what a click on a pod tells."""

from __future__ import annotations

from pathlib import Path

import pytest
from playground_stories import a_pod, in_playground

from harness.headless_browser import NOTICE, OpenPage, has_browser
from kubesched.playground.playground import Playground

pytestmark = pytest.mark.skipif(not has_browser(), reason=NOTICE)


def test_a_pod_that_has_a_node_is_explained_and_tells_its_story(tmp_path: Path) -> None:
    async def story(playground: Playground, page: OpenPage) -> None:
        await playground.put_in([a_pod("web", "1"), a_pod("big", "100")])
        await page.click(".tile .running[data-pod='default/web']")
        await page.wait_for("document.querySelectorAll('#explanation tbody tr').length === 2")
        told = "[...document.querySelectorAll('.timeline b')].map((e) => e.textContent)"
        await page.wait_for(f"{told}.includes('Scheduled')")
        await page.press("Escape")
        await page.click("#queued [data-pod='default/big']")
        await page.wait_for("document.querySelectorAll('.tile[data-verdict=reason-0]').length === 2")

    in_playground(tmp_path, 2, story)


def test_a_cluster_without_anything_says_so(tmp_path: Path) -> None:
    async def story(_playground: Playground, page: OpenPage) -> None:
        await page.wait_for("document.querySelector('#zones').textContent === 'There are no nodes yet.'")
        hint = await page.wait_for("document.querySelector('#first pre').textContent")
        assert "kubectl create deployment" in hint
        await page.wait_for("document.querySelector('#queued').textContent === 'No pod waits here.'")

    in_playground(tmp_path, 0, story)
