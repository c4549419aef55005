"""The scripted server's lists and watches: selectors, pages, versions that are gone, bookmarks, and its faults."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from harness.scripted_server import ScriptedServer, until
from kubesched.k8s.client.errors import AnswerLost, ApiError, Unreachable
from kubesched.k8s.client.rest import RestClient, RetryPolicy
from kubesched.k8s.client.target import Headers, NoCredentials, ServerTarget

Story = Callable[[ScriptedServer, RestClient], Awaitable[None]]
NODES = "/api/v1/nodes"


@dataclass
class Bearer(NoCredentials):
    token: str

    async def headers(self) -> Headers:
        return (("Authorization", f"Bearer {self.token}"),)


def tell(story: Story, token: str = "", **options: Any) -> None:
    async def run() -> None:
        async with ScriptedServer(**options) as server:
            target = ServerTarget(url=server.url, credentials=Bearer(token))
            client = RestClient(target, qps=0, retries=RetryPolicy(max_attempts=1))
            try:
                await story(server, client)
            finally:
                await client.close()

    asyncio.run(run())


def node(name: str, **labels: str) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": name, "labels": labels}}


async def listed(client: RestClient, path: str = NODES, **params: str) -> Any:
    return msgspec.json.decode(await client.request("GET", path, params=params))


async def next_events(lines: AsyncIterator[bytes], count: int) -> list[tuple[str, str]]:
    found = []
    for _ in range(count):
        seen = msgspec.json.decode(await anext(lines))
        metadata = seen["object"]["metadata"]
        found.append((seen["type"], metadata.get("name", "")))
    return found


@pytest.mark.parametrize(
    ("params", "names"),
    [
        pytest.param({}, ["a", "b", "c"], id="everything"),
        pytest.param({"labelSelector": "zone=x"}, ["a", "b"], id="a label"),
        pytest.param({"labelSelector": "zone!=x"}, ["c"], id="not a label"),
        pytest.param({"labelSelector": "zone in (y, z)"}, ["c"], id="a label among"),
        pytest.param({"labelSelector": "zone notin (y,z),disk"}, ["b"], id="two requirements"),
        pytest.param({"labelSelector": "!disk"}, ["a", "c"], id="no such label"),
        pytest.param({"fieldSelector": "metadata.name=b"}, ["b"], id="a field"),
        pytest.param({"fieldSelector": "metadata.name!=b,spec.unschedulable!=true"}, ["a", "c"], id="not fields"),
    ],
)
def test_selectors(params: dict[str, str], names: list[str]) -> None:
    async def story(server: ScriptedServer, client: RestClient) -> None:
        for item in (node("b", zone="x", disk="ssd"), node("a", zone="x"), node("c", zone="y")):
            server.put(item)
        found = await listed(client, **params)
        assert [item["metadata"]["name"] for item in found["items"]] == names
        assert found["kind"] == "NodeList"
        assert found["metadata"]["resourceVersion"] == str(server.storage.revision)

    tell(story)


def test_pages_show_the_state_of_the_first_and_expire() -> None:
    async def story(server: ScriptedServer, client: RestClient) -> None:
        for index in range(5):
            server.put(node(f"n{index}"))
        first = await listed(client, limit="2")
        assert first["metadata"]["remainingItemCount"] == 3
        server.put(node("n9"))
        second = await listed(client, limit="2", **{"continue": first["metadata"]["continue"]})
        assert [item["metadata"]["name"] for item in second["items"]] == ["n2", "n3"]
        assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        server.forget_history()
        with pytest.raises(ApiError) as refusal:
            await listed(client, limit="2", **{"continue": second["metadata"]["continue"]})
        assert refusal.value.is_gone

    tell(story)


def test_a_list_newer_than_the_server_is_refused_with_its_cause() -> None:
    async def story(_: ScriptedServer, client: RestClient) -> None:
        with pytest.raises(ApiError) as refusal:
            await listed(client, resourceVersion="99999")
        assert refusal.value.causes[0].reason == "ResourceVersionTooLarge"

    tell(story)


def test_a_watch_tells_what_happened_since_its_version() -> None:
    async def story(server: ScriptedServer, client: RestClient) -> None:
        began = server.put(node("a"))["metadata"]["resourceVersion"]
        server.put(node("b"))
        async with client.stream(NODES, {"watch": "true", "resourceVersion": began}) as lines:
            server.put(node("a", zone="x"))
            server.delete("nodes", "b")
            assert await next_events(lines, 3) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]

    tell(story)


def test_what_leaves_the_selection_of_a_watch_is_deleted_for_it_and_what_comes_is_added() -> None:
    async def story(server: ScriptedServer, client: RestClient) -> None:
        server.put(node("a", zone="x"))
        params = {"watch": "true", "labelSelector": "zone=x", "resourceVersion": str(server.storage.revision)}
        async with client.stream(NODES, params) as lines:
            server.put(node("other"))
            server.put(node("a", zone="y"))
            server.put(node("a", zone="x", disk="ssd"))
            server.delete("nodes", "a")
            assert await next_events(lines, 3) == [("DELETED", "a"), ("ADDED", "a"), ("DELETED", "a")]

    tell(story)


def test_a_watch_from_a_forgotten_version_is_told_so() -> None:
    async def story(server: ScriptedServer, client: RestClient) -> None:
        old = server.put(node("a"))["metadata"]["resourceVersion"]
        server.forget_history()
        async with client.stream(NODES, {"watch": "true", "resourceVersion": old}) as lines:
            seen = msgspec.json.decode(await anext(lines))
        assert (seen["type"], seen["object"]["code"], seen["object"]["reason"]) == ("ERROR", 410, "Expired")

    tell(story)


def test_an_open_watch_still_gets_what_happened_before_history_was_forgotten() -> None:
    async def story(server: ScriptedServer, client: RestClient) -> None:
        params = {"watch": "true", "resourceVersion": str(server.storage.revision)}
        async with client.stream(NODES, params) as lines:
            await server.watched("nodes")
            server.put(node("a"))
            server.forget_history()
            server.put(node("b"))
            assert await next_events(lines, 2) == [("ADDED", "a"), ("ADDED", "b")]

    tell(story)


def test_bookmarks_go_to_those_who_want_them() -> None:
    async def story(server: ScriptedServer, client: RestClient) -> None:
        params = {"watch": "true", "resourceVersion": str(server.storage.revision)}
        marked_params = {**params, "allowWatchBookmarks": "true"}
        async with client.stream(NODES, params) as plain, client.stream(NODES, marked_params) as marked:
            await until(lambda: len(server.watches.of("nodes")) == 2)
            server.send_bookmarks()
            server.put(node("a"))
            assert await next_events(plain, 1) == [("ADDED", "a")]
            assert await next_events(marked, 2) == [("ADDED", "a"), ("BOOKMARK", "")]

    tell(story)


def test_a_streamed_list_ends_with_its_mark() -> None:
    async def story(server: ScriptedServer, client: RestClient) -> None:
        server.put(node("a"))
        asked = {"watch": "true", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        async with client.stream(NODES, {**asked, "allowWatchBookmarks": "true"}) as lines:
            assert await next_events(lines, 1) == [("ADDED", "a")]
            mark = msgspec.json.decode(await anext(lines))
        assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}

    tell(story)


def test_a_watch_ends_after_its_time() -> None:
    async def story(_: ScriptedServer, client: RestClient) -> None:
        async with client.stream(NODES, {"watch": "true", "timeoutSeconds": "0.01"}) as lines:
            assert [line async for line in lines] == []

    tell(story)


def test_a_cut_watch_breaks() -> None:
    async def story(server: ScriptedServer, client: RestClient) -> None:
        async with client.stream(NODES, {"watch": "true"}) as lines:
            await server.watched("nodes")
            assert server.cut_watches("nodes") == 1
            with pytest.raises(AnswerLost):
                await anext(lines)

    tell(story)


def test_a_fault_meets_only_the_requests_it_is_meant_for() -> None:
    async def story(server: ScriptedServer, client: RestClient) -> None:
        server.fail_next("POST", "nodes", status=503, message="not now", times=2)
        await listed(client)
        for _ in range(2):
            with pytest.raises(ApiError) as refusal:
                await client.request("POST", NODES, body=msgspec.json.encode(node("a")))
            assert (refusal.value.status, refusal.value.message) == (503, "not now")
        await client.request("POST", NODES, body=msgspec.json.encode(node("a")))
        assert len(server.asked("create", "nodes")) == 3
        assert len(server.asked("list")) == 1

    tell(story)


@pytest.mark.parametrize("after", [pytest.param(False, id="before it"), pytest.param(True, id="after it")])
def test_a_dropped_write_was_done_or_not(after: bool) -> None:
    async def story(server: ScriptedServer, client: RestClient) -> None:
        server.drop_next("POST", after=after)
        with pytest.raises(AnswerLost):
            await client.request("POST", NODES, body=msgspec.json.encode(node("a")))
        assert (server.get("nodes", "a") is not None) == after

    tell(story)


def test_a_held_request_goes_on_when_it_is_released() -> None:
    async def story(server: ScriptedServer, client: RestClient) -> None:
        held = server.hold_next("list")
        asking = asyncio.create_task(listed(client))
        await until(lambda: server.asked("list"))
        assert not asking.done()
        held.release()
        assert (await asking)["items"] == []

    tell(story)


def test_a_stopped_server_cannot_be_reached_and_keeps_its_objects() -> None:
    async def story(server: ScriptedServer, client: RestClient) -> None:
        server.put(node("a"))
        await server.stop()
        with pytest.raises((Unreachable, AnswerLost)):
            await listed(client)
        await server.start()
        assert len((await listed(client))["items"]) == 1

    tell(story)


def test_only_the_right_token_is_let_in() -> None:
    async def story(server: ScriptedServer, client: RestClient) -> None:
        await listed(client)
        server.access.accepts_token = "changed"
        with pytest.raises(ApiError) as refusal:
            await listed(client)
        assert refusal.value.is_unauthorized

    tell(story, token="secret", accepts_token="secret")


def test_a_refused_verb_says_what_rbac_lacks() -> None:
    async def story(server: ScriptedServer, client: RestClient) -> None:
        server.refuse("create", "pods/binding")
        with pytest.raises(ApiError) as refusal:
            await client.request("POST", "/api/v1/namespaces/x/pods/p/binding", body=b'{"target":{"name":"n"}}')
        assert refusal.value.is_forbidden
        assert refusal.value.message == (
            'pods/binding is forbidden: User "system:kube-scheduler" cannot create resource "pods/binding" '
            'in API group "" in the namespace "x"'
        )

    tell(story)


def test_reviews_of_tokens_and_access_are_answered() -> None:
    async def story(server: ScriptedServer, client: RestClient) -> None:
        server.access.token_users["t"] = {"username": "jane", "groups": ["g"]}
        server.access.grants = lambda spec: spec["user"] == "jane"
        token = msgspec.json.encode({"spec": {"token": "t"}})
        answer = await client.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", body=token)
        assert msgspec.json.decode(answer)["status"]["user"]["username"] == "jane"
        access = msgspec.json.encode({"spec": {"user": "joe"}})
        answer = await client.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body=access)
        assert msgspec.json.decode(answer)["status"] == {"allowed": False}

    tell(story)
