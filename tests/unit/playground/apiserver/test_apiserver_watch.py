"""Watches: from a version, from the beginning, selected, expired; never a gap."""

from __future__ import annotations

import asyncio
from typing import Any

from apiserver_serving import PODS, TestClient, pod, serve


def _seen(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]


def test_a_watch_from_a_version_tells_what_came_after() -> None:
    async def body(client: TestClient) -> None:
        await client.ask("POST", PODS, pod("a"))
        version = (await client.ask("GET", PODS)).body["metadata"]["resourceVersion"]
        await client.ask("POST", PODS, pod("b"))
        await client.ask("DELETE", f"{PODS}/a")
        events = await client.events(f"{PODS}?watch=1&resourceVersion={version}", 3)
        assert _seen(events) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "a")]

    serve(body)


def test_initial_events_end_with_a_bookmark_that_says_so() -> None:
    async def body(client: TestClient) -> None:
        await client.ask("POST", PODS, pod("a"))
        options = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        events = await client.events(f"{PODS}?{options}", 2)
        assert _seen(events) == [("ADDED", "a"), ("BOOKMARK", "")]
        assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}

    serve(body)


def test_an_object_that_leaves_the_selection_is_deleted_for_the_watcher() -> None:
    async def body(client: TestClient) -> None:
        version = (await client.ask("GET", PODS)).body["metadata"]["resourceVersion"]
        await client.ask("POST", PODS, pod("a"))
        binding = {"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "n"}}
        await client.ask("POST", f"{PODS}/a/binding", binding)
        selector = "fieldSelector=spec.nodeName%3D"
        events = await client.events(f"{PODS}?watch=1&{selector}&resourceVersion={version}", 2)
        assert _seen(events) == [("ADDED", "a"), ("DELETED", "a")]
        now = (await client.ask("GET", f"{PODS}/a")).body["metadata"]["resourceVersion"]
        assert events[1]["object"]["metadata"]["resourceVersion"] == now
        entering = await client.events(f"{PODS}?watch=1&fieldSelector=spec.nodeName%3Dn&resourceVersion={version}", 1)
        assert _seen(entering) == [("ADDED", "a")]

    serve(body)


def test_a_watch_from_a_forgotten_version_is_expired() -> None:
    async def body(client: TestClient) -> None:
        (event,) = await client.events(f"{PODS}?watch=1&resourceVersion=1", 1)
        assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")

    serve(body)


def test_many_watchers_all_see_every_change_in_order() -> None:
    async def body(client: TestClient) -> None:
        version = (await client.ask("GET", PODS)).body["metadata"]["resourceVersion"]
        path = f"{PODS}?watch=1&resourceVersion={version}"
        watchers = [asyncio.ensure_future(client.events(path, 40)) for _ in range(10)]
        await asyncio.gather(*(client.ask("POST", PODS, pod(f"p{number}")) for number in range(40)))
        seen = [[event["object"]["metadata"]["resourceVersion"] for event in await watcher] for watcher in watchers]
        assert all(one == seen[0] for one in seen)
        assert seen[0] == sorted(seen[0], key=int)
        assert len(set(seen[0])) == 40

    serve(body)


def test_a_watch_ends_with_its_timeout() -> None:
    async def body(client: TestClient) -> None:
        assert await client.events(f"{PODS}?watch=1&timeoutSeconds=1", 1) == []

    serve(body)


def test_a_watch_ends_when_its_client_goes() -> None:
    async def body(client: TestClient) -> None:
        await client.events(
            f"{PODS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1", 1
        )
        assert client.server.store is not None
        waiters = client.server.store.history("pods")._waiters
        async with asyncio.timeout(5):
            while waiters:
                await client.ask("GET", "/healthz")

    serve(body)


def test_pages_show_one_state_though_it_changes_meanwhile() -> None:
    async def body(client: TestClient) -> None:
        for name in ("a", "b", "c"):
            await client.ask("POST", PODS, pod(name))
        first = (await client.ask("GET", f"{PODS}?limit=2")).body
        assert first["metadata"]["remainingItemCount"] == 1
        await client.ask("DELETE", f"{PODS}/c")
        token = first["metadata"]["continue"]
        second = (await client.ask("GET", f"{PODS}?limit=2&continue={token}")).body
        assert [item["metadata"]["name"] for item in second["items"]] == ["c"]
        assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]

    serve(body)
