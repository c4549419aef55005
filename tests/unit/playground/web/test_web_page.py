"""The page's server: who may read what, and how changes arrive."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from shown_cluster import ShownCluster, client_of, node, pod, serving

from kubesched.playground.web import stream
from kubesched.playground.web.page import STATIC
from kubesched.playground.web.sources import RecordedPod
from kubesched.playground.web.stream import StateReader


def _cluster() -> ShownCluster:
    cluster = ShownCluster()
    cluster.put(node("n"), pod("p"))
    return cluster


async def _read(path: str, cluster: ShownCluster | None = None, **options: Any) -> tuple[int, str, Any]:
    """Status, body and headers."""
    has_key = options.pop("has_key", True)
    async with (
        serving(cluster or _cluster()) as page,
        client_of(page, has_key=has_key) as client,
        client.get(path, **options) as answer,
    ):
        return answer.status, await answer.text(), answer.headers


@pytest.mark.parametrize(
    "path",
    [
        "/api/state",
        "/api/stream",
        "/api/explain/shop/p",
        "/api/timeline/shop/p",
        "/api/about",
        "/api/decisions",
        "/api/x",
    ],
)
def test_without_the_key_nothing_of_the_cluster_is_told(path: str) -> None:
    status, body, _ = asyncio.run(_read(path, has_key=False))
    assert status == 401
    assert "link that was printed" in body


def test_a_wrong_key_opens_nothing() -> None:
    async def run() -> list[int]:
        async with serving(_cluster()) as page, client_of(page, has_key=False) as client:
            login = await client.post("/api/login", json={"key": "wrong"})
            bearer = await client.get("/api/state", headers={"Authorization": "Bearer wröng"})
            return [login.status, bearer.status, (await client.get("/api/state")).status]

    assert asyncio.run(run()) == [401, 401, 401]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"key": 7}', b"\xff", b"x" * 5000])
def test_a_login_that_is_none_is_refused(body: bytes) -> None:
    async def run() -> int:
        async with serving(_cluster()) as page, client_of(page, has_key=False) as client:
            return (await client.post("/api/login", data=body)).status

    assert asyncio.run(run()) in (400, 413)


def test_the_key_of_the_printed_link_becomes_a_cookie_that_scripts_and_other_sites_do_not_have() -> None:
    async def run() -> tuple[str, int]:
        async with serving(_cluster()) as page, client_of(page, has_key=False) as client:
            key = page.url.partition("#key=")[2]
            login = await client.post("/api/login", json={"key": key})
            return login.headers["Set-Cookie"], (await client.get("/api/state")).status

    cookie, status = asyncio.run(run())
    assert status == 200
    assert {"HttpOnly", "SameSite=Strict"} <= set(cookie.split("; "))


@pytest.mark.parametrize(
    ("host", "status"),
    [
        pytest.param("localhost", 200, id="another name of ours"),
        pytest.param("127.0.0.1:1234", 200, id="through a forwarded port"),
        pytest.param("evil.example", 421, id="a foreign name that leads to loopback"),
        pytest.param("[", 421, id="no name at all"),
    ],
)
def test_the_page_goes_by_its_own_name_only(host: str, status: int) -> None:
    assert asyncio.run(_read("/api/state", headers={"Host": host}))[0] == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        pytest.param("{}", 200, id="our own page"),
        pytest.param("http://127.0.0.1:1", 403, id="a page on another port, which has the cookie too"),
        pytest.param("https://evil.example", 403, id="a foreign page"),
        pytest.param("null", 403, id="a page without an origin"),
    ],
)
def test_only_our_own_page_may_ask_with_the_cookie(origin: str, status: int) -> None:
    async def run() -> int:
        async with serving(_cluster()) as page, client_of(page) as client:
            answer = await client.get("/api/state", headers={"Origin": origin.format(page.address)})
            return answer.status

    assert asyncio.run(run()) == status


@pytest.mark.parametrize("path", ["/", "/static/main.js", "/api/state"])
def test_every_answer_forbids_foreign_content(path: str) -> None:
    status, _, headers = asyncio.run(_read(path))
    assert status == 200
    assert headers["Content-Security-Policy"].startswith("default-src 'self';")
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_the_page_listens_on_loopback_only() -> None:
    async def run() -> str:
        async with serving(_cluster()) as page:
            return page.address

    assert asyncio.run(run()).startswith("http://127.0.0.1:")


def test_files_outside_of_the_page_are_not_served() -> None:
    for path in ("/static/../page.py", "/static/%2e%2e/page.py", "/static/", "/page.py"):
        assert asyncio.run(_read(path))[0] in (403, 404), path


def test_the_state_has_nodes_pods_and_the_queue() -> None:
    cluster = _cluster()
    cluster.queue = {"unschedulable": [{"pod": "shop/p", "attempts": 2, "waitingSeconds": 1}]}
    status, body, _ = asyncio.run(_read("/api/state", cluster))
    state = json.loads(body)
    assert (status, list(state["nodes"]), list(state["pods"])) == (200, ["n"], ["shop/p"])
    assert state["queue"]["counts"]["unschedulable"] == 1


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        pytest.param("shop/p", 200, '"totals":{"n":', id="a pod that waits"),
        pytest.param("shop/q", 404, "is not known to the scheduler", id="a pod that is not there"),
        pytest.param("shop/..%2Fnodes", 404, "nothing to explain", id="a name that would lead elsewhere"),
    ],
)
def test_a_pod_is_explained(path: str, status: int, told: str) -> None:
    found, body, _ = asyncio.run(_read(f"/api/explain/{path}"))
    assert found == status
    assert told in body


def test_a_timeline_is_told() -> None:
    cluster = _cluster()
    cluster.recorded = RecordedPod({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}})
    _, body, _ = asyncio.run(_read("/api/timeline/shop/p", cluster))
    assert [entry["what"] for entry in json.loads(body)["timeline"]] == ["Created"]


async def _next(answer: aiohttp.ClientResponse) -> tuple[str, Any]:
    """One message of a stream: its kind and its body."""
    async with asyncio.timeout(5):
        lines = (await answer.content.readuntil(b"\n\n")).decode().splitlines()
    return lines[0].removeprefix("event: "), json.loads(lines[1].removeprefix("data: "))


def test_who_listens_gets_the_state_and_then_every_change() -> None:
    async def run() -> list[tuple[str, Any]]:
        cluster = _cluster()
        async with serving(cluster) as page, client_of(page) as client, client.get("/api/stream") as answer:
            assert answer.headers["Content-Type"].startswith("text/event-stream")
            first = await _next(answer)
            cluster.put(pod("p", "n"), pod("new"))
            return [first, await _next(answer)]

    (kind, state), (next_kind, change) = asyncio.run(run())
    assert (kind, list(state["pods"])) == ("state", ["shop/p"])
    assert (next_kind, sorted(change["pods"]["put"])) == ("change", ["shop/new", "shop/p"])
    assert "nodes" not in change


def test_what_only_the_page_needs_begins_when_it_is_opened() -> None:
    async def run() -> list[int]:
        cluster = _cluster()
        async with serving(cluster) as page, client_of(page) as client:
            async with client.get("/api/state"):
                looks = [cluster.n_looks]
            async with client.get("/api/stream") as answer:
                await _next(answer)
                return [*looks, cluster.n_looks]

    assert asyncio.run(run()) == [0, 1]


def test_who_comes_later_gets_the_state_of_then() -> None:
    async def run() -> Any:
        cluster = _cluster()
        async with serving(cluster) as page, client_of(page) as client, client.get("/api/stream") as first:
            await _next(first)
            cluster.put(pod("new"))
            async with client.get("/api/stream") as second:
                (_, state), (_, change) = await _next(second), await _next(first)
                return sorted(state["pods"]), list(change["pods"]["put"])

    assert asyncio.run(run()) == (["shop/new", "shop/p"], ["shop/new"])


def test_who_does_not_keep_up_gets_the_whole_state_instead() -> None:
    async def run() -> list[bytes]:
        cluster = _cluster()
        reader = StateReader(cluster.sources(), lambda: 0.0)
        source = stream.StateStream(reader, 0.0)
        messages = source.listen()
        got = [await anext(messages)]
        for i in range(stream.MOST_WAITING + 1):
            cluster.put(pod(f"p{i}"))
            source.look()
        got.append(await anext(messages))
        await messages.aclose()
        return got

    first, second = asyncio.run(run())
    assert first.startswith(b"event: state")
    assert second.startswith(b"event: state")
    assert b"shop/p8" in second


def test_stopping_ends_all_streams() -> None:
    async def run() -> bytes:
        cluster = _cluster()
        async with serving(cluster) as page, client_of(page) as client:
            answer = await client.get("/api/stream")
            await _next(answer)
            await page.stop()
            return await answer.content.read()

    assert asyncio.run(run()) == b""


@pytest.mark.parametrize("file", sorted(STATIC.iterdir()), ids=lambda path: path.name)
def test_the_page_asks_no_foreign_host(file: Path) -> None:
    text = file.read_text().replace("http://www.w3.org/2000/svg", "")
    assert re.search(r"https?://|//[a-z0-9-]+\.[a-z]", text) is None
