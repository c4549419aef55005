"""The page of a whole playground, in a real browser: what a click on a pod tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


_GROUP = {
    "apiVersion": "scheduling.k8s.io/v1alpha2",
    "kind": "PodGroup",
    "metadata": {"name": "gang", "namespace": "default"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
}


def _member(name: str) -> dict[str, Any]:
    pod = a_pod(name, "5")
    return {**pod, "spec": {**pod["spec"], "schedulingGroup": {"podGroupName": "gang"}}}


def test_a_gang_that_waits_is_shown_with_its_members_and_why(tmp_path: Path) -> None:
    async def story(playground: Playground, page: OpenPage) -> None:
        assert await page.evaluate("document.querySelector('#groups-tab').hidden")
        await playground.put_in([_GROUP, _member("one"), _member("two")])
        await page.wait_for("!document.querySelector('#groups-tab').hidden")
        await page.click("#groups-tab")
        row = "document.querySelector('#groups [data-group]').textContent"
        await page.wait_for(f"{row}.includes('1 of the 3 pods that it needs does not exist')")
        await playground.put_in([_member("three")])
        await page.wait_for("document.querySelector('#groups .state.failed')")
        assert "0 of 3 placed" in await page.evaluate(row)
        assert (await page.evaluate(row)).endswith("does not fit as a whole")
        await page.click("#groups [data-group='default/gang']")
        why = await page.wait_for("document.querySelector('#detail .cause').textContent")
        assert why.startswith("Waits: 2 of the 3 pods that it needs find a node; ")
        assert await page.evaluate("document.querySelectorAll('#detail .list [data-pod]').length") == 3
        helps = await page.evaluate("document.querySelector('#detail .changes').textContent")
        assert "add a node like node-0" in helps
        await page.click("#detail [data-pod='default/two']")
        await page.click("#detail [data-group='default/gang']")
        await page.wait_for("document.querySelector('#detail code').textContent.endsWith('default/podgroup/gang')")

    in_playground(tmp_path, 2, story, gates="GenericWorkload=true,GangScheduling=true")


def test_a_gang_that_has_evicted_somebody_waits_for_them_to_leave(tmp_path: Path) -> None:
    important = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 9,
    }
    low = a_pod("low", "8")
    low["metadata"]["finalizers"] = ["example.com/stays"]
    gang = {**_GROUP, "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, "priorityClassName": "high"}}
    members = [_member("one"), _member("two")]
    for one in members:
        one["spec"]["priorityClassName"] = "high"
        one["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "4"

    async def story(playground: Playground, page: OpenPage) -> None:
        await playground.put_in([low])
        await page.wait_for("document.querySelector('.tile .running[data-pod=\\'default/low\\']')")
        await playground.put_in([important, gang, *members])
        await page.wait_for("!document.querySelector('#groups-tab').hidden")
        await page.click("#groups-tab")
        row = "document.querySelector('#groups [data-group]').textContent"
        await page.wait_for(f"{row}.includes('waits for evicted pods to leave: 2 of 2 are nominated')")
        await page.click("#groups [data-group='default/gang']")
        await page.wait_for("document.querySelector('#detail').textContent.includes('Nominated2 of 2')")

    gates = "GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true"
    in_playground(tmp_path, 1, story, gates=gates)


def test_without_the_gate_the_page_says_that_groups_are_not_looked_at(tmp_path: Path) -> None:
    async def story(playground: Playground, page: OpenPage) -> None:
        await playground.put_in([_GROUP, _member("one")])
        await page.evaluate("location.hash = 'group=default/gang'")
        said = await page.wait_for("document.querySelector('#detail .why .note')?.textContent")
        assert said.startswith("The scheduler runs without the feature gate GenericWorkload")

    in_playground(tmp_path, 2, story)


def test_a_cluster_without_anything_says_so(tmp_path: Path) -> None:
    async def story(_playground: Playground, page: OpenPage) -> None:
        await page.wait_for("document.querySelector('#zones').textContent === 'There are no nodes yet.'")
        hint = await page.wait_for("document.querySelector('#first pre').textContent")
        assert "kubectl create deployment" in hint
        await page.wait_for("document.querySelector('#queued').textContent === 'No pod waits here.'")

    in_playground(tmp_path, 0, story)
