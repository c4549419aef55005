"""`kubesched run --web`: the page of a scheduler on a real cluster, read-only, for those who may see it."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from harness.headless_browser import NOTICE, has_browser, open_page
from harness.scripted_server import ScriptedServer, until
from kubesched.k8s.client.target import ServerTarget
from kubesched.live.live_scheduler import LiveScheduler
from kubesched.live.options import parse_flags, read_options
from kubesched.live.options.flag import FlagError
from kubesched.playground.web.page import LivePage
from kubesched.testing import make

ALICE = {"Authorization": "Bearer alice"}
BOB = {"Authorization": "Bearer bob"}


_EVENT = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "web.1", "namespace": "default"},
    "involvedObject": {"kind": "Pod", "name": "web", "namespace": "default"},
    "reason": "BackOff",
    "message": "restarting",
    "type": "Warning",
    "lastTimestamp": "2026-01-01T00:00:05Z",
}


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _may_see(spec: dict[str, Any]) -> bool:
    """Alice has a role with the nonResourceURL /web/api/*."""
    path: str = spec["nonResourceAttributes"]["path"]
    return bool(spec["user"] == "alice" and path.startswith("/web/api/"))


@asynccontextmanager
async def _served(folder: Path, *more_flags: str) -> AsyncIterator[str]:
    """The address of the secure port of a scheduler with a node, a pod that is bound and one that fits nowhere."""
    port = _free_port()
    flags = [f"--secure-port={port}", "--bind-address=127.0.0.1", "--leader-elect=false", f"--cert-dir={folder}"]
    flags.extend(more_flags)
    async with ScriptedServer() as server:
        for name in ("alice", "bob"):
            server.access.token_users[name] = {"username": name, "groups": ["dev"]}
        server.access.grants = _may_see
        for manifest in (make.node("real-node", cpu="4"), make.pod("web", cpu="1"), make.pod("big", cpu="9")):
            server.put(manifest)
        server.put(_EVENT)
        target = ServerTarget(url=server.url)
        options = read_options(parse_flags([*flags, "--web"]))
        scheduler = LiveScheduler(options, target, review_target=target, more_pages=LivePage)
        running = asyncio.create_task(scheduler.run())
        try:
            await until(lambda: scheduler.decisions.report()["made"] >= 2)
            yield f"https://127.0.0.1:{port}"
        finally:
            scheduler.stop()
            await running


def _trusting_all() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def test_the_page_is_open_and_the_cluster_is_for_those_who_may_see_it(tmp_path: Path) -> None:
    asked: list[tuple[str, str, dict[str, str], int]] = [
        ("GET", "/web/", {}, 200),
        ("GET", "/web/static/main.js", {}, 200),
        ("GET", "/web/static/none.js", {}, 404),
        ("GET", "/web/static/..%2fpage.py", {}, 404),
        ("GET", "/web/api/state", {}, 403),
        ("GET", "/web/api/state", BOB, 403),
        ("GET", "/web/api/state", {"Authorization": "Bearer nobody"}, 401),
        ("GET", "/web/api/state", ALICE, 200),
        ("GET", "/web/api/explain/default/big", ALICE, 200),
        ("GET", "/web/api/timeline/default/web", ALICE, 200),
        ("GET", "/web/api/decisions", ALICE, 200),
        ("GET", "/web/api/object", ALICE, 404),
        ("GET", "/web/api/whatif", ALICE, 405),
        ("POST", "/web/api/objects", ALICE, 403),
        ("POST", "/web/api/whatif", {}, 403),
        ("POST", "/web/api/whatif", BOB, 403),
        ("POST", "/web/api/state", ALICE, 403),
    ]

    async def run() -> list[int]:
        async with _served(tmp_path) as address, aiohttp.ClientSession() as client:
            found = []
            for method, path, headers, _ in asked:
                url = f"{address}{path}"
                async with client.request(method, url, headers=headers, ssl=_trusting_all()) as answer:
                    found.append(answer.status)
            return found

    found = asyncio.run(run())
    expected = [status for *_, status in asked]
    posts = [at for at, (method, *_) in enumerate(asked) if method == "POST"]
    assert [status for at, status in enumerate(found) if at not in posts] == [
        status for at, status in enumerate(expected) if at not in posts
    ]
    assert all(found[at] in (403, 404, 405) for at in posts), "nothing can be changed"


def test_an_older_scheduler_is_explained_as_it_decides(tmp_path: Path) -> None:
    async def run() -> dict[str, Any]:
        async with _served(tmp_path, "--emulate=1.17") as address, aiohttp.ClientSession() as client:
            url = f"{address}/web/api/explain/default/big"
            async with client.get(url, headers=ALICE, ssl=_trusting_all()) as answer:
                found: dict[str, Any] = await answer.json()
                return found

    told = asyncio.run(run())
    assert told["message"] == "0/1 nodes are available: 1 Insufficient cpu."


@pytest.mark.skipif(not has_browser(), reason=NOTICE)
def test_a_token_opens_the_page_to_look(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            _served(tmp_path / "certificates") as address,
            open_page(f"{address}/web/", tmp_path / "browser", trusts_all=True) as page,
        ):
            await page.wait_for("!document.querySelector('#login').hidden")
            await page.evaluate(
                "document.querySelector('#token').value = 'alice';"
                "document.querySelector('#login').requestSubmit(); true"
            )
            await page.wait_for("document.querySelector('#link').textContent === 'live, read only'")
            await page.wait_for("document.querySelector('[data-node=\"real-node\"]')")
            offered = "[...document.querySelectorAll('#actions a')].filter((a) => !a.hidden).map((a) => a.textContent)"
            assert await page.evaluate(offered) == ["What if"], "nothing to change"
            await page.click("#queued [data-pod='default/big']")
            await page.wait_for("document.querySelector('.tile[data-verdict=reason-0]')")
            await page.evaluate("location.hash = 'pod=default/web'")
            await page.wait_for("document.querySelector('.timeline').textContent.includes('Node chosen')")
            await page.wait_for("document.querySelector('.timeline').textContent.includes('BackOff')")
            await page.evaluate("location.hash = 'whatif='")
            await page.wait_for("document.querySelector('#manifest')")
            await page.click("#detail .main")
            await page.wait_for("document.querySelector('.tile[data-verdict=best]')")
            assert page.problems == []

    (tmp_path / "certificates").mkdir()
    asyncio.run(run())


@pytest.mark.parametrize(
    ("spec", "status", "words"),
    [
        ({}, 200, "best"),
        ({"priorityClassName": "system-node-critical"}, 200, "best"),
        ({"priorityClassName": "urgent"}, 422, "urgent"),
        ({"priorityClassName": "../nodes"}, 422, "spec.priorityClassName"),
        ({"containers": "none"}, 422, "spec.containers"),
    ],
)
def test_a_pod_is_tried_without_creating_it(tmp_path: Path, spec: dict[str, Any], status: int, words: str) -> None:
    """As is one whose name a pod on a node has: it is tried in that one's place."""
    pod = make.pod("web", cpu="1")
    pod["spec"] |= spec

    async def run() -> tuple[int, str]:
        async with _served(tmp_path) as address, aiohttp.ClientSession() as client:
            asked = {"yaml": json.dumps(pod)}
            url = f"{address}/web/api/whatif"
            async with client.post(url, json=asked, headers=ALICE, ssl=_trusting_all()) as answer:
                return answer.status, await answer.text()

    found, text = asyncio.run(run())
    assert found == status, text
    assert words in text


def test_the_page_needs_the_port() -> None:
    with pytest.raises(FlagError, match="--web needs the secure port"):
        read_options(parse_flags(["--web", "--secure-port=0"]))
