"""What the page of a playground can do: try a pod, create, change and delete objects, and load scenarios."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playground_stories import a_pod, in_playground

from harness.headless_browser import NOTICE, OpenPage, has_browser
from kubesched.k8s.model.core import Pod
from kubesched.playground.playground import Playground

pytestmark = pytest.mark.skipif(not has_browser(), reason=NOTICE)


async def _type(page: OpenPage, text: str) -> None:
    await page.wait_for("document.querySelector('#manifest')")
    await page.evaluate(
        f"(() => {{ const e = document.querySelector('#manifest'); e.value = {json.dumps(text)};"
        " e.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )


def test_a_pod_is_tried_without_being_created(tmp_path: Path) -> None:
    async def story(playground: Playground, page: OpenPage) -> None:
        await page.click("#actions [href='#whatif=']")
        await _type(page, json.dumps(a_pod("ghost", "1")))
        await page.click("#detail .main")
        await page.wait_for("document.querySelectorAll('.tile[data-verdict=best]').length > 0")
        await _type(page, json.dumps(a_pod("ghost", "1000")))
        await page.click("#detail .main")
        await page.wait_for("document.querySelectorAll('.tile[data-verdict=reason-0]').length === 2")
        assert await page.evaluate("document.querySelectorAll('#detail .changes li').length") > 0
        deployment = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {"template": {"metadata": {"labels": {"app": "web"}}, "spec": a_pod("x", "1")["spec"]}},
        }
        await _type(page, json.dumps(deployment))
        await page.click("#detail .main")
        await page.wait_for("document.querySelectorAll('.tile[data-verdict=best]').length > 0")
        assert dict(playground.controllers.view.of(Pod)) == {}, "nothing was created"

    in_playground(tmp_path, 2, story)


def test_an_object_is_created_changed_and_deleted(tmp_path: Path) -> None:
    async def story(playground: Playground, page: OpenPage) -> None:
        await page.click("#actions [href='#new=']")
        verdict = "document.querySelector('#verdict').textContent"
        await _type(page, json.dumps(a_pod("Not-Valid", "1")))
        await page.wait_for(f"{verdict}.includes('Invalid value')")
        await _type(page, "kind: [")
        await page.wait_for(f"{verdict}.includes('column')")
        twice = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: twice}\ndata: {a: b}\ndata: {a: c}\n"
        await _type(page, twice)
        await page.wait_for(f"{verdict}.includes('already set in map')")
        for odd in (
            "apiVersion: 1\nkind: Pod\nmetadata: {name: x}\n",
            '{"apiVersion": "v1", "kind": [], "metadata": []}',
        ):
            await _type(page, odd)
            await page.wait_for(f"document.querySelector('#verdict').className === 'problem' && {verdict}.length > 0")
        await _type(page, json.dumps(a_pod("x", "1") | {"metadata": {"name": "x", "namespace": "../../nodes"}}))
        await page.wait_for(f"{verdict}.includes('metadata.namespace')")
        await _type(page, json.dumps(a_pod("web", "1")))
        await page.wait_for(f"{verdict}.startsWith('Valid')")
        assert dict(playground.controllers.view.of(Pod)) == {}, "only tried"
        await page.click("#detail .main")
        await page.wait_for("document.querySelector('.tile [data-pod=\"default/web\"]')")
        await page.evaluate("location.hash = 'pod=default/web'")
        await page.click("#detail .buttons .plain")
        text = await page.wait_for("document.querySelector('#manifest').value")
        await _type(page, text.replace("name: web\n", "name: web\n  annotations: {colour: blue}\n", 1))
        await page.wait_for(f"{verdict}.startsWith('Valid')")
        await page.click("#detail .main")
        await page.wait_for(f"{verdict}.startsWith('changed')")
        assert playground.controllers.view.of(Pod)["default/web"].metadata.annotations == {"colour": "blue"}
        await page.evaluate("location.hash = 'pod=default/web'")
        remove = "[...document.querySelectorAll('#detail .plain')].find((e) => e.textContent.startsWith('Delete'))"
        await page.wait_for(remove)
        await page.evaluate(f"{remove}.click()")
        await page.wait_for(f"{remove}.textContent === 'Delete: sure?'")
        await page.evaluate(f"{remove}.click()")
        await page.wait_for("document.querySelector('.facts').textContent.includes('no longer there')")

    in_playground(tmp_path, 2, story)


def test_a_node_is_cordoned_and_opened_again(tmp_path: Path) -> None:
    async def story(_playground: Playground, page: OpenPage) -> None:
        name = await page.wait_for("document.querySelector('[data-node]')?.dataset.node")
        await page.evaluate(f"location.hash = 'node={name}'")
        cordon = "document.querySelector('#detail .buttons .plain')"
        for before, after in (("Cordon", "Uncordon"), ("Uncordon", "Cordon")):
            await page.wait_for(f"{cordon}?.textContent === '{before}'")
            await page.evaluate(f"{cordon}.click()")
            await page.wait_for(f"{cordon}.textContent === '{after}'")
            marked = "document.querySelector('.tile[data-mark=cordoned]')"
            await page.wait_for(marked if after == "Uncordon" else f"!{marked}")

    in_playground(tmp_path, 2, story)


@pytest.mark.parametrize(
    ("scenario", "seen"),
    [
        ("gpu-shortage", "document.querySelector('#queued [data-pod=\"gpu-shortage/training\"]')"),
        ("zone-spread", "document.querySelector('#queued [data-pod^=\"zone-spread/shop-\"]')"),
        ("preemption", "document.querySelector('.tile .running[data-pod=\"preemption/urgent\"]')"),
        ("volumes", "document.querySelectorAll('#queued [data-pod^=\"volumes/\"]').length === 2"),
        ("gang", "document.querySelector('#places').textContent.includes('gated4')"),
    ],
)
def test_a_scenario_shows_what_it_promises(tmp_path: Path, scenario: str, seen: str) -> None:
    async def story(_playground: Playground, page: OpenPage) -> None:
        await page.click("#actions [href='#scenarios=']")
        await page.wait_for("document.querySelectorAll('.scenario').length === 5")
        index = ["gpu-shortage", "zone-spread", "preemption", "volumes", "gang"].index(scenario)
        await page.click(f".scenario:nth-of-type({index + 1}) .main")
        await page.wait_for("document.querySelector('#detail [role=status]').textContent.includes('is loaded')")
        await page.press("Escape")
        await page.wait_for(seen)

    in_playground(tmp_path, 1, story)
